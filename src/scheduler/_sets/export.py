"""Jobs of one owner as a text, JSON or TOML, and back."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable
from typing import Any, Final

from schedule import shown

from .._jobs import Handle
from .._shape import JobSpec, from_json, options_text, read_json, to_json
from .._values import OPTIONS, InvalidJob

_TO_ESCAPE: Final = re.compile(r'[\\"\x00-\x1f\x7f]')
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_REQUIRED: Final = frozenset({"id", "task", "schedule"})
_DEFAULTS: Final[tuple[object, ...]] = (None, False, [], {})
"""Of name, inline, args, kwargs and tags."""


def export_json(jobs: Iterable[Handle], *, owner: str) -> str:
    """Return the owner's jobs as JSON: `{"jobs": [...]}`, which `read_jobs` reads and `PUT /v1/sets/{owner}` takes.

    `jobs`: of a Scheduler or a Client. Each job has the keys that differ from their defaults. Raises InvalidJob for a
    job that cannot be told.
    """
    return json.dumps({"jobs": [*map(_keys_of, _specs_of(jobs, owner))]}, ensure_ascii=False, indent=2) + "\n"


def export_toml(jobs: Iterable[Handle], *, owner: str) -> str:
    """Return the owner's jobs as TOML, a table `[[job]]` for each, which `read_jobs` reads.

    Raises InvalidJob for a job that cannot be told, and for an argument None, which only JSON can hold.
    """
    return "\n".join(_table_of(_keys_of(spec)) for spec in _specs_of(jobs, owner))


def read_jobs(text: str) -> list[JobSpec]:
    """Return the jobs of such a text, for `Scheduler.sync`. Raises InvalidJob, whose `path` names the wrong key."""
    is_json = text.lstrip().startswith("{")
    place = "jobs" if is_json else "job"
    found = _data_of(text, is_json=is_json)
    if not isinstance(found, dict) or set(found) - {place} or not isinstance(found.get(place, []), list):
        such_as = '{"jobs": [...]}' if is_json else "tables [[job]]"
        msg = f"the text must hold {such_as} and nothing else, not {shown(found)}"
        raise InvalidJob(msg)
    return [_spec_of(f"{place}[{index}]", each) for index, each in enumerate(found.get(place, []))]


def _specs_of(jobs: Iterable[Handle], owner: str) -> list[JobSpec]:
    return sorted((job.spec for job in jobs if job.owner == owner and not job.policy.is_part), key=lambda spec: spec.id)


def _keys_of(spec: JobSpec) -> dict[str, Any]:
    """Leave out the owner, and what has its default."""
    said = read_json(options_text(spec.policy, spec.inline))
    return {
        name: value
        for name, value in to_json(spec).items()
        if name in _REQUIRED or (name != "owner" and (name in said if name in OPTIONS else value not in _DEFAULTS))
    }


def _data_of(text: str, *, is_json: bool) -> Any:
    try:
        return read_json(text) if is_json else tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as exc:
        msg = f"the text is not TOML as it should be: {exc}"
        raise InvalidJob(msg) from None


def _spec_of(place: str, data: Any) -> JobSpec:
    try:
        return from_json(JobSpec, data)
    except InvalidJob as exc:
        msg = f"{place}: {exc}"
        error = InvalidJob(msg)
        error.path = f"{place}.{exc.path}" if exc.path else place
        raise error from None


# -- TOML --------------------------------------------------------------------------------------------------------------


def _table_of(keys: dict[str, Any]) -> str:
    lines = [f"{name} = {_toml(value, keys['id'], name)}\n" for name, value in keys.items()]
    return "".join(["[[job]]\n", *lines])


def _toml(value: Any, id: str, key: str) -> str:
    match value:
        case None:
            msg = f"{key} of job {id!r} holds None, which TOML cannot hold: use export_json"
            raise InvalidJob(msg)
        case str():
            return _quoted(value)
        case list():
            return f"[{', '.join(_toml(each, id, key) for each in value)}]"
        case dict():
            return f"{{{', '.join(f'{_key(name)} = {_toml(each, id, key)}' for name, each in value.items())}}}"
        case _:
            return json.dumps(value)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    return '"' + _TO_ESCAPE.sub(_escaped, text) + '"'


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"

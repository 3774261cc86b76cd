"""A JobSpec as JSON values, and back: faithful on the way out, strict on the way in."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import fields

from schedule import ScheduleError

from .._values import OPTIONS, InvalidJob, Policy, shown
from .json_text import check_json, kept, quick_text
from .options import parted, policy_of, refuse_part
from .options_text import check_names, option_of, plain
from .spec import JobSpec, as_lists

KEYS: Final = tuple(attribute.name for attribute in fields(JobSpec) if attribute.init)
REQUIRED: Final = ("id", "task", "schedule")
_OPTIONS: Final = frozenset(OPTIONS)
_START: Final = re.compile(r"([a-z_]+)(?:\.[a-z_]+)*(?:\[[^]]*\])*")


def spec_values(spec: JobSpec) -> dict[str, Any]:
    """Return all keys of a spec. Raises InvalidJob for arguments that JSON cannot hold."""
    args, kwargs = list(spec.args), dict(spec.kwargs)
    check_json(args, "args")
    check_json(kwargs, "kwargs")
    found = {key: plain(getattr(spec, key)) for key in KEYS}
    return found | {
        "args": as_lists(args),
        "kwargs": as_lists(kwargs),
        "needs": dict(spec.needs),
        "tags": sorted(spec.tags),
    }


def told(value: object) -> Any:
    """Return a user's value: a copy if JSON can hold it, else text. Another thread may change it meanwhile."""
    try:
        check_json(value, "value")
        return as_lists(value)
    except (InvalidJob, RuntimeError):
        return shown(value)


def read_spec(data: object) -> JobSpec:
    """Raises InvalidJob, whose `path` is the wrong key."""
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        example = '{"id": "web", "task": "probe", "schedule": "@every 10s"}'
        msg = f"a job must be an object such as {example}, not {shown(data)}"
        raise InvalidJob(msg)
    try:
        check_names(data, KEYS, "key")
    except InvalidJob as exc:
        raise refused(str(exc), next(key for key in data if key not in KEYS)) from None
    for key in REQUIRED:
        if data.get(key) is None:
            raise refused(f"{key}: a job must have one", key)
    options = {key: value for key, value in data.items() if key in _OPTIONS}
    given = {key: _read(key, value) for key, value in data.items() if key not in _OPTIONS}
    try:
        policy = _policy_of(options)
        return JobSpec.of(
            data["id"], data["task"], given["schedule"], given.get("args", ()), given.get("kwargs"), policy,
            inline=given.get("inline", False), tags=given.get("tags", ()), name=given.get("name"),
        )  # fmt: skip
    except ScheduleError as exc:
        raise refused(f"schedule: {exc}", "schedule") from None
    except InvalidJob as exc:
        raise refused(str(exc), path_of(str(exc))) from None


def _policy_of(options: dict[str, Any]) -> Policy:
    text = quick_text(options)
    return _read_policy(options) if text is None else _policy_of_text(text)


@kept(4096)  # few sets of options serve many jobs
def _policy_of_text(text: str) -> Policy:
    return _read_policy(json.loads(text))


def _read_policy(found: dict[str, Any]) -> Policy:
    read = {name: _read(name, value) for name, value in found.items()}
    agents, apart = read.pop("agents", None), read.pop("apart", None)
    policy = policy_of(read)
    refuse_part(policy)
    return policy if agents is None and apart is None else parted(policy, agents, apart)


def path_of(text: str) -> str | None:
    """Return the key with which an error begins, if any: "retry.base"."""
    found = _START.match(text)
    return found[0] if found is not None and found[1] in KEYS else None


def refused(text: str, path: str | None) -> InvalidJob:
    error = InvalidJob(text)
    error.path = path
    return error


def _read(key: str, value: Any) -> Any:
    reader = _READERS.get(key, option_of if key in _OPTIONS else _as_it_is)
    try:
        check_json(value, key)
        return reader(key, value)
    except (InvalidJob, ScheduleError) as exc:
        text = str(exc) if path_of(str(exc)) is not None else f"{key}: {exc}"
        raise refused(text, path_of(text)) from None


def _as_it_is(_key: str, value: Any) -> Any:
    return value


def _schedule(key: str, value: Any) -> Any:
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return value
    msg = f'{key} must be a text such as "@every 10s", or a number of seconds, not {shown(value)}'
    raise InvalidJob(msg)


def _args(key: str, value: Any) -> Any:
    if not isinstance(value, list):
        msg = f"{key} must be an array of arguments, not {shown(value)}"
        raise InvalidJob(msg)
    return value


def _kwargs(key: str, value: Any) -> Any:
    if not isinstance(value, dict):
        msg = f"{key} must be an object from names to arguments, not {shown(value)}"
        raise InvalidJob(msg)
    return value


def _tags(key: str, value: Any) -> Any:
    if not isinstance(value, list) or not all(isinstance(tag, str) for tag in value):
        msg = f"{key} must be an array of texts, not {shown(value)}"
        raise InvalidJob(msg)
    return value


_READERS: Final[Mapping[str, Callable[[str, Any], Any]]] = {
    "schedule": _schedule,
    "args": _args,
    "kwargs": _kwargs,
    "tags": _tags,
}

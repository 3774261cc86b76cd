"""Jobs and records as callers see them. The scope "read" sees no arguments, results or errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import blake2b
from operator import attrgetter, methodcaller
from typing import Any, Final, cast

from attrs import fields

from schedule import ScheduleError

from ..._jobs import Handle, Job
from ..._memory import Record
from ..._shape import NO_KWARGS, JobInfo, JobSpec, to_json
from ..._values import InvalidJob
from ..._why import Why
from .._protocol import JSON, Ask

MASKED: Final = frozenset({"args", "kwargs", "error", "last_error", "last_result", "result", "spec_error", "traceback"})
"""Keys that may hold secrets."""

JOB_KEYS: Final = tuple(each.name for each in fields(JobInfo))


_READY: Final[Mapping[str, Callable[[Handle], Any]]] = {
    "id": attrgetter("id"),
    "state": attrgetter("state"),
    "next_start": attrgetter("next_start"),
    "pauses": attrgetter("pauses"),
    "error": attrgetter("error"),
    "node": attrgetter("agent"),
    "is_ours": attrgetter("is_ours"),
    "statistics": methodcaller("statistics"),
}
"""Keys of a job that need no definition."""


class _Bare:
    """A job without its arguments. A copy of large arguments would hold up the event loop."""

    args = ()
    kwargs = NO_KWARGS

    def __init__(self, job: Handle) -> None:
        self._job = job

    def __getattr__(self, name: str) -> Any:
        return getattr(self._job, name)


def job_view(job: Handle, ask: Ask[Any, Any], keys: tuple[str, ...] = JOB_KEYS) -> dict[str, JSON]:
    """Return these keys of a job. Only what is shown is copied."""
    shown = [key for key in keys if ask.may("operate") or key not in MASKED]
    if _READY.keys() >= set(shown):
        return _seen({key: to_json(_READY[key](job)) for key in shown}, ask)
    view = to_json(_info_of(job, has_arguments=ask.may("operate") and not {"spec", "spec_error"}.isdisjoint(shown)))
    return _seen({key: view[key] for key in shown}, ask)


def _info_of(job: Handle, *, has_arguments: bool) -> JobInfo:
    if has_arguments or not isinstance(job, Job):
        return job.info()
    return job.control.info(cast("Job", _Bare(job)))


def record_view(record: Record, ask: Ask[Any, Any]) -> dict[str, JSON]:
    return _seen(to_json(record), ask)


def why_view(why: Why, ask: Ask[Any, Any]) -> dict[str, JSON]:
    """An error stands in the text, too: callers who may not see it read three dots there."""
    view = to_json(why)
    if why.error is not None and not ask.may("operate"):
        view["text"] = view["text"].replace(why.error, "...")
    return _seen(view, ask)


def _seen(view: dict[str, JSON], ask: Ask[Any, Any]) -> dict[str, JSON]:
    return view if ask.may("operate") else _masked(view)


def _masked(view: dict[str, JSON]) -> dict[str, JSON]:
    """Leave out what may hold secrets, also of a spec and of statistics."""
    kept = {name: value for name, value in view.items() if name not in MASKED}
    return kept | {name: _masked(kept[name]) for name in ("spec", "statistics") if kept.get(name)}


def etag_of(spec: JobSpec) -> str:
    """Name a definition. A job that only runs keeps its tag."""
    text = json.dumps(to_json(spec), sort_keys=True, separators=(",", ":"))
    return f'"{blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()}"'


def tag_of(job: Handle) -> str | None:
    """None: the job's definition cannot be told."""
    try:
        return etag_of(job.spec)
    except (InvalidJob, ScheduleError):
        return None

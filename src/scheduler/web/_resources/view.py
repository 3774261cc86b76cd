"""Jobs and records as callers see them. The scope "read" sees no arguments, results or errors."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any, Final

from attrs import fields

from schedule import ScheduleError

from ..._jobs import Handle as Job
from ..._memory import Record
from ..._shape import JobInfo, JobSpec, to_json
from ..._values import InvalidJob
from .._protocol import JSON, Ask

MASKED: Final = frozenset({"args", "kwargs", "error", "last_error", "last_result", "result", "spec_error", "traceback"})
"""Keys that may hold secrets."""

JOB_KEYS: Final = tuple(each.name for each in fields(JobInfo))


def job_view(job: Job, ask: Ask[Any, Any]) -> dict[str, JSON]:
    return _seen(to_json(job), ask)


def record_view(record: Record, ask: Ask[Any, Any]) -> dict[str, JSON]:
    return _seen(to_json(record), ask)


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


def tag_of(job: Job) -> str | None:
    """None: the job's definition cannot be told."""
    try:
        return etag_of(job.spec)
    except (InvalidJob, ScheduleError):
        return None

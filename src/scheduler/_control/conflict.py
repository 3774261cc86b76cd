"""A job that is added under the id of another: what becomes of both."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from .._jobs import Job
from .._plan import Start
from .._values import DuplicateJob, InvalidJob, Policy

OnConflict = Literal["error", "update", "replace", "keep"]

_CONFLICTS: Final = ("error", "update", "replace", "keep")


def check_conflict(on_conflict: str) -> None:
    """Raise InvalidJob for an `on_conflict` that is no answer."""
    if on_conflict not in _CONFLICTS:
        msg = f'on_conflict must be "error", "update", "replace" or "keep", not {on_conflict!r}'
        raise InvalidJob(msg)


def duplicate(id: str) -> DuplicateJob:
    """The error of on_conflict="error"."""
    msg = f'there is a job {id!r} already: choose another id, or on_conflict="update", "replace" or "keep"'
    return DuplicateJob(msg)


def stays(job: Job, on_conflict: OnConflict) -> bool:
    """Whether the job that is there stays as it is. Raises DuplicateJob if that is an error."""
    if on_conflict == "error":
        raise duplicate(job.id)
    return on_conflict == "keep"


def refuse_switch(job: Job, other: Job) -> None:
    """Raise InvalidJob if one of the two jobs is stored and the other is not, or may be on another agent."""
    if (job.task is None) != (other.task is None):
        msg = f'job {job.id!r} is {"not " if job.task is None else ""}stored: to change that use on_conflict="replace"'
        raise InvalidJob(msg)
    refuse_to_move(job, other.policy)


def refuse_to_move(job: Job, policy: Policy) -> None:
    """Raise InvalidJob if the job might go to another agent: it may be at work on the one that it has."""
    for name in ("place", "where", "agents", "apart"):
        kept = getattr(job.policy, name)
        if getattr(policy, name) != kept:
            msg = f'job {job.id!r} keeps its {name}, {kept!r}: to change that use on_conflict="replace"'
            raise InvalidJob(msg)


def planned_alike(job: Job, other: Job, start: Start) -> bool:
    """Whether the next start of `job` is also that of a job of the same id with the schedule of `other`."""
    return job.schedule == other.schedule and not isinstance(start, datetime)


def is_same(job: Job, other: Job) -> bool:
    """Whether two jobs of one id do the same in the same way. Arguments that cannot be compared are not equal."""
    try:
        return job.task == other.task and job.definition == other.definition
    except BaseException:  # noqa: BLE001 - an argument's own, such as an array's
        return False

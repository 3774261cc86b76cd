"""Conflicts: a job is added under an id that another job has."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from .._jobs import Job
from .._plan import Start
from .._shape import typed
from .._values import DuplicateJob, InvalidJob, Policy

OnConflict = Literal["error", "update", "replace", "keep"]

_CONFLICTS: Final = ("error", "update", "replace", "keep")
_OF_PLACE: Final = ("place", "where", "agents", "apart")


def check_conflict(on_conflict: str) -> None:
    if on_conflict not in _CONFLICTS:
        msg = f'on_conflict must be "error", "update", "replace" or "keep", not {on_conflict!r}'
        raise InvalidJob(msg)


def duplicate(id: str) -> DuplicateJob:
    msg = f'there is a job {id!r} already: choose another id, or on_conflict="update", "replace" or "keep"'
    return DuplicateJob(msg)


def stays(job: Job, on_conflict: OnConflict) -> bool:
    """Return whether the present job stays. Raises DuplicateJob for "error"."""
    if on_conflict == "error":
        raise duplicate(job.id)
    return on_conflict == "keep"


def refuse_switch(job: Job, other: Job) -> None:
    """Raise InvalidJob if only one of the jobs is stored, or if `other` might belong to another node."""
    if (job.task is None) != (other.task is None):
        msg = f'job {job.id!r} is {"not " if job.task is None else ""}stored: to change that use on_conflict="replace"'
        raise InvalidJob(msg)
    refuse_to_move(job, other.policy)


def moves(job: Job, policy: Policy) -> str | None:
    """Return an option by which another node might get the job, if it differs."""
    return next((name for name in _OF_PLACE if getattr(policy, name) != getattr(job.policy, name)), None)


def refuse_to_move(job: Job, policy: Policy) -> None:
    """Raise InvalidJob if the job might move to another node while its present node runs it."""
    if (name := moves(job, policy)) is not None:
        kept = getattr(job.policy, name)
        msg = f'job {job.id!r} keeps its {name}, {kept!r}: to change that use on_conflict="replace"'
        raise InvalidJob(msg)


def planned_alike(job: Job, other: Job, start: Start) -> bool:
    return job.schedule == other.schedule and not isinstance(start, datetime)


def is_same(job: Job, other: Job) -> bool:
    """Compare tasks and definitions. Arguments that cannot be compared count as different."""
    try:
        return job.task == other.task and job.definition == other.definition and are_alike(job, other)
    except BaseException:  # noqa: BLE001 - an argument may raise anything when it is compared, such as an array
        return False


def are_alike(job: Job, other: Job) -> bool:
    """Return whether equal arguments are equal as JSON, too: True is not 1."""
    return bool(typed(job.args) == typed(other.args) and typed(dict(job.kwargs)) == typed(dict(other.kwargs)))

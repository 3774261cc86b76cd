"""Parts of each write: the owner of the job, conditions of the request, and the wait for a durable change."""

from __future__ import annotations

import re
from collections.abc import Callable
from http import HTTPStatus
from threading import Lock
from typing import Any, Final, TypeVar

import anyio
from anyio import from_thread
from anyio.to_thread import run_sync

from ..._jobs import Handle as Job
from ..._running import SchedulerState
from ..._scheduler import Scheduler
from ..._values import DuplicateJob
from .._protocol import CODE, Ask, Problem, invalid, other_owner, unavailable
from .view import tag_of

T = TypeVar("T")

_writing: Final = Lock()
"""Held from the check of a condition until the change has been carried out. Only threads of requests wait for it."""

WITHIN_S: Final = 10.0
"""Seconds in which a change must be durable."""

API: Final = "api"
"""The owner of jobs that are put without one."""

_OWNER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def check_owner(owner: str) -> str:
    """Raise Problem for an owner that no caller can be. Files have a colon in theirs."""
    if not _OWNER.fullmatch(owner) or owner == CODE:
        detail = (
            f"owner must be 1 to 128 of the characters A-Z a-z 0-9 . _ - beginning with a letter or a digit, and not "
            f'"{CODE}", not {owner[:200]!r}'
        )
        raise invalid(detail, "owner")
    return owner


def refuse_others(job: Job, owner: str) -> None:
    """Raise Problem if the job is not this owner's."""
    if job.policy.is_part:
        detail = f"job {job.id!r} is a part of job {job.policy.place!r}: change that one"
        raise Problem(HTTPStatus.CONFLICT, "part", detail)
    if job.owner == owner:
        return
    whose = job.owner or CODE
    detail = f"job {job.id!r} belongs to {whose!r}, not to {owner!r}: change it there; here it can be run and paused"
    raise other_owner(detail, job.owner)


def refuse_unless_running(s: Scheduler) -> None:
    if s.state is not SchedulerState.RUNNING:
        raise unavailable(f"this scheduler is {s.state.value}, and not running: nothing has changed")


def check_conditions(ask: Ask[Any, Any], job: Job | None) -> None:
    """Raise Problem unless If-Match and If-None-Match hold for the present job."""
    match, none_match = ask.headers.get("if-match"), ask.headers.get("if-none-match")
    if match is None and none_match is None:
        return
    tag = None if job is None else tag_of(job)
    if match is not None and not _names(match, tag):
        detail = f"If-Match does not hold: job {ask.id!r} {'is not there' if job is None else 'has changed'}"
        raise Problem(HTTPStatus.PRECONDITION_FAILED, "condition", detail)
    if none_match is not None and _names(none_match, tag):
        detail = f"If-None-Match does not hold: there is a job {ask.id!r}"
        raise Problem(HTTPStatus.PRECONDITION_FAILED, "condition", detail)


def _names(condition: str, tag: str | None) -> bool:
    """Return whether the condition names the tag. `*` names each tag. Weak tags name none."""
    return tag is not None and (condition.strip() == "*" or tag in {each.strip() for each in condition.split(",")})


async def alone(s: Scheduler, change: Callable[[], T]) -> T:
    """Make a change while no other request makes one, and return when it has been carried out.

    It is made in a thread: a large set takes its time, and jobs start meanwhile.
    """

    def locked() -> T:
        with _writing:
            made = change()
            from_thread.run(_carried_out, s)  # the next request compares with what it finds
            return made

    return await run_sync(locked)


async def _carried_out(s: Scheduler) -> None:
    with anyio.move_on_after(WITHIN_S):
        await s.turn()


async def durable(s: Scheduler, id: str | None = None) -> None:
    """Return when all changes of this request are durable. `id`: the job that it has put.

    Raises DuplicateJob if another node has put that job, and Problem if the store does not answer in time.
    """
    try:
        with anyio.fail_after(WITHIN_S):
            try:
                await s.flush()
            except DuplicateJob as exc:
                if id is not None and repr(id) in str(exc):
                    raise
                await s.flush()  # that was about another request's job, in the same commit
    except TimeoutError:
        detail = (
            f"the change is not durable after {WITHIN_S:g} s, because the store does not answer: it holds in this "
            "process, and is stored as soon as the store answers"
        )
        raise unavailable(detail) from None

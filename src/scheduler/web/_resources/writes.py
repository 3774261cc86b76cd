"""Parts of each write: the owner of the job, conditions of the request, and the wait for a durable change."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from threading import Lock
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

import anyio
from anyio import CapacityLimiter, from_thread
from anyio.lowlevel import RunVar
from anyio.to_thread import run_sync

from ..._jobs import Handle as Job
from ..._running import SchedulerState
from ..._scheduler import Scheduler
from ..._values import DuplicateJob
from .._protocol import CODE, Ask, Problem, invalid, other_owner, problem_of, unavailable
from .view import tag_of

T = TypeVar("T")

_locks: Final[WeakKeyDictionary[Scheduler, Lock]] = WeakKeyDictionary()
"""Each is held from the check of a condition until the change of that scheduler has been carried out."""

_limiters: Final[RunVar[WeakKeyDictionary[Scheduler, CapacityLimiter]]] = RunVar("_limiters")
"""Of each event loop. A request waits for its turn without a thread: other work of the program needs them."""

_making: Final = Lock()
"""Held while a lock of a scheduler is made."""

WITHIN_S: Final = 10.0
"""Seconds for a whole change: its wait for other changes, too, and until it is durable."""

LONGEST_ID: Final = 512
"""Characters, as in stores."""

UNREACHABLE: Final = frozenset({".", ".."})
"""Ids that clients take out of a path, even when they are escaped."""

LOOK_S: Final = 0.1
"""Seconds between two looks of a waiting thread whether its request has been cancelled."""

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


def check_id(id: object, key: str = "id") -> None:
    """Raise Problem for an id that cannot be a part of a path, or is longer than stores hold."""
    if isinstance(id, str) and (id in UNREACHABLE or len(id) > LONGEST_ID):
        detail = f'{key} must have at most {LONGEST_ID} characters, and be neither "." nor "..", not {id[:100]!r}'
        raise invalid(detail, key)


def refuse_others(job: Job, owner: str) -> None:
    """Raise Problem if the job is not this owner's."""
    if job.policy.is_part:
        detail = f"job {job.id!r} is a part of job {job.policy.place!r}: change that one"
        raise Problem(HTTPStatus.CONFLICT, "part", detail)
    if job.owner == owner:
        return
    whose = job.owner or CODE
    instead = "change it there; here it can be run, paused, skipped and given a next start"
    detail = f"job {job.id!r} belongs to {whose!r}, not to {owner!r}: {instead}"
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
    if match is not None and not _names(match, job, tag):
        detail = f"If-Match does not hold: job {ask.id!r} {'is not there' if job is None else 'has changed'}"
        raise Problem(HTTPStatus.PRECONDITION_FAILED, "condition", detail)
    if none_match is not None and _names(none_match, job, tag):
        detail = f"If-None-Match does not hold: there is a job {ask.id!r}"
        raise Problem(HTTPStatus.PRECONDITION_FAILED, "condition", detail)


def _names(condition: str, job: Job | None, tag: str | None) -> bool:
    """Return whether the condition names the job. `*` names each, also one without a tag. Weak tags name none."""
    if condition.strip() == "*":
        return job is not None
    return tag is not None and tag in {each.strip() for each in condition.split(",")}


async def changed(
    ask: Ask[Any, Any],
    change: Callable[[], T],
    then: Callable[[T], None] = lambda _: None,
    *,
    id: str | None = None,
    is_asked_only: bool = False,
) -> T:
    """Make a change while no other request makes one, and return when it is durable.

    It is made in a thread: a large set takes its time, and jobs start meanwhile. `then`: is called when the change has
    been carried out, before another request changes anything. `id`: the job that is put. `is_asked_only`: `change` only
    says what would change. Raises Problem, and what `change` raises.
    """
    try:
        with anyio.fail_after(WITHIN_S) as scope:
            alone = partial(_alone, ask, change, then, scope.deadline, is_asked_only=is_asked_only)
            made = await run_sync(alone, limiter=_limiter_of(ask.s))
            if not is_asked_only:
                await durable(ask, id)
    except TimeoutError:
        raise (_busy() if ask.trace.step == "not made" else _not_durable()) from None
    return made


def _alone(
    ask: Ask[Any, Any], change: Callable[[], T], then: Callable[[T], None], deadline: float, *, is_asked_only: bool
) -> T:
    lock = _lock_of(ask.s)
    while not lock.acquire(timeout=LOOK_S):  # a request on another event loop makes a change
        from_thread.check_cancelled()
    try:
        made = _made(ask, change)
        if is_asked_only:
            ask.trace.step = "not made"
        else:
            from_thread.run(_carried_out, ask.s, deadline)  # the next request compares with what it finds
        then(made)
        return made
    finally:
        lock.release()


def _made(ask: Ask[Any, Any], change: Callable[[], T]) -> T:
    ask.trace.step = "unknown"
    try:
        made = change()
    except Exception as exc:
        if problem_of(exc) is not None:
            ask.trace.step = "not made"
        raise
    ask.trace.step = "made, not durable"
    return made


def _lock_of(s: Scheduler) -> Lock:
    with _making:
        return _locks.setdefault(s, Lock())


def _limiter_of(s: Scheduler) -> CapacityLimiter:
    try:
        found = _limiters.get()
    except LookupError:
        _limiters.set(found := WeakKeyDictionary())
    return found.setdefault(s, CapacityLimiter(1))


async def _carried_out(s: Scheduler, deadline: float) -> None:
    with anyio.CancelScope(deadline=deadline, shield=True):  # also for a client that has left
        await s.turn()


async def durable(ask: Ask[Any, Any], id: str | None = None) -> None:
    """Return when all changes of this request are durable. `id`: the job that it has put.

    Raises DuplicateJob if another node has put that job, and Problem if the store does not answer in time.
    """
    ask.trace.step = "made, not durable"
    try:
        with anyio.fail_after(WITHIN_S):
            try:
                await ask.s.flush()
            except DuplicateJob as exc:
                if id is not None and repr(id) in str(exc):
                    raise
                await ask.s.flush()  # that was about another request's job, in the same commit
    except TimeoutError:
        raise _not_durable() from None
    ask.trace.step = "made"


def _busy() -> Problem:
    return unavailable(f"other changes have not ended for {WITHIN_S:g} s: nothing has changed")


def _not_durable() -> Problem:
    return unavailable(
        f"the change is not durable after {WITHIN_S:g} s, because the store does not answer: it holds in this process, "
        "and is stored as soon as the store answers"
    )

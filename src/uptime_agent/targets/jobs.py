"""The jobs that check a target."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from schedule import After, Every, Missed
from scheduler import InvalidJob, JobNotFound, Overlap, Scheduler

from ..checks import STEPS, TIMEOUT_OF_ALWAYS, Mode, PushCheck, StepsCheck
from ..config import Start, Target
from ..standing import TASK

Vote = Callable[[str], Awaitable[object]]
"""Checks a target and votes."""

CUT_OFF_AFTER: Final = 5.0
"""Seconds after all timeouts at which a hanging check is cut off."""

SHORTEST_GRACE: Final = 1.0
GRACE_OF_CALENDARS: Final = 60.0

HEARD_WITHIN: Final = 1.0
"""Seconds until other nodes have a vote."""

MOST_VOTES: Final = 100
"""The most checks of one target that run at a time to vote."""

VOTE: Final = "vote:"
"""Prefix of the ids of jobs that vote. No store has them."""


def add_job(
    scheduler: Scheduler,
    target: Target,
    start: Start | datetime | None,
    gate: float,
    *,
    is_patient: bool = False,
    owner: str | None = None,
) -> None:
    """Add or update a target's job. Raises InvalidJob if its schedule is over.

    `gate`: seconds that a failed check may take to learn whether we are offline. `owner`: the file that names it.
    """
    # Each address of Mode.ALL, and each redirect, waits for room by itself, so only these parts have timeouts.
    waits_inside = target.mode is Mode.ALL or target.kind == STEPS or getattr(target.check, "redirects", 0) > 0
    needs: tuple[str, ...] = target.needs
    timeout = None if waits_inside else target.max_attempts * target.timeout + gate + CUT_OFF_AFTER
    if target.quorum is not None:  # the job waits for votes, and asks no host itself
        timeout, needs = patience_of(target, gate) + CUT_OFF_AFTER, ()
    is_push = isinstance(target.check, PushCheck)  # the next run judges a signal that comes during a run
    try:
        scheduler.add(
            TASK,
            target.schedule,
            id=target.name,
            args=(target.name,),
            needs=needs,
            timeout=timeout,
            overlap=Overlap.QUEUE if is_push else Overlap.SKIP,
            missed=Missed.LATEST if is_patient else Missed.SKIP,
            grace=grace_of(target),
            start=start,
            on_conflict="update",
            tags=(TASK, *target.tags),
            owner=owner,
        )
    except InvalidJob as exc:  # only the clock can say that a schedule is over
        msg = f"check {target.name!r}: {exc}"
        raise InvalidJob(msg) from None


def add_vote(scheduler: Scheduler, vote: Vote, target: Target, gate: float) -> None:
    """Add or update this node's job for votes.

    Slow checks may overlap, because nodes that skip instants might never vote together.
    """
    scheduler.add(
        vote,
        target.schedule.bind(target.name),
        id=VOTE + target.name,
        args=(target.name,),
        needs=target.needs,
        timeout=grace_of(target) + longest(target) + gate + CUT_OFF_AFTER,
        overlap=Overlap.ALLOW,
        max_running=MOST_VOTES,
        missed=Missed.SKIP,
        grace=grace_of(target),
        on_conflict="update",
        durable=False,
    )


def is_ours(scheduler: Scheduler, name: str) -> bool:
    """Whether no other node has the target."""
    with suppress(JobNotFound):  # its schedule has ended
        return scheduler.get(name).is_ours
    return True


def is_new(scheduler: Scheduler, name: str) -> bool:
    """Whether the job has ended no run: any history is older than the job."""
    try:
        found = scheduler.get(name).statistics()
    except JobNotFound:  # its schedule has ended
        return False
    return found.runs - found.running <= 0


def holds(target: Target, gate: float, ended: float) -> float:
    """The seconds from a check's end to the latest end of the next. `gate`: see `add_job`."""
    schedule = target.schedule
    allowed = grace_of(target) + longest(target) + gate
    if isinstance(schedule, (Every, After)):
        return schedule.interval.total_seconds() + allowed
    following = schedule.next(datetime.fromtimestamp(ended, UTC))
    return math.inf if following is None else following.timestamp() - ended + allowed


def longest(target: Target) -> float:
    """The most seconds that a check takes, all attempts included."""
    timeout = target.timeout * (2 if target.mode is Mode.ALL else 1)
    if isinstance(target.check, StepsCheck):
        timeout += sum(each.timeout or TIMEOUT_OF_ALWAYS for each in target.check.steps if each.is_always)
    return target.max_attempts * timeout


def grace_of(target: Target) -> float:
    """The seconds that a check may be late.

    A check that would be later, as after a downtime, is left out, so that other checks are on time. A push target's
    interval does not count: a later check would call it silent, though we did not listen.
    """
    schedule = target.schedule
    if isinstance(schedule, (Every, After)) and not isinstance(target.check, PushCheck):
        return max(schedule.interval.total_seconds() / 10, SHORTEST_GRACE)
    return GRACE_OF_CALENDARS


def patience_of(target: Target, gate: float) -> float:
    """The seconds after the due instant within which all nodes vote."""
    return grace_of(target) + longest(target) + gate + HEARD_WITHIN

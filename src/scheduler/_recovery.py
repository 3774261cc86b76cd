"""What follows when a scheduler starts again: after a crash of its process, and after any downtime. Pure.

A tick that is found RUNNING at the start is a crash. What happens then:

    found -> nothing of its job starts before the floor -> the same tick again (at least once)
                                                        -> the next regular start from there on (at most once)

The floor is counted once, from the moment when the crash was found, and stored: finding it again, after yet another
start, does not move it. Two ticks of one job that one death has ended are one crash of that job.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ._planner import Gap, Grid, Planner
from ._policy import Delivery, Policy

QUARANTINE_AFTER: Final = 3
"""Deaths in a row under one job after which it does not start by itself any more: it may be what kills."""

FAR: Final = 86_400_000_000
"""Microseconds. A calendar start that is no further ahead than this is taken as it is stored."""

LONGEST_FLOOR: Final = 86_400_000_000
"""Microseconds. A rule of retries without a cap postpones a job no further than this."""


@frozen
class Aftermath:
    """What follows a crash. Instants in UTC microseconds.

    `not_before_us`: no start of the job before then. `retry_at_us`: when the lost tick is tried again, and
    `retry_attempt`: which attempt that will be; None: it is not. `quarantine`: why the job is to be paused.
    """

    not_before_us: int
    retry_at_us: int | None = None
    retry_attempt: int | None = None
    quarantine: str | None = None


def after_crash(
    now_us: int,
    crash_floor_us: int,
    consecutive_crashes: int,
    delivery: Delivery,
    policy: Policy,
    *,
    attempt: int,
    interval: int | None,
    random: float,
    not_before_us: int | None = None,
) -> Aftermath:
    """Decide what follows a crash that was found at `now_us`.

    `consecutive_crashes`: deaths under this job in a row, this one included. `attempt`: of the lost tick. `interval`:
    of the job's schedule, in microseconds. `random`: in [0, 1). `not_before_us`: the floor that is stored for the
    job; if it is still to come, this crash is one that it stands for already, because nothing starts before it.
    """
    floor = not_before_us
    if floor is None or floor <= now_us:
        floor = now_us + max(crash_floor_us, _back_off(consecutive_crashes, policy, interval, random))
    if consecutive_crashes >= QUARANTINE_AFTER:
        return Aftermath(
            floor, quarantine=f"quarantined: its process died under it {consecutive_crashes} times in a row"
        )
    if delivery is Delivery.AT_LEAST_ONCE:
        return Aftermath(floor, floor, attempt + 1)
    return Aftermath(floor)


def _back_off(crashes: int, policy: Policy, interval: int | None, random: float) -> int:
    """Microseconds by the job's own rule of retries. Whether it has retries left does not matter here."""
    if policy.retry is None:
        return 0
    seconds = policy.retry.delay(crashes, random, None if interval is None else interval * 1e-6)
    return min(int(seconds * 1e6), LONGEST_FLOOR)


@frozen
class Return:
    """How a job comes back. `due_us`: its next start, which may have passed: what then runs is the policy's to say,
    when it fires. None: it has none. `skipped`: regular starts that the floor after a crash has cost it.
    """

    due_us: int | None
    skipped: Gap | None = None


def after_downtime(
    planner: Planner,
    key: str,
    policy: Policy,
    now_us: int,
    *,
    next_us: int | None,
    is_by_hand: bool = False,
    not_before_us: int | None = None,
    last_finish_us: int | None = None,
) -> Return:
    """Plan the next regular start of the job `key` from what is stored of it.

    All instants in microseconds on the planner's base. `next_us`: None for a job that has not been planned, and for
    one that counts from the end of a run: then it starts its interval after `last_finish_us`, or at once.
    """
    due = _as_stored(planner, key, now_us, next_us, last_finish_us)
    if due is not None and due > now_us and not is_by_hand:
        due = _not_too_far(planner, key, now_us, due)
    if not_before_us is not None:
        not_before_us = min(not_before_us, now_us + LONGEST_FLOOR)
    floor = not_before_us
    if due is None or floor is None or floor <= now_us or floor <= due:
        return Return(due)
    if is_by_hand or planner.waits_for_end:
        return Return(floor)
    gap = planner.gap(due, floor - 1, policy)
    if gap.following is None:  # its last start: late is better than never
        return Return(floor)
    return Return(gap.following, _all_missed(due, gap))


def _as_stored(planner: Planner, key: str, now_us: int, next_us: int | None, last_finish_us: int | None) -> int | None:
    if next_us is not None:
        return next_us
    if not planner.waits_for_end:
        return planner.first(key, now_us)
    return now_us if last_finish_us is None else planner.following(last_finish_us)


def _not_too_far(planner: Planner, key: str, now_us: int, due: int) -> int:
    """A start that the wall clock planned while it was far ahead comes no later than the schedule says now."""
    if planner.waits_for_end:
        return min(due, now_us + (planner.interval or 0))
    if isinstance(planner, Grid):
        return due - (due - now_us - 1) // planner.interval * planner.interval
    if due - now_us <= FAR:
        return due
    first = planner.first(key, now_us)
    second = None if first is None else planner.following(first)
    return due if first is None or second is None or due <= second else first


def _all_missed(due: int, gap: Gap) -> Gap:
    """The same gap with nothing of it run."""
    last = gap.run[-1] if gap.run else gap.last_missed
    return Gap((), gap.following, gap.missed + len(gap.run), due, last, gap.is_exact)

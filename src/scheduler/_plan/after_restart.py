"""The rules when a scheduler starts again, after a crash of its process or any downtime. Pure.

A tick found RUNNING at the start is a crash. Then:

    found -> no start of its job before the floor -> the same tick again (at least once)
                                                  -> the next regular start from there on (at most once)

The floor is counted once, from when the crash was found, and stored: further restarts do not move it. A second death,
during a run by hand while the job rests, has a floor of its own. Two ticks of one job that one death has ended are one
crash of that job.

A stored next start is a slot of the schedule that gave it, on the clock by which it was planned. With another schedule,
or a corrected clock, it is neither. So no stored start keeps a job waiting longer than its own schedule would now.
"""

from __future__ import annotations

from typing import Final

from attrs import define, frozen

from .._values import Policy
from .planner import Gap, Planner

QUARANTINE_AFTER: Final = 3
"""Deaths in a row during one job's runs after which it no longer starts by itself: it may cause them."""

_MOST_RANDOM: Final = 1 - 2**-53

LONGEST_FLOOR: Final = 86_400_000_000
"""Microseconds. A rule of retries without a cap postpones a job no further than this."""


@define
class CrashFloor:
    """A rest after a crash: no start of the job before `until_us`, in UTC microseconds.

    `first_us`: the first regular start that the rest costs. It is missed when the rest is over, or forgiven.
    """

    until_us: int
    first_us: int | None = None


@frozen
class Aftermath:
    """The consequences of a crash. `not_before_us`: no start of the job before then, in UTC microseconds.

    `quarantine`: why the job must be paused; None: it need not.
    """

    not_before_us: int
    quarantine: str | None = None


def after_crash(
    now_us: int,
    crash_floor_us: int,
    consecutive_crashes: int,
    policy: Policy,
    *,
    interval: int | None,
    random: float,
    not_before_us: int | None = None,
) -> Aftermath:
    """Decide what follows a crash that was found at `now_us`.

    `consecutive_crashes`: deaths during this job's runs in a row, this one included. `interval`: of the job's schedule,
    in microseconds. `random`: in [0, 1). `not_before_us`: the stored floor of an earlier crash; a run by hand may have
    begun under it.
    """
    floor = now_us + max(crash_floor_us, _back_off(consecutive_crashes, policy, interval, random))
    if not_before_us is not None:
        floor = max(floor, not_before_us)
    if consecutive_crashes >= QUARANTINE_AFTER:
        return Aftermath(floor, f"quarantined: its process died under it {consecutive_crashes} times in a row")
    return Aftermath(floor)


def rest_until(
    not_before_us: int | None,
    now_us: int,
    crash_floor_us: int,
    consecutive_crashes: int,
    policy: Policy,
    *,
    interval: int | None,
) -> int | None:
    """Return the stored floor as far as it still holds. None: it is over.

    It holds no longer than the longest rest after a crash found now: the clock may have been ahead when it was stored.
    """
    if not_before_us is None or not_before_us <= now_us:
        return None
    longest = int(min(_longest_delay(consecutive_crashes, policy, interval), LONGEST_FLOOR))
    return min(not_before_us, now_us + max(crash_floor_us, longest))


def retry_by(retry_at_us: int, now_us: int, failures: int, policy: Policy, *, interval: int | None) -> int:
    """Return when a stored retry comes: not later than a retry after a failure now."""
    return min(retry_at_us, now_us + int(_longest_delay(failures, policy, interval)))


def _back_off(crashes: int, policy: Policy, interval: int | None, random: float) -> int:
    return int(min(_delay(crashes, policy, interval, random), LONGEST_FLOOR))


def _longest_delay(count: int, policy: Policy, interval: int | None) -> float:
    return max(_delay(max(count, 1), policy, interval, random) for random in (0.0, _MOST_RANDOM))


def _delay(count: int, policy: Policy, interval: int | None, random: float) -> float:
    """Return microseconds by the job's own rule of retries, whether or not it has retries left."""
    if policy.retry is None:
        return 0.0
    return policy.retry.delay(count, random, None if interval is None else interval * 1e-6) * 1e6


@frozen
class Return:
    """How a job comes back. `due_us`: its next start; None: it has none.

    A start that has passed is left to the policy, when it fires. `skipped`: regular starts that the floor after a crash
    has cost. `is_by_hand`: the start was set by hand.
    """

    due_us: int | None
    skipped: Gap | None = None
    is_by_hand: bool = False


def after_downtime(
    planner: Planner,
    key: str,
    policy: Policy,
    now_us: int,
    *,
    next_us: int | None,
    is_by_hand: bool = False,
    is_of_another: bool = False,
    not_before_us: int | None = None,
    last_finish_us: int | None = None,
) -> Return:
    """Plan the next regular start of the job `key` from its stored state.

    All instants in microseconds on the planner's base. `next_us`: None for a job that has not been planned, or that
    counts from the end of a run. Such a job starts its interval after `last_finish_us`, or at once. `is_of_another`: a
    schedule that is no longer the job's gave it. Then it counts only if it was set by hand and is still to come.
    """
    if is_of_another and not (is_by_hand and next_us is not None and next_us > now_us):
        next_us, is_by_hand = None, False
    due = _as_stored(planner, key, now_us, next_us, last_finish_us)
    if next_us is not None and due is not None and not is_by_hand:
        due = _in_place(planner, key, now_us, due)
    floor = not_before_us
    if due is None or floor is None or floor <= now_us or floor <= due:
        return Return(due, is_by_hand=is_by_hand and due is not None)
    if is_by_hand or planner.waits_for_end:
        return Return(floor, is_by_hand=is_by_hand)
    gap = planner.gap(due, floor - 1, policy)
    if gap.following is None:  # its last start: late is better than never
        return Return(floor)
    return Return(gap.following, _all_missed(due, gap))


def _as_stored(planner: Planner, key: str, now_us: int, next_us: int | None, last_finish_us: int | None) -> int | None:
    if next_us is not None:
        return next_us
    if not planner.waits_for_end:
        return planner.first(key, now_us)
    return now_us if last_finish_us is None else planner.following(min(last_finish_us, now_us))


def _in_place(planner: Planner, key: str, now_us: int, due: int) -> int | None:
    """Return the start as a slot of the schedule on today's clock, no further ahead than that has it."""
    if planner.waits_for_end:
        return min(due, now_us + (planner.interval or 0))
    slot = planner.slot(key, due)
    if slot is None or slot <= now_us:
        return slot
    if planner.steady:
        return planner.first(key, now_us)
    return planner.replanned(due, now_us)


def _all_missed(due: int, gap: Gap) -> Gap:
    """Return the gap with none of its starts run."""
    last = gap.run[-1] if gap.run else gap.last_missed
    return Gap((), gap.following, gap.missed + len(gap.run), due, last, gap.is_exact)

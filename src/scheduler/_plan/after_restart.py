"""The rules after a crash or any downtime. Pure.

A tick found RUNNING at the start is a crash. Then:

    found -> no start of its job before the floor -> the same tick again (at least once)
                                                  -> the next regular start (at most once)

The floor counts from when the crash was first found: further restarts do not move it. One death is one crash, even of
several ticks.

A stored start may come from another schedule or a wrong clock. So it keeps no job waiting longer than its schedule
would now.
"""

from __future__ import annotations

from typing import Final

from attrs import define, frozen

from .._values import Policy
from .planner import Gap, Planner

QUARANTINE_AFTER: Final = 3
"""Deaths in a row during a job's runs until it is paused: it may cause them."""

_MOST_RANDOM: Final = 1 - 2**-53

LONGEST_FLOOR: Final = 86_400_000_000
"""Microseconds, for a retry rule without a cap."""


@define
class CrashFloor:
    """The job does not start before `until_us`, in UTC microseconds.

    `first_us`: the first start that this costs: missed afterwards, or forgiven.
    """

    until_us: int
    first_us: int | None = None


@frozen
class Aftermath:
    """No start before `not_before_us` (UTC microseconds), and why to pause the job, if so."""

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
    """`consecutive_crashes` includes this one. `interval`: microseconds. `random`: in [0, 1).

    `not_before_us`: an earlier crash's floor, under which a run by hand may have begun.
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
    """Return the stored floor if it still holds.

    No longer than a rest that begins now: the clock may have been ahead when it was stored.
    """
    if not_before_us is None or not_before_us <= now_us:
        return None
    longest = int(min(_longest_delay(consecutive_crashes, policy, interval), LONGEST_FLOOR))
    return min(not_before_us, now_us + max(crash_floor_us, longest))


def retry_by(retry_at_us: int, now_us: int, failures: int, policy: Policy, *, interval: int | None) -> int:
    """No later than a retry after a failure now."""
    return min(retry_at_us, now_us + int(_longest_delay(failures, policy, interval)))


def _back_off(crashes: int, policy: Policy, interval: int | None, random: float) -> int:
    return int(min(_delay(crashes, policy, interval, random), LONGEST_FLOOR))


def _longest_delay(count: int, policy: Policy, interval: int | None) -> float:
    return max(_delay(max(count, 1), policy, interval, random) for random in (0.0, _MOST_RANDOM))


def _delay(count: int, policy: Policy, interval: int | None, random: float) -> float:
    """Microseconds, even if no retry is left."""
    if policy.retry is None:
        return 0.0
    return policy.retry.delay(count, random, None if interval is None else interval * 1e-6) * 1e6


@frozen
class Return:
    """`due_us`: the next start; its policy decides about a passed one. `skipped`: what the floor cost."""

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
    """Plan the next regular start, in microseconds on the planner's base.

    `next_us` None: not planned yet, or it counts from `last_finish_us`. `is_of_another`: a former schedule gave
    `next_us`. It then counts only if set by hand and to come.
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
    """The slot by today's clock, no later than the schedule has it."""
    if planner.waits_for_end:
        return min(due, now_us + (planner.interval or 0))
    slot = planner.slot(key, due)
    if slot is None or slot <= now_us:
        return slot
    if planner.steady:
        return planner.first(key, now_us)
    return planner.replanned(due, now_us)


def _all_missed(due: int, gap: Gap) -> Gap:
    last = gap.run[-1] if gap.run else gap.last_missed
    return Gap((), gap.following, gap.missed + len(gap.run), due, last, gap.is_exact)

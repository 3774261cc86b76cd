"""What to do about missed slots, without walking over them."""

from datetime import UTC, datetime, timedelta

import pytest
from attrs import field, frozen
from hypothesis import given, strategies as st

from schedule import After, At, Calendar, Catchup, Cron, Every, Missed, Schedule, ScheduleError, catch_up

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND, MINUTE, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)
EACH_MINUTE = Every("1m")


@frozen
class Counted(Schedule):
    """A schedule with nothing but next, which counts how often it is asked."""

    inner: Schedule
    asked: list = field(factory=list, eq=False)

    def next(self, after):
        self.asked.append(after)
        return self.inner.next(after)


def caught_up(policy, gap=4 * MINUTE + 10 * SECOND, *, schedule=EACH_MINUTE, grace=15 * SECOND, cap=100):
    """Catch up from noon on."""
    return catch_up(schedule, NOON, NOON + gap, policy, grace=grace, cap=cap)


def at(*minutes):
    """Return instants in minutes after noon."""
    return tuple(NOON + MINUTE * each for each in minutes)


def test_latest_runs_the_newest_however_late():
    """One run for the whole gap, at its newest slot."""
    assert caught_up(Missed.LATEST) == Catchup(
        run=at(4), missed=4, exact=True, first_missed=NOON, last_missed=NOON + 3 * MINUTE
    )


def test_skip_runs_the_newest_if_the_grace_allows():
    """Ten seconds late with a grace of fifteen is on time."""
    assert caught_up(Missed.SKIP) == caught_up(Missed.LATEST)


def test_skip_runs_nothing_past_the_grace():
    """Then every slot is missed, the newest too."""
    assert caught_up(Missed.SKIP, grace=9 * SECOND) == Catchup(
        run=(), missed=5, exact=True, first_missed=NOON, last_missed=NOON + 4 * MINUTE
    )


def test_the_grace_is_inclusive():
    """Exactly as late as allowed is allowed."""
    assert caught_up(Missed.SKIP, grace=10 * SECOND).run == at(4)


def test_all_runs_every_slot_oldest_first():
    """Nothing is missed."""
    assert caught_up(Missed.ALL) == Catchup(
        run=at(0, 1, 2, 3, 4), missed=0, exact=True, first_missed=None, last_missed=None
    )


def test_all_is_capped_at_the_newest():
    """The oldest are those that are worth least."""
    assert caught_up(Missed.ALL, cap=2) == Catchup(
        run=at(3, 4), missed=3, exact=True, first_missed=NOON, last_missed=NOON + 2 * MINUTE
    )
    assert caught_up(Missed.ALL, cap=0).run == ()


@pytest.mark.parametrize("policy", Missed)
def test_a_slot_on_time_is_run_by_every_policy(policy):
    """One slot, due right now."""
    assert caught_up(policy, timedelta(0)) == Catchup(
        run=(NOON,), missed=0, exact=True, first_missed=None, last_missed=None
    )


@pytest.mark.parametrize("policy", Missed)
def test_nothing_is_due_before_its_time(policy):
    """A clock that was set back owes nothing."""
    assert caught_up(policy, -SECOND) == Catchup(run=(), missed=0, exact=True, first_missed=None, last_missed=None)


def test_what_was_due_may_lie_beside_the_grid():
    """A first start at once is a slot of its own, in front of those of the grid."""
    due = NOON + 7 * SECOND
    assert catch_up(Every("1m"), due, NOON + 2 * MINUTE, Missed.ALL, grace=SECOND).run == (due, *at(1, 2))
    assert catch_up(Cron("* * * * *"), due, NOON + 2 * MINUTE, Missed.ALL, grace=SECOND).run == (due, *at(1, 2))


def test_a_pause_has_one_slot_only():
    """There is no next before the end of the run, so a day of downtime has missed nothing."""
    assert caught_up(Missed.ALL, DAY, schedule=After("1m")).run == (NOON,)
    assert caught_up(Missed.LATEST, DAY, schedule=After("1m")).missed == 0
    assert caught_up(Missed.SKIP, DAY, schedule=After("1m")).missed == 1


def test_once_is_once():
    """A single instant that passed is one missed slot or one late run."""
    assert caught_up(Missed.LATEST, DAY, schedule=At(NOON)).run == (NOON,)


def test_ten_years_of_seconds_are_counted_exactly():
    """315 million slots by arithmetic."""
    gap = 3650 * DAY
    found = caught_up(Missed.LATEST, gap, schedule=Every("1s"))
    assert (found.run, found.missed, found.exact) == ((NOON + gap,), 315_360_000, True)


@pytest.mark.parametrize(
    ("inner", "policy", "most"),
    [
        (Every("1s"), Missed.LATEST, 150),
        (Every("1s", jitter="900ms").bind("web"), Missed.SKIP, 150),
        (Cron("*/5 * * * * *", tz="Europe/Berlin"), Missed.LATEST, 200),
        (Cron("*/5 9-17 * * mon-fri", tz="Europe/Berlin"), Missed.LATEST, 200),
        (Cron("0 0 29 2 *"), Missed.LATEST, 100),
        (Every("1s"), Missed.ALL, 500),
        (Cron("*/5 9-17 * * mon-fri", tz="Europe/Berlin"), Missed.ALL, 1500),
    ],
)
def test_a_schedule_with_next_alone_is_bisected(inner, policy, most):
    """Ten years take some hundred questions, not as many as there are slots."""
    counted, due, now = Counted(inner), inner.next(NOON), NOON + 3650 * DAY
    found = catch_up(counted, due, now, policy, grace=MINUTE)
    assert len(counted.asked) <= most
    assert found.run == catch_up(inner, due, now, policy, grace=MINUTE).run
    assert found.run == () or inner.next(found.run[-1]) > now


def test_uncounted_slots_are_a_lower_bound():
    """Where there is no formula, counting stops early and says so."""
    found = caught_up(Missed.LATEST, 365 * DAY, schedule=Cron("* * * * *"))
    assert not found.exact
    assert 0 < found.missed <= 365 * 24 * 60
    assert found.last_missed == NOON + 365 * DAY - MINUTE
    assert caught_up(Missed.LATEST, DAY, schedule=Cron("0 * * * *")).exact


MANY = {
    "8 h of a cron each minute": (Cron("* * * * *"), timedelta(hours=8), 480),
    "a month of minutes in Berlin": (Cron("* * * * *", tz="Europe/Berlin"), 31 * DAY, 31 * 24 * 60),
    "each second of a day": (Cron("* * * * * *"), DAY, 86_400),
    "ten years of days": (Calendar("1 day", origin=NOON), 3650 * DAY, 3650),
    "ten years of New Years in Berlin": (Cron("0 0 1 1 *", tz="Europe/Berlin"), 3650 * DAY, 10),
    "within bounds": (Cron("* * * * *").between(NOON, NOON + DAY), 8 * DAY, 1439),
}


@pytest.mark.parametrize(("schedule", "gap", "missed"), MANY.values(), ids=MANY)
def test_calendar_slots_are_counted_by_arithmetic(schedule, gap, missed):
    """They had been counted up to 32."""
    found = caught_up(Missed.LATEST, gap, schedule=schedule)
    assert (found.missed, found.exact) == (missed, True)


def test_a_union_has_at_least_as_many_slots_as_each_of_its_parts():
    """Slots that coincide are one, so that their counts cannot be added."""
    found = caught_up(Missed.LATEST, timedelta(hours=8), schedule=Cron("* * * * *") | Every("7m"))
    assert (found.missed, found.exact) == (1 + 479, False)
    found = caught_up(Missed.LATEST, timedelta(minutes=20), schedule=Cron("* * * * *") | Every("7m"))
    assert (found.missed, found.exact) == (20, True)


@pytest.mark.parametrize("change", [{"cap": -1}, {"schedule": Every("1m"), "grace": None}])
def test_nonsense_is_refused(change):
    """A negative cap; no grace."""
    with pytest.raises((ScheduleError, TypeError)):
        caught_up(Missed.ALL if "cap" in change else Missed.SKIP, **change)


@pytest.mark.parametrize(("due", "now"), [(datetime(2026, 1, 1), NOON), (NOON, datetime(2026, 4, 1))])
def test_naive_datetimes_are_refused(due, now):
    """The error says how to write it."""
    with pytest.raises(ScheduleError, match="tzinfo=UTC"):
        catch_up(Every("1m"), due, now, Missed.LATEST, grace=SECOND)


def test_a_schedule_that_stands_still_raises_instead_of_hanging():
    """The bisection of a liar ends with an error that names it."""

    @frozen
    class Still(Schedule):
        def next(self, after):
            return NOON

    with pytest.raises(ScheduleError, match="Still"):
        caught_up(Missed.LATEST, schedule=Still())


schedules = st.sampled_from(
    [
        Every("7s"),
        Every("10s", jitter="9s").bind("web"),
        Every("1m", anchor=NOON + 13 * SECOND),
        Cron("*/2 * * * *"),
        Cron("*/17 * * * * *"),
        Cron("*/10 2,3 * * *", tz="Europe/Berlin"),
        Every("1m") | Every("7m"),
        Cron("* * * * *").between(NOON, NOON + timedelta(minutes=10)),
        At(NOON) | At(NOON + MINUTE),
        Calendar("1 day", origin=NOON),
    ]
)
starts = st.sampled_from([NOON, datetime(2026, 3, 29, 0, 55, tzinfo=UTC), datetime(2026, 10, 25, 0, 20, tzinfo=UTC)])


@given(
    schedules, starts, st.timedeltas(timedelta(0), timedelta(minutes=25)), st.sampled_from(Missed), st.integers(0, 40)
)
def test_catching_up_equals_an_enumeration(schedule, start, gap, policy, cap):
    """On gaps short enough to walk over."""
    due = schedule.next(start - SECOND) or start
    now, grace, slots = due + gap, 30 * SECOND, [due]
    while (slot := schedule.next(slots[-1])) is not None and slot <= now:
        slots.append(slot)
    wanted = {Missed.LATEST: 1, Missed.SKIP: int(now - slots[-1] <= grace), Missed.ALL: cap}[policy]
    run = slots[max(0, len(slots) - wanted) :]
    missed = slots[: len(slots) - len(run)]
    found = catch_up(schedule, due, now, policy, grace=grace, cap=cap)
    assert found.run == tuple(run)
    assert (found.first_missed, found.last_missed) == ((missed[0], missed[-1]) if missed else (None, None))
    assert found.missed == len(missed) if found.exact else 0 < found.missed < len(missed)

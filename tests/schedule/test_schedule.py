"""What holds for every schedule, and how schedules combine."""

from datetime import UTC, datetime, timedelta

import pytest
from attrs import frozen
from hypothesis import given, strategies as st

import schedule
from schedule import After, At, Calendar, Cron, Every, Missed, Schedule, ScheduleError, Window, catch_up

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MICROSECOND, SECOND, MINUTE, HOUR, DAY = (timedelta(seconds=each) for each in (1e-6, 1, 60, 3600, 86_400))


@frozen
class Powers(Schedule):
    """A schedule as users write them: nothing but next; slots are noon plus 1, 2, 4, 8... seconds, 20 of them."""

    def next(self, after):
        return next((slot for power in range(20) if (slot := NOON + SECOND * 2**power) > after), None)


@frozen
class Liar(Schedule):
    """A schedule that breaks the promise to answer what is later."""

    answer: object

    def next(self, after):
        return self.answer


@frozen
class Asked(Schedule):
    """Another schedule, which notes how often it is asked, and bears it so many times."""

    schedule: Schedule
    questions: list
    most: int

    def next(self, after):
        self.questions.append(after)
        assert len(self.questions) < self.most
        return self.schedule.next(after)


def slots(schedule, count, after=NOON):
    """List the next slots, fewer if there are no more."""
    found = []
    while len(found) < count and (after := schedule.next(after)) is not None:
        found.append(after)
    return found


def seconds(schedule, count=8, after=NOON):
    """The same in seconds after noon."""
    return [(slot - NOON).total_seconds() for slot in slots(schedule, count, after)]


def test_a_union_has_the_slots_of_all_its_parts():
    """In order, and one where several parts have the same."""
    assert seconds(Every("4s") | Every("6s"), 6) == [4, 6, 8, 12, 16, 18]


def test_a_union_ends_with_its_last_part():
    """Never again means that no part comes again."""
    assert seconds(At(NOON + SECOND) | At(NOON + 3 * SECOND)) == [1, 3]


def test_unions_are_flat_values():
    """However they are nested; a union with something else is a type error."""
    a, b, c = Every("4s"), Every("6s"), After("7s")
    assert (a | b) | c == a | (b | c)
    assert len({a | b, a | b}) == 1
    with pytest.raises(TypeError):
        a | "@every 6s"


def test_bounds_include_the_start_and_not_the_end():
    """From start on, and before end: two bounded schedules that meet share no slot."""
    assert seconds(Every("10s").between(NOON + 20 * SECOND, NOON + 50 * SECOND)) == [20, 30, 40]
    assert seconds(Every("10s").between(end=NOON + 20 * SECOND)) == [10]
    assert seconds(Every("10s").between(NOON + 15 * SECOND), 2) == [20, 30]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Every("10s").between(NOON, NOON),
        lambda: Every("10s").between(NOON, NOON - SECOND),
        lambda: Every("1h").between(NOON + MINUTE, NOON + 2 * MINUTE),
        lambda: At(NOON).between(NOON + SECOND),
        lambda: At(NOON).between(end=NOON),
        lambda: Calendar("1 year", origin=NOON).between(end=NOON),
        lambda: Cron("0 0 0 1 1 * 2001").between(NOON),
        lambda: Every("10s").except_(Window(Every("1m"), "1m")),
        lambda: Every("10s").except_(Window(Every("1h"), "2h")),
        lambda: At(NOON).except_(Window(At(NOON), "1s")),
        lambda: Cron("0 0 * * *").except_(Window(Cron("0 0 * * *"), "1h")),
    ],
)
def test_what_never_comes_is_refused_when_it_is_made(make):
    """No clock is needed to see it."""
    with pytest.raises(ScheduleError, match=r"never comes|not later than the start|no slot outside"):
        make()


def test_windows_leave_out_what_lies_in_them():
    """A window includes its start and not its end."""
    maintenance = Window(At(NOON + 20 * SECOND), "30s", reason="new disks")
    assert seconds(Every("10s").except_(maintenance), 5) == [10, 50, 60, 70, 80]


def test_several_windows_may_overlap():
    """The next slot is outside all of them."""
    first, second = Window(At(NOON + 15 * SECOND), "20s"), Window(At(NOON + 30 * SECOND), "25s")
    assert seconds(Every("10s").except_(first, second), 4) == [10, 60, 70, 80]


def test_a_window_may_be_longer_than_the_time_between_its_starts():
    """It ends when no start covers the instant any more."""
    window = Window(Every("10s").between(NOON, NOON + MINUTE), "25s")
    assert seconds(Every("5s").except_(window), 2) == [75, 80]


def test_a_weekly_window_in_the_local_night():
    """Maintenance on Sundays from 02:00 for two hours of Berlin."""
    night = Window(Cron("0 2 * * sun", tz="Europe/Berlin"), "2h", reason="backup")
    found = slots(Cron("30 * * * *").except_(night), 24, datetime(2026, 3, 1, tzinfo=UTC))
    assert [slot.hour for slot in found if slot.day == 1] == [0, *range(3, 24)]


def test_a_window_tells_its_end_and_reason():
    """For whoever explains why nothing runs."""
    window = Window(At(NOON), "1m", reason="new disks")
    assert window.end(NOON - MICROSECOND) is None
    assert window.end(NOON) == NOON + MINUTE
    assert window.end(NOON + MINUTE - MICROSECOND) == NOON + MINUTE
    assert window.end(NOON + MINUTE) is None
    assert window.reason == "new disks"


@pytest.mark.parametrize("length", [0, "-1s", "foobar"])
def test_a_window_lasts_longer_than_nothing(length):
    """An empty window is a mistake."""
    with pytest.raises(ScheduleError):
        Window(At(NOON), length)


def test_binding_reaches_all_parts_but_windows():
    """Each job has its phase; maintenance is at the same time for all."""
    every, window = Every("10s"), Window(Every("1h"), "5m")
    combined = (every | Every("7s")).between(NOON, NOON + DAY).except_(window)
    bound = (every.bind("web") | Every("7s").bind("web")).between(NOON, NOON + DAY).except_(window)
    assert combined.bind("web") == bound
    assert bound.bind("other") == bound


def test_schedules_of_users_combine_like_ours():
    """A class with next alone works with everything."""
    powers = Powers()
    assert seconds(powers | Every("5s"), 6) == [1, 2, 4, 5, 8, 10]
    assert seconds(powers.between(NOON + 3 * SECOND, NOON + 20 * SECOND)) == [4, 8, 16]
    assert seconds(powers.except_(Window(At(NOON + 2 * SECOND), "3s")), 3) == [1, 8, 16]
    assert powers.bind("web") is powers
    found = catch_up(powers, NOON + SECOND, NOON + 100 * SECOND, Missed.ALL, grace=SECOND, cap=3)
    assert [(slot - NOON).total_seconds() for slot in found.run] == [16, 32, 64]
    assert found.missed == 4


@pytest.mark.parametrize("wrong", [NOON, NOON - SECOND, NOON.replace(tzinfo=None), 5, "later"])
def test_a_schedule_that_answers_wrongly_is_named(wrong):
    """Whatever it is combined with raises instead of running for ever."""
    with pytest.raises(ScheduleError, match=r"Liar|naive|datetime with a zone"):
        (Liar(wrong) | Every("10s")).next(NOON)


def test_windows_without_end_raise_instead_of_hanging():
    """The search for a slot outside gives up, and says where it was."""
    closed = Window(Every("1m").between(NOON), "1m")
    with pytest.raises(ScheduleError, match="no slot outside its windows"):
        Every("10s").except_(closed).next(NOON)


def test_windows_inside_of_windows_give_up_as_soon():
    """Otherwise each level would multiply the search of the one below, and a line of text could stop a program."""
    questions = []
    almost = Asked(Every("1s"), questions, most=10_000).except_(Window(Every("1h"), "59m"))
    with pytest.raises(ScheduleError, match="no slot outside its windows"):
        almost.except_(Window(almost, "1h"))
    one_level = len(questions)
    with pytest.raises(ScheduleError, match="no slot outside its windows"):
        almost.except_(Window(almost.between(end=NOON), "1h")).except_(Window(almost, "1h"))
    assert len(questions) - one_level < 1.1 * one_level


SCHEDULES = {
    "every": Every("7s"),
    "jittered": Every("10s", jitter="5s").bind("web"),
    "after": After("3s"),
    "at": At(NOON),
    "calendar": Calendar("1 month", origin=NOON, tz="Europe/Berlin"),
    "cron": Cron("*/7 1-5 * * *", tz="Europe/Berlin"),
    "fixed cron": Cron("30 2 * * *", tz="America/New_York"),
    "seconds": Cron("*/13 * * * * *"),
    "union": Every("1h") | Cron("15 * * * *", tz="Australia/Lord_Howe"),
    "bounded": Cron("0 * * * *").between(NOON, NOON + 30 * DAY),
    "excluding": Every("20m").except_(Window(Cron("0 2 * * *"), "90m")),
    "user's": Powers(),
}
every_kind = pytest.mark.parametrize("made", SCHEDULES.values(), ids=SCHEDULES.keys())
instants = st.datetimes(datetime(2025, 12, 1), datetime(2026, 12, 1), timezones=st.just(UTC)) | st.timedeltas(
    -HOUR, HOUR
).map(lambda delay: NOON + delay)


@every_kind
@given(after=instants, delay=st.timedeltas(timedelta(0), 3 * DAY))
def test_next_is_later_and_never_grows_smaller(made, after, delay):
    """Strictly later than asked; asked later, the answer is no earlier; None is for good."""
    found, later = made.next(after), made.next(after + delay)
    assert found is None or (found > after and found.utcoffset() == timedelta(0))
    assert later is None or (found is not None and found <= later)


@pytest.mark.parametrize("made", [each for name, each in SCHEDULES.items() if name != "after"])
@given(after=instants)
def test_asked_a_microsecond_before_a_slot_the_slot_is_next(made, after):
    """A slot is a slot, wherever one asks from. A pause has no slots of its own."""
    found = made.next(after)
    assert found is None or made.next(found - MICROSECOND) == found


@every_kind
def test_schedules_are_hashable_values(made):
    """They stand in sets and as keys, and nothing can be set on them."""
    assert len({made, made}) == 1
    with pytest.raises(AttributeError):
        made.interval = 5


@given(
    instants,
    st.lists(st.sampled_from([made for name, made in SCHEDULES.items() if name != "after"]), min_size=2, max_size=4),
)
def test_a_union_is_the_minimum(after, parts):
    """Of the answers of its parts."""
    union = parts[0]
    for part in parts[1:]:
        union |= part
    answers = [found for part in parts if (found := part.next(after)) is not None]
    assert union.next(after) == min(answers, default=None)


@given(instants, st.integers(1, 59), st.integers(1, 200))
def test_no_slot_lies_in_a_window(after, minute, minutes):
    """And each slot of the schedule that lies in none is kept."""
    window, inner = Window(Cron(f"{minute} */4 * * *"), MINUTE * minutes), Every("7m")
    expected = [slot for slot in slots(inner, 60, after) if window.end(slot) is None]
    assert slots(inner.except_(window), len(expected), after) == expected


def test_the_public_names_are_these():
    """What the package promises; more would be a promise by accident."""
    assert set(schedule.__all__) == {
        "After", "At", "Calendar", "Catchup", "Cron", "Every", "LAST_INSTANT", "Missed", "Schedule",
        "ScheduleError", "Window", "catch_up", "duration", "parse", "phase", "phase_us", "shown", "text_of", "utc",
    }  # fmt: skip


def test_the_error_is_a_value_error():
    """Bad input is caught as such by whoever does not know this package."""
    assert issubclass(ScheduleError, ValueError)

"""Cron expressions: what is read and what it means, in UTC; clocks that change have a file of their own."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter
from cronsim import CronSim
from hypothesis import assume, given, strategies as st

import schedule
from schedule import Cron, ScheduleError

START = datetime(2026, 3, 1, 11, 58, 30, tzinfo=UTC)  # a Sunday


def slots(cron, count, after=START):
    """List the next slots."""
    found = []
    for _ in range(count):
        after = cron.next(after)
        found.append(after)
    return found


def shown(expression, count=3, after=START, key="web"):
    """Write the next slots down."""
    return [f"{slot:%Y-%m-%d %H:%M:%S}" for slot in slots(Cron(expression).bind(key), count, after)]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("* * * * *", ["2026-03-01 11:59:00", "2026-03-01 12:00:00", "2026-03-01 12:01:00"]),
        ("*/15 4 * 2 *", ["2027-02-01 04:00:00", "2027-02-01 04:15:00", "2027-02-01 04:30:00"]),
        ("0 9 * * mon-fri", ["2026-03-02 09:00:00", "2026-03-03 09:00:00", "2026-03-04 09:00:00"]),
        ("0 9 * * MON", ["2026-03-02 09:00:00", "2026-03-09 09:00:00", "2026-03-16 09:00:00"]),
        ("0 0 1 jan,Jul *", ["2026-07-01 00:00:00", "2027-01-01 00:00:00", "2027-07-01 00:00:00"]),
        ("0 0 29 2 *", ["2028-02-29 00:00:00", "2032-02-29 00:00:00", "2036-02-29 00:00:00"]),
        # Six fields are seconds first.
        ("*/20 * * * * *", ["2026-03-01 11:58:40", "2026-03-01 11:59:00", "2026-03-01 11:59:20"]),
        ("30 59 23 31 12 *", ["2026-12-31 23:59:30", "2027-12-31 23:59:30", "2028-12-31 23:59:30"]),
        # Seven: a year last.
        ("0 0 0 1 1 * 2028-2099/2", ["2028-01-01 00:00:00", "2030-01-01 00:00:00", "2032-01-01 00:00:00"]),
        # Both 0 and 7 are Sunday.
        ("0 0 * * 0", ["2026-03-08 00:00:00", "2026-03-15 00:00:00", "2026-03-22 00:00:00"]),
        ("0 0 * * 7", ["2026-03-08 00:00:00", "2026-03-15 00:00:00", "2026-03-22 00:00:00"]),
        ("0 0 * * 6-7", ["2026-03-07 00:00:00", "2026-03-08 00:00:00", "2026-03-14 00:00:00"]),
        ("0 0 * * 0-7", ["2026-03-02 00:00:00", "2026-03-03 00:00:00", "2026-03-04 00:00:00"]),
        ("0 0 * * sat-sun", ["2026-03-07 00:00:00", "2026-03-08 00:00:00", "2026-03-14 00:00:00"]),
        # Ranges past the end go on at the start.
        ("0 0 * * fri-mon", ["2026-03-02 00:00:00", "2026-03-06 00:00:00", "2026-03-07 00:00:00"]),
        ("0 22-1 * * *", ["2026-03-01 22:00:00", "2026-03-01 23:00:00", "2026-03-02 00:00:00"]),
        ("0 0 1 11-2/2 *", ["2026-11-01 00:00:00", "2027-01-01 00:00:00", "2027-11-01 00:00:00"]),
        # croniter takes an equal range for the whole cycle.
        ("0 0 1-1 * *", ["2026-04-01 00:00:00", "2026-05-01 00:00:00", "2026-06-01 00:00:00"]),
        # A start with a step runs to the end of the field, and may be one value.
        ("10/20 * * * *", ["2026-03-01 12:10:00", "2026-03-01 12:30:00", "2026-03-01 12:50:00"]),
        ("59/15 * * * *", ["2026-03-01 11:59:00", "2026-03-01 12:59:00", "2026-03-01 13:59:00"]),
        ("0 0 * * 7/3", ["2026-03-04 00:00:00", "2026-03-07 00:00:00", "2026-03-08 00:00:00"]),
        ("0 0 * * 6/1", ["2026-03-07 00:00:00", "2026-03-14 00:00:00", "2026-03-21 00:00:00"]),
        ("*/90 * * * *", ["2026-03-01 12:00:00", "2026-03-01 13:00:00", "2026-03-01 14:00:00"]),
        # Either day is enough, unless one of the fields starts with a star.
        ("0 0 13 * fri", ["2026-03-06 00:00:00", "2026-03-13 00:00:00", "2026-03-20 00:00:00"]),
        ("0 0 */2 * mon", ["2026-03-09 00:00:00", "2026-03-23 00:00:00", "2026-04-13 00:00:00"]),
        ("0 0 1-7 * */1", ["2026-03-02 00:00:00", "2026-03-03 00:00:00", "2026-03-04 00:00:00"]),
        ("0 0 ? * mon", ["2026-03-02 00:00:00", "2026-03-09 00:00:00", "2026-03-16 00:00:00"]),
        # L, W and #.
        ("0 0 L * *", ["2026-03-31 00:00:00", "2026-04-30 00:00:00", "2026-05-31 00:00:00"]),
        ("0 0 LW * *", ["2026-03-31 00:00:00", "2026-04-30 00:00:00", "2026-05-29 00:00:00"]),
        ("0 0 15W * *", ["2026-03-16 00:00:00", "2026-04-15 00:00:00", "2026-05-15 00:00:00"]),
        ("0 0 1w * *", ["2026-03-02 00:00:00", "2026-04-01 00:00:00", "2026-05-01 00:00:00"]),
        ("0 0 1W 8 *", ["2026-08-03 00:00:00", "2027-08-02 00:00:00", "2028-08-01 00:00:00"]),
        ("0 0 31W 5 *", ["2026-05-29 00:00:00", "2027-05-31 00:00:00", "2028-05-31 00:00:00"]),
        ("0 0 1,15W,L * *", ["2026-03-16 00:00:00", "2026-03-31 00:00:00", "2026-04-01 00:00:00"]),
        ("0 0 30-L * *", ["2026-03-30 00:00:00", "2026-03-31 00:00:00", "2026-04-30 00:00:00"]),
        ("0 0 * * fri#2", ["2026-03-13 00:00:00", "2026-04-10 00:00:00", "2026-05-08 00:00:00"]),
        ("0 0 * * 5#5", ["2026-05-29 00:00:00", "2026-07-31 00:00:00", "2026-10-30 00:00:00"]),
        ("0 0 * * sat-sun#1", ["2026-03-07 00:00:00", "2026-04-04 00:00:00", "2026-04-05 00:00:00"]),
        ("0 0 * * mon-mon#2", ["2026-03-09 00:00:00", "2026-04-13 00:00:00", "2026-05-11 00:00:00"]),
        ("0 0 * * 7#1", ["2026-04-05 00:00:00", "2026-05-03 00:00:00", "2026-06-07 00:00:00"]),
        ("0 0 * * friL", ["2026-03-27 00:00:00", "2026-04-24 00:00:00", "2026-05-29 00:00:00"]),
        ("0 0 * * 5L", ["2026-03-27 00:00:00", "2026-04-24 00:00:00", "2026-05-29 00:00:00"]),
        ("0 0 * * L5", ["2026-03-27 00:00:00", "2026-04-24 00:00:00", "2026-05-29 00:00:00"]),
        ("0 0 * * tue,friL", ["2026-03-03 00:00:00", "2026-03-10 00:00:00", "2026-03-17 00:00:00"]),
        # croniter wants both W and a weekday; the rule of the star is the same for all.
        ("0 0 15W * sun", ["2026-03-08 00:00:00", "2026-03-15 00:00:00", "2026-03-16 00:00:00"]),
        # Nicknames.
        ("@hourly", ["2026-03-01 12:00:00", "2026-03-01 13:00:00", "2026-03-01 14:00:00"]),
        ("@daily", ["2026-03-02 00:00:00", "2026-03-03 00:00:00", "2026-03-04 00:00:00"]),
        ("@Midnight", ["2026-03-02 00:00:00", "2026-03-03 00:00:00", "2026-03-04 00:00:00"]),
        ("@weekly", ["2026-03-08 00:00:00", "2026-03-15 00:00:00", "2026-03-22 00:00:00"]),
        ("@monthly", ["2026-04-01 00:00:00", "2026-05-01 00:00:00", "2026-06-01 00:00:00"]),
        ("@yearly", ["2027-01-01 00:00:00", "2028-01-01 00:00:00", "2029-01-01 00:00:00"]),
        ("@annually", ["2027-01-01 00:00:00", "2028-01-01 00:00:00", "2029-01-01 00:00:00"]),
    ],
)
def test_expressions_mean_what_the_table_says(expression, expected):
    """One row per rule and per mistake seen elsewhere."""
    assert shown(expression) == expected


@pytest.mark.parametrize(
    ("expression", "advice"),
    [
        ("", "has 0 fields"),
        ("* * * *", "has 4 fields: write five"),
        ("* * * * * * * *", "has 8 fields"),
        ("60 * * * *", "minute '60' is out of range: use 0 to 59"),
        ("* 24 * * *", "hour '24'"),
        ("* * 0 * *", "day-of-month '0' is out of range: use 1 to 31"),
        ("* * * 13 *", "month '13'"),
        ("* * * * 8", "day-of-week '8' is out of range: use 0 to 6"),
        ("60 * * * * *", "second '60'"),
        ("0 0 0 1 1 * 1969", "year '1969'"),
        ("*/0 * * * *", "step of 0"),
        ("1,,2 * * * *", "cannot read '' as minute"),
        ("a * * * *", "cannot read 'a' as minute"),
        ("mon * * * *", "cannot read 'mon' as minute"),
        ("*-5 * * * *", "cannot read '*-5' as minute"),
        ("-5 * * * *", "cannot read '-5' as minute"),
        ("1-2-3 * * * *", "cannot read '1-2-3' as minute"),
        ("5/ * * * *", "cannot read '5/' as minute"),
        ("0 0 * foo *", "names (jan to dec)"),
        ("0 0 * * 5#0", "cannot read '5#0' as day-of-week"),
        ("0 0 * * 5#6", "cannot read '5#6' as day-of-week"),
        ("0 0 * * L", "friL for the last"),
        ("0 0 32W * *", "cannot read '32W' as day-of-month"),
        ("0 0 L-3 * *", "cannot read 'L-3' as day-of-month"),
        ("L * * * *", "cannot read 'L' as minute"),
        ("? * * * *", "cannot read '?' as minute"),
        ("R * * * *", "cannot read 'R' as minute"),
        ("H(5-99) * * * *", "must be a range within 0 to 59"),
        ("H(9-5) * * * *", "must be a range within 0 to 59"),
        ("H/0 * * * *", "step of 0"),
        ("٣ * * * *", "ASCII"),
        ("* " * 600, "at most 1000"),
        (None, "must be text"),
    ],
)
def test_what_cannot_be_read_is_refused(expression, advice):
    """The error shows the expression, the field, the part that is wrong and what is possible."""
    with pytest.raises(ScheduleError) as caught:
        Cron(expression)
    assert advice in str(caught.value)


@pytest.mark.parametrize(
    "expression",
    ["0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 0 29 2 * 2025-2027", "0 0 31 2 */2"],
)
def test_heartbeat_defect_4_a_cron_that_never_comes_is_refused(expression):
    """Heartbeat took "never" for "now" and ran the job 67,262 times in 200 ms."""
    with pytest.raises(ScheduleError, match="never comes"):
        Cron(expression)


def test_heartbeat_defect_4_a_year_in_the_past_has_no_next():
    """It is no mistake of the expression, for a schedule knows no now: the answer is never again."""
    assert Cron("0 0 0 1 1 * 2001").next(START) is None
    assert Cron("* * * * * * 2001", tz="Europe/Berlin").next(START) is None
    assert Cron("0 0 0 1 1 * 2001").next(datetime(2000, 1, 1, tzinfo=UTC)) == datetime(2001, 1, 1, tzinfo=UTC)


def test_a_year_among_six_fields_is_refused_with_the_remedy():
    """`0 0 1 1 * 2001` is five fields and a year elsewhere; here the first of six are seconds."""
    with pytest.raises(ScheduleError, match="a year is the seventh field"):
        Cron("0 0 1 1 * 2001")


def test_a_rare_day_that_comes_every_28_years_is_found():
    """29 February on a Monday: far, yet not never."""
    assert shown("0 0 29 2 */7", 2) == ["2032-02-29 00:00:00", "2060-02-29 00:00:00"]


def test_across_a_year_without_leap_day_the_next_one_is_found():
    """2100 is none: eight years lie between."""
    after = datetime(2096, 3, 1, tzinfo=UTC)
    assert Cron("0 0 29 2 *").next(after) == datetime(2104, 2, 29, tzinfo=UTC)


def test_a_slot_is_strictly_later_to_the_microsecond():
    """At a slot the next one is the answer, a microsecond before it the slot itself."""
    cron, noon = Cron("0 12 * * *"), datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert cron.next(noon) == noon + timedelta(days=1)
    assert cron.next(noon - timedelta(microseconds=1)) == noon


def test_naive_datetimes_are_refused():
    """The error says how to write it."""
    with pytest.raises(ScheduleError, match="tzinfo=UTC"):
        Cron("* * * * *").next(datetime(2026, 1, 1))


@pytest.mark.parametrize("tz", ["UTC", "Europe/Berlin", "America/New_York"])
def test_past_the_end_of_datetimes_there_is_no_next(tz):
    """The year 9999 has a last minute."""
    assert Cron("* * * * *", tz=tz).next(datetime.max.replace(tzinfo=UTC)) is None


@pytest.mark.parametrize("tz", ["Europe/Berln", "", "../../etc/passwd", "/etc/passwd", "UTC-08:00", None, UTC, "\0"])
def test_an_unknown_zone_is_refused(tz):
    """Whatever the zone database raises becomes the one error of this package."""
    with pytest.raises(ScheduleError, match="zone"):
        Cron("* * * * *", tz=tz)


def test_a_zone_may_be_given_as_a_zone():
    """It is kept by its name."""
    assert Cron("* * * * *", tz=ZoneInfo("Europe/Berlin")) == Cron("* * * * *", tz="Europe/Berlin")


def test_expressions_are_values():
    """Equal text and zone make equal schedules with equal hashes, however it was spaced."""
    assert Cron(" 0  9 * * * ") == Cron("0 9 * * *")
    assert len({Cron("0 9 * * *"), Cron("0 9 * * *"), Cron("0 9 * * *", tz="Europe/Berlin")}) == 2


@pytest.mark.parametrize(
    "expression",
    ["H H * * *", "H/15 * * * *", "H(0-29)/10 * * * *", "H(9-17) H(8-11) * * mon-fri", "H H H H H H", "H,30 * * * *"],
)
def test_hashed_fields_are_resolved_once_per_job(expression):
    """Bound, it is a plain expression, the same each time, which another key no longer changes."""
    bound = Cron(expression).bind("web")
    assert "H" not in bound.expression
    assert bound == Cron(expression).bind("web")
    assert bound.bind("other") == bound
    assert bound.next(START) is not None


def test_hashed_fields_keep_within_their_ranges_and_spread():
    """Minutes by `H H`: all fields are independent, so jobs fill the whole day."""
    found = [Cron("H(10-19) H * * *").bind(f"job-{n}").next(START) for n in range(2000)]
    assert {slot.minute for slot in found} == set(range(10, 20))
    assert len({(slot.hour, slot.minute) for slot in found}) > 230


def test_hashed_steps_keep_their_spacing():
    """H/15 is four minutes an hour, a quarter apart, at the job's own offset."""
    for key in ("a", "b", "c"):
        found = slots(Cron("H/15 * * * *").bind(key), 9)
        assert {later - earlier for earlier, later in pairwise(found)} == {timedelta(minutes=15)}


def test_a_hashed_day_is_in_every_month():
    """Who asks for any day does not ask for months without one."""
    assert all(int(Cron("0 0 H * *").bind(str(n)).expression.split()[2]) <= 28 for n in range(500))


def test_expressions_without_hashed_fields_are_their_own_binding():
    """Thursday has an H too."""
    cron = Cron("0 0 * * thu")
    assert cron.bind("web") is cron


def test_croniter_is_not_imported_for_common_expressions():
    """Its import takes longer than thousands of our expressions."""
    code = "import sys; from schedule import parse; parse('*/5 9-17 1 jan mon'); assert 'croniter' not in sys.modules"
    path = str(Path(schedule.__file__).parents[1])
    subprocess.run([sys.executable, "-c", f"import sys; sys.path.insert(0, {path!r}); {code}"], check=True)


def part(low, high):
    """Generate one part of a field that every library reads alike."""
    number = st.integers(low, high)
    ordered = st.tuples(number, number).map(sorted).filter(lambda pair: pair[0] < pair[1])
    step = st.integers(1, high)
    return st.one_of(
        number.map(str),
        ordered.map(lambda pair: f"{pair[0]}-{pair[1]}"),
        st.builds(lambda pair, step: f"{pair[0]}-{pair[1]}/{step}", ordered, step),
        st.just("*"),
        step.map(lambda step: f"*/{step}"),
    )


def field(low, high):
    """Generate a field: mostly one part, or a list of numbers."""
    return part(low, high) | st.lists(st.integers(low, high), min_size=2, max_size=4).map(
        lambda each: ",".join(map(str, each))
    )


expressions = st.tuples(field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6)).map(" ".join)
instants = st.datetimes(datetime(1990, 1, 1), datetime(2060, 1, 1), timezones=st.just(UTC))


def read(expression):
    """Read an expression, leaving out what never comes."""
    try:
        return Cron(expression)
    except ScheduleError as error:
        assume("never comes" not in str(error))
        raise


@given(expressions, instants)
def test_cronsim_agrees_in_utc(expression, after):
    """Two implementations that share no code say the same, star rule included."""
    witness = CronSim(expression, after)
    assert slots(read(expression), 5, after) == [next(witness) for _ in range(5)]


@given(expressions, instants)
def test_croniter_agrees_in_utc(expression, after):
    """With its switch for the star rule, and none of its wide equal ranges, croniter says the same."""
    witness = croniter(expression, after, datetime, implement_cron_bug=True)
    assert slots(read(expression), 5, after) == [witness.get_next() for _ in range(5)]


@given(st.sampled_from(["L", "1W", "15W", "28W", "31W"]), field(1, 12), instants)
def test_croniter_agrees_on_rare_days(day, month, after):
    """Its W and L are the ones that we read with it, so the days must be its days."""
    witness = croniter(f"0 0 {day} {month} *", after, datetime)
    assert slots(Cron(f"0 0 {day} {month} *"), 5, after) == [witness.get_next() for _ in range(5)]


@given(st.integers(0, 6), st.integers(1, 5), st.booleans(), instants)
def test_croniter_agrees_on_rare_weekdays(weekday, which, is_last, after):
    """The same for # and for L among the weekdays."""
    expression = f"0 0 * * L{weekday}" if is_last else f"0 0 * * {weekday}#{which}"
    witness = croniter(expression, after, datetime)
    assert slots(Cron(expression), 5, after) == [witness.get_next() for _ in range(5)]


@pytest.mark.parametrize(("expression", "ours"), [("0 0 * * 5/2", [5]), ("0 0 * * 6/1", [6]), ("0 0 * * 2/5", [2])])
def test_cronsim_differs_on_steps_from_a_weekday(expression, ours):
    """It counts them up to 7, the second Sunday, and so adds one; croniter and ours end at Saturday."""
    found = {slot.isoweekday() % 7 for slot in slots(Cron(expression), 20)}
    witness = CronSim(expression, START)
    assert found == set(ours)
    assert {next(witness).isoweekday() % 7 for _ in range(20)} == {*ours, 0}


def test_cronsim_differs_on_seconds_that_come_twice():
    """It takes every six-field expression as recurring; ours go by minute and hour, whatever the seconds are."""
    berlin, expression = ZoneInfo("Europe/Berlin"), "0 30 2 * * *"
    night = datetime(2026, 10, 25, tzinfo=berlin)
    witness, ours = CronSim(expression, night), Cron(expression, tz="Europe/Berlin")
    assert [next(witness).day for _ in range(2)] == [25, 25]
    assert [slot.astimezone(berlin).day for slot in slots(ours, 2, night)] == [25, 26]

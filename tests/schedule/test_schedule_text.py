"""Every schedule of this package has a text that people can read, and that reads back as the same schedule."""

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from itertools import product
from types import ModuleType

import pytest
from attrs import frozen
from hypothesis import assume, given, strategies as st

import schedule
from kit import lines_of
from schedule import After, At, Calendar, Cron, Every, Schedule, ScheduleError, Window, parse, text_of
from steps_of_patterns import Steps

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
NIGHT = Window(Cron("0 2 * * sun", tz="Europe/Berlin"), "2h")


@frozen
class Moon(Schedule):
    """A schedule of a user's own class."""

    def next(self, after):
        return after + 29 * DAY


@pytest.mark.parametrize(
    ("schedule", "text"),
    [
        (Every("10s"), "@every 10s"),
        (Every("10s", anchor=NOON), "@every 10s anchor=2026-03-01T12:00:00+00:00"),
        (Every("10s", jitter="1s"), "@every 10s jitter=1s"),
        (Every("1h", anchor=NOON, jitter="1m"), "@every 1h anchor=2026-03-01T12:00:00+00:00 jitter=1m"),
        (After("10s"), "@after 10s"),
        (At(NOON), "@at 2026-03-01T12:00:00+00:00"),
        (Calendar("1 month", origin=NOON), "@calendar 1 month origin=2026-03-01T12:00:00+00:00"),
        (
            Calendar("2 weeks", origin=NOON, tz="Europe/Berlin"),
            "@calendar 2 weeks origin=2026-03-01T12:00:00+00:00 tz=Europe/Berlin",
        ),
        (Cron("0 9 * * 1-5", tz="Europe/Berlin"), "CRON_TZ=Europe/Berlin 0 9 * * 1-5"),
        (Cron("H(0-29) H/2 * * *"), "H(0-29) H/2 * * *"),
        (Every("1h") | Cron("15 * * * *"), "@every 1h | 15 * * * *"),
        (Every("1h").between(NOON), "@every 1h from 2026-03-01T12:00:00+00:00"),
        (Every("1h").between(end=NOON), "@every 1h until 2026-03-01T12:00:00+00:00"),
        (
            Every("1h").between(NOON, NOON + DAY),
            "@every 1h from 2026-03-01T12:00:00+00:00 until 2026-03-02T12:00:00+00:00",
        ),
        (Every("1h").between(), "@every 1h until never"),
        (Every("1h").except_(), "@every 1h except ()"),
        (Every("1h").except_(NIGHT), "@every 1h except (CRON_TZ=Europe/Berlin 0 2 * * sun for 2h)"),
        (
            Every("1h").except_(NIGHT, Window(At(NOON), "1d", reason='new "disks" (RAID) | für Ü')),
            (
                "@every 1h except (CRON_TZ=Europe/Berlin 0 2 * * sun for 2h) and "
                '(@at 2026-03-01T12:00:00+00:00 for 1d because "new \\"disks\\" (RAID) | für Ü")'
            ),
        ),
        (
            (Every("1h") | Cron("@daily")).except_(Window(At(NOON) | At(NOON + DAY), "1h")).between(NOON),
            (
                "((@every 1h | @daily) except ((@at 2026-03-01T12:00:00+00:00 | @at 2026-03-02T12:00:00+00:00) for 1h))"
                " from 2026-03-01T12:00:00+00:00"
            ),
        ),
    ],
)
def test_a_schedule_as_text(schedule, text):
    """What stands in a table of jobs, both ways."""
    assert str(schedule) == text_of(schedule) == text
    assert parse(text) == schedule


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("@EVERY 1h  JITTER=1m".replace("JITTER", "jitter"), Every("1h", jitter="1m")),
        ("@every 1 h 30 m anchor=2026-03-01T13:00+01:00", Every("90m", anchor=NOON)),
        ("@every 1h jitter=90 anchor=2026-03-01T12:00Z", Every("1h", anchor=NOON, jitter=90)),
        ("@at 2026-03-01 13:00+01:00", At(NOON)),
        ("TZ=Asia/Tokyo @calendar 1 day origin=2026-03-01T12:00Z", Calendar("1 day", origin=NOON, tz="Asia/Tokyo")),
        ("(@hourly)", Cron("@hourly")),
        ("  ( ( @hourly ) )  ", Cron("@hourly")),
        ("(@hourly)|(@daily)", Cron("@hourly") | Cron("@daily")),
        ("@hourly | (@daily | @weekly)", Cron("@hourly") | Cron("@daily") | Cron("@weekly")),
        ("@hourly | @daily FROM 2026-03-01T12:00Z", Cron("@hourly") | Cron("@daily").between(NOON)),
        ("(@hourly | @daily) from 2026-03-01T12:00Z", (Cron("@hourly") | Cron("@daily")).between(NOON)),
        ("@hourly from 2026-03-01 12:00Z until never", Cron("@hourly").between(NOON)),
        (
            "@every 1h from 2026-03-01T12:00Z except (CRON_TZ=Europe/Berlin 0 2 * * sun for 2 hours)",
            Every("1h").between(NOON).except_(NIGHT),
        ),
        ("H(0-29) * * * * except (@daily for 1h)", Cron("H(0-29) * * * *").except_(Window(Cron("@daily"), "1h"))),
        ("@hourly|@daily", Cron("@hourly") | Cron("@daily")),
    ],
)
def test_what_people_write(text, schedule):
    """Other spellings of the same."""
    assert parse(text) == schedule


def test_the_zone_of_the_caller_holds_for_every_wall_time_without_one():
    """In all parts of a combination, but not where a part names its own."""
    text = "0 9 * * * | TZ=Asia/Tokyo 0 9 * * * | @calendar 1 day origin=2026-03-01T12:00Z except (@daily for 1h)"
    berlin = {"tz": "Europe/Berlin"}
    calendar = Calendar("1 day", origin=NOON, **berlin).except_(Window(Cron("@daily", **berlin), "1h"))
    expected = Cron("0 9 * * *", **berlin) | Cron("0 9 * * *", tz="Asia/Tokyo") | calendar
    assert parse(text, **berlin) == expected


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("@every 10s jiter=1s", "did you mean 'jitter'?"),
        ("@every 10s tz=UTC", "it has anchor and jitter"),
        ("@every 10s jitter=1s jitter=2s", "says jitter twice"),
        ("@every 10s jitter=1s 5", "has no '5'"),
        ("@every 10s jitter=10s", "must be shorter than the interval"),
        ("@every 10s jitter=", "cannot read the duration ''"),
        ("@every 10s anchor=noon", "cannot read the instant 'noon'"),
        ("@every 10s anchor=2026-03-01T12:00", 'as in "2026-03-01T12:00:00+00:00"'),
        ("@at", "write when"),
        ("@at tomorrow", "cannot read the instant 'tomorrow'"),
        ("@at 0001-01-01T00:00+10:00", "outside the years"),
        ("2026-03-01T12:00Z", 'did you mean "@at 2026-03-01T12:00Z"?'),
        ("TZ=UTC @at 2026-03-01T12:00Z", "instants name their own"),
        ("@calendar", "write how often"),
        ("@calendar 1 month", "add origin="),
        ("@calendar 1 hour origin=2026-03-01T12:00Z", "shorter ones are for Every"),
        ("@calendar 1 month origin=2026-03-01T12:00Z tz=Mars", "no zone 'Mars'"),
        ("@calender 1 month origin=2026-03-01T12:00Z tz=UTC", "did you mean '@calendar"),
        ("@hourly |", "something is missing at its end"),
        ("| @hourly", "something is missing before '|'"),
        ("@hourly from", "something is missing behind 'from'"),
        ("@hourly from until never", "something is missing behind 'from'"),
        ("(@hourly", "write ')' behind what stands in parentheses"),
        ("@hourly) | @daily", "')' stands where nothing fits"),
        ("@hourly until never for 2h", "'for' stands where nothing fits"),
        ("@hourly except @daily", "write '(' behind except"),
        ("@hourly except (@daily)", "write 'for'"),
        ("@hourly except (@daily for 2h", "write ')'"),
        ("@hourly except (@daily for 0s)", "zero"),
        ("@hourly except (@daily for 2h) and", "write '(' behind and"),
        ("@hourly except (@daily for 2h because disks)", "write the reason as in"),
        ('@hourly except (@daily for 2h because "disks)', "has no second one"),
        ('@hourly except (@daily for 2h because "\\x")', "write the reason as in"),
        ("@every 10 | @hourli", 'did you mean "@hourly"?'),
        ("@hourly from 2026-03-02T12:00Z until 2026-03-01T12:00Z", "swap them?"),
        ("@every 10s except (@every 1m for 1m)", "no slot outside"),
        ("(" * 21 + "@hourly" + ")" * 21, "more than 20 parentheses"),
        ("(" * 9_000, "more than 20 parentheses"),
        ("@hourly" + " | @hourly" * 2_000, "write at most 10000"),
    ],
)
def test_anything_else_is_refused_with_advice(text, advice):
    """A typing error is answered with what was probably meant."""
    with pytest.raises(ScheduleError) as caught:
        parse(text)
    assert advice in str(caught.value)


@pytest.mark.parametrize(
    "schedule",
    [Moon(), Every("1h") | Moon(), Moon().between(NOON), Moon().except_(NIGHT), Every("1h").except_(Window(Moon(), 1))],
)
def test_a_schedule_of_a_users_class_has_no_text(schedule):
    """Wherever it stands: nothing that is stored could bring its class back."""
    with pytest.raises(ScheduleError, match=r"Moon.*has no text"):
        text_of(schedule)


def test_a_subclass_of_ours_has_no_text_either():
    """Its text would read back as our class."""

    class Slow(Every):
        """An Every that does something else."""

    with pytest.raises(ScheduleError, match=r"Slow.*class of your own"):
        text_of(Slow("1h"))


def test_the_key_of_another_job_has_no_place_in_a_text():
    """Its jitter would become that of the job."""
    with pytest.raises(ScheduleError, match="cannot be told in text"):
        text_of(Every("10s", jitter="1s").bind("web"), "other")


zones = st.sampled_from(["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+8", "Asia/Kathmandu"])
instants = st.datetimes(
    datetime(1971, 1, 1), datetime(9000, 1, 1), timezones=st.sampled_from([UTC, timezone(timedelta(hours=-3.5))])
)
intervals = st.timedeltas(timedelta(microseconds=1), timedelta(days=10_000))
everies = st.builds(
    lambda interval, anchor, share: Every(interval, anchor=anchor, jitter=interval * share),
    intervals.filter(lambda interval: interval > timedelta(seconds=1)),
    st.none() | instants,
    st.sampled_from([0, 0, 0.001, 0.5, 0.99]),
)
calendars = st.builds(
    Calendar,
    st.builds("{} {}".format, st.integers(1, 50), st.sampled_from(["day", "weeks", "Months", "year"])),
    origin=instants,
    tz=zones,
)
crons = st.builds(
    Cron,
    st.sampled_from(
        ["@daily", "0 9 * * mon-fri", "*/10 * * * * *", "0 0 0 L * * 2030", "H H(0-5) * * H", "0 0 15W * 5#3"]
    ),
    tz=zones,
)
plain_ones = (
    st.builds(Every, intervals) | everies | st.builds(After, intervals) | st.builds(At, instants) | calendars | crons
)
reasons = st.just("") | st.text() | st.text('"\\()| \n\0\ud800ü', max_size=5)


def made(make, *given):
    """Make a combination, or give up on parts that leave no slot."""
    try:
        return make(*given)
    except ScheduleError:
        return assume(False)


def combined(parts):
    """Combine schedules in every way there is."""
    starts = st.builds(At, instants) | calendars  # seldom enough to leave slots without a long search
    windows = st.builds(Window, starts, st.timedeltas(timedelta(seconds=1), DAY / 24), reason=reasons)
    return (
        st.builds(lambda a, b: a | b, parts, parts)
        | st.builds(
            lambda a, start, end: made(a.between, start, end), parts, st.none() | instants, st.none() | instants
        )
        | st.builds(lambda a, windows: made(a.except_, *windows), parts, st.lists(windows, max_size=2))
    )


schedules = st.recursive(plain_ones, combined, max_leaves=4)


@given(schedules)
def test_every_schedule_reads_back_from_its_text(schedule):
    """Of all kinds, in all combinations."""
    assert parse(text_of(schedule)) == schedule


@given(schedules, st.text(min_size=1, max_size=10))
def test_a_bound_schedule_has_a_text_that_binds_to_the_same(schedule, key):
    """A store keeps the text and the job's id, and that must be enough."""
    bound = made(schedule.bind, key)
    assert parse(text_of(bound, key)).bind(key) == parse(str(bound)).bind(key) == bound


@given(everies, st.text(min_size=1, max_size=10))
def test_the_phase_of_a_job_does_not_stand_in_its_text(every, key):
    """Ten thousand jobs with one interval have one text, which is read once."""
    assert text_of((every | Every("7s")).bind(key), key) == str(every | Every("7s"))


@pytest.mark.parametrize("text", ["H 2 * * *", "CRON_TZ=Europe/Berlin H/15 H(0-5) * * mon-fri", "H H H * *"])
def test_the_h_of_a_job_stands_in_its_text(text):
    """In a table of jobs one sees what was meant, and a job that is copied under another id has a place of its own."""
    bound = parse(text).bind("web")
    assert text_of(bound, "web") == text
    assert text_of(parse(f"{text} | @every 1h").bind("web"), "web") == f"{text} | @every 1h"
    assert "H" not in text_of(bound)
    assert text_of(bound, "other") == text_of(bound), "the values of another job have no place in the text of this one"
    assert text_of(Cron(bound.expression, tz=bound.tz), "web") == text_of(bound), "nobody said H"


PIECES = [
    "@every 1h", "@at 2026-03-01T12:00Z", "0 2 * * *", "@calendar 1 day origin=", "(", ")", "|", "from", "until",
    "except", "and", "for", "because", '"x"', '"', "2h", "never", "2026-03-01T12:00Z", "jitter=1s", "TZ=UTC", "H(1-2)",
    "\\", "=",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=14), st.sampled_from(["", " "]))
def test_no_text_raises_anything_but_the_error_of_this_package(pieces, between):
    """Whatever is written, and what can be read can be written again."""
    with suppress(ScheduleError):
        schedule = parse(between.join(pieces))
        assert parse(str(schedule)) == schedule


LONG = ["(", "|", '"', '"\\', "a(b)", "a(", "@every 1s a=", "@every 1s|", "|@every 1s", " ", "1h ", "x", "7 day", "P1M"]
PATTERNS = {
    f"{name}.{inner}": found
    for name, module in vars(schedule).items()
    if isinstance(module, ModuleType)
    for inner, found in vars(module).items()
    if isinstance(found, re.Pattern)
}


@pytest.mark.parametrize("part", LONG)
def test_a_long_text_costs_no_more_lines_than_in_proportion(part):
    """Nothing in it is read again and again."""
    once, twice = (lines_of(parse, part * count) for count in (200, 400))
    assert twice <= 2.1 * once + 100


SEARCHED = {"_duration._CALENDAR", "_parse._COMBINED", "_plain._SETTING"}


@pytest.mark.parametrize("name", PATTERNS)
def test_no_pattern_takes_more_steps_over_a_long_text_than_in_proportion(name):
    """Nothing that it has tried is tried again and again."""
    find = Steps.run if name in SEARCHED else Steps.run_from_start
    for before, part, after in product(["", "@every "], LONG, ["", '"', "\n"]):
        once, twice = (before + part * (length // len(part)) + after for length in (60, 120))
        steps, more = (find(Steps(PATTERNS[name], text)) for text in (once, twice))
        assert more <= 2.5 * steps + 50, once


def test_ten_megabytes_of_nonsense_are_refused_before_anybody_reads_them():
    """A refusal says how long it was, and not what was in it."""
    assert lines_of(parse, "x" * 10**7) < 1_000
    with pytest.raises(ScheduleError) as caught:
        parse("x" * 10**7)
    assert len(str(caught.value)) < 1_000

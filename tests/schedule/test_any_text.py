"""Whatever text is given for a schedule: it is one, which answers every question, or a ScheduleError says why not."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings, strategies as st

from kit import examples
from schedule import ScheduleError, parse, text_of
from schedule._common.instant import FIRST_INSTANT, LAST_INSTANT

INSTANTS = (
    FIRST_INSTANT,
    FIRST_INSTANT + timedelta(hours=12),
    datetime(1, 3, 1, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2026, 3, 1, 12, tzinfo=UTC),
    datetime(9999, 12, 1, tzinfo=UTC),
    LAST_INSTANT - timedelta(hours=12),
    LAST_INSTANT,
)


def joined(*parts):
    """Texts that are made of one part after another."""
    return st.tuples(*(st.just(part) if isinstance(part, str) else part for part in parts)).map("".join)


def one_of(words):
    return st.sampled_from(words.split())


ODD = st.one_of(
    one_of("1e3 0x10 1_000 +5 -1 --1 inf nan"), st.sampled_from("\u0663\u0661\xb2\xbd\u2167\u4e00\u212a\u017f\ud800\0")
)
NUMBERS = st.one_of(
    st.integers(0, 70).map(str),
    st.integers(0, 10**7).map(str),
    st.integers(0, 10**22).map(str),
    st.floats(0, 1e6).map(lambda number: f"{number:.3f}"),
    st.integers(1, 5000).map(lambda digits: "9" * digits),
    ODD,
)
UNITS = one_of("w d h m s ms us \xb5s weeks day mins hours y mo months D M Q")
LENGTHS = st.one_of(
    joined(NUMBERS, UNITS),
    joined(NUMBERS, UNITS, NUMBERS, UNITS),
    joined("P", NUMBERS, one_of("W D Y M DT1H DT WT5M3S")),
)
WHEN = st.one_of(
    st.datetimes().map(lambda when: when.isoformat() + "Z"),
    joined(
        one_of("0001-01-01T00:00:00 9999-12-31T23:59:59.999999 2026-03-29T02:30 2026-W05 20260101 26-1-1"),
        st.one_of(st.just(""), one_of("Z +14:00 -14:00 +23:59 -23:59:59 +24:00 +00:00:00.000001")),
    ),
)
ZONES = one_of("UTC Europe/Berlin America/New_York Pacific/Kiritimati Etc/GMT+12 Nowhere ../x Europe")
FIELD = st.one_of(
    st.just("*"),
    NUMBERS.filter(lambda text: len(text) < 6),
    joined(NUMBERS, "-", NUMBERS),
    joined(one_of("* 5 1-9 H H(0-9)"), "/", NUMBERS),
    one_of("? H H(0-29) H(9-1) L LW WL 15W 31W 0W L-3 15-L fri#2 5#9 1#0 friL L5 7L mon-fri#1 mon,L5 8 #"),
    one_of("jan feb-jan sun sat-mon 29 30 31 2 1970 2099 L,15W W , 1, 7-8"),
)
FIELDS = st.lists(FIELD, min_size=4, max_size=8).map(" ".join)
PLAIN = st.one_of(
    joined(one_of("@every @after @EVERY every"), " ", LENGTHS),
    joined("@every ", LENGTHS, " jitter=", LENGTHS),
    joined("@every ", LENGTHS, " anchor=", WHEN),
    joined("@at ", WHEN),
    joined("@calendar ", NUMBERS, one_of("days week months years"), " origin=", WHEN),
    joined("@calendar ", NUMBERS, one_of("days month"), " origin=", WHEN, " tz=", ZONES),
    joined(one_of("TZ= CRON_TZ="), ZONES, " ", FIELDS),
    st.sampled_from(["@hourly", "@yearly", "@reboot", "@dayly", "every monday", "", "@", "daily", "10s"]),
    FIELDS,
)
TEXTS = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        joined(inner, " | ", inner),
        joined("(", inner, ")"),
        joined("(", inner, ") from ", WHEN),
        joined("(", inner, ") from ", WHEN, " until ", WHEN),
        joined("(", inner, ") except (", inner, " for ", LENGTHS, ")"),
    ),
    max_leaves=3,
)


@settings(max_examples=examples(500))
@given(TEXTS)
def test_any_text_is_a_schedule_or_a_schedule_error(text):
    """Of 20,000 such texts 1,174 raised OverflowError, from parse or from the first question."""
    try:
        schedule = parse(text)
    except ScheduleError:
        return
    answers_every_question(schedule)
    answers_every_question(schedule.bind("job"))
    assert parse(text_of(schedule)) == schedule


@settings(max_examples=examples(500))
@given(TEXTS)
def test_the_text_of_any_schedule_reads_back_as_the_same_one(text):
    """Bound to a job too."""
    with suppress(ScheduleError):
        schedule = parse(text)
        bound = schedule.bind("job")
        assert parse(str(schedule)) == schedule
        assert parse(text_of(bound, "job")).bind("job") == bound


def answers_every_question(schedule):
    """With what is later, with None, or with a ScheduleError; in order; near both ends of the calendar."""
    answers = []
    for after in INSTANTS:
        with suppress(ScheduleError):
            found = schedule.next(after)
            assert found is None or (found > after and found.utcoffset() == timedelta(0))
            answers.append(found)
    assert answers == sorted(answers, key=lambda found: found or LAST_INSTANT + timedelta(0))

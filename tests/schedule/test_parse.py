"""Schedules as text."""

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from schedule import After, Cron, Every, ScheduleError, parse

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@every 10s", Every("10s")),
        ("@every 1s", Every("1s")),
        ("@every 1m", Every("1m")),
        ("@every 1d", Every("1d")),
        ("@every 1h30m10s", Every(5410)),
        ("@Every PT5M", Every("5m")),
        ("  @every   500ms ", Every("500ms")),
        ("@every 1 day", Every("1d")),
        ("@after 10s", After("10s")),
        ("@hourly", Cron("@hourly")),
        ("*/15 4 * 2 *", Cron("*/15 4 * 2 *")),
        ("*/10 * * * * *", Cron("*/10 * * * * *")),
        ("0 0 0 1 1 * 2030", Cron("0 0 0 1 1 * 2030")),
        ("CRON_TZ=Europe/Berlin 0 9 * * mon-fri", Cron("0 9 * * mon-fri", tz="Europe/Berlin")),
        ("TZ=Asia/Tokyo @daily", Cron("@daily", tz="Asia/Tokyo")),
    ],
)
def test_text_becomes_a_schedule(text, expected):
    """What users of cron, Heartbeat and Go's cron libraries write."""
    assert parse(text) == expected


def test_the_zone_holds_for_cron_unless_the_text_names_one():
    """A default for many lines, an exception in one of them."""
    assert parse("0 9 * * *", tz="Europe/Berlin") == Cron("0 9 * * *", tz="Europe/Berlin")
    assert parse("CRON_TZ=Asia/Tokyo 0 9 * * *", tz="Europe/Berlin") == Cron("0 9 * * *", tz="Asia/Tokyo")
    assert parse("@every 1h", tz="Europe/Berlin") == Every("1h")


def test_heartbeat_steps_of_one_second_and_minute():
    """The two rows of Heartbeat's own test."""
    assert parse("@every 1s").next(NOON) == NOON + timedelta(seconds=1)
    assert parse("@every 1m").next(NOON) == NOON + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("", "must not be empty"),
        ("   ", "must not be empty"),
        ("foobar", "five or six fields"),
        ("@every10s", 'did you mean "@every 10s"?'),
        ("@after10s", 'did you mean "@after 10s"?'),
        ("every 10s", 'did you mean "@every 10s"?'),
        ("10s", 'did you mean "@every 10s"?'),
        ("PT5M", 'did you mean "@every PT5M"?'),
        ("@hourli", 'did you mean "@hourly"?'),
        ("daily", 'did you mean "@daily"?'),
        ("@reboot", "start of a program"),
        ("@every", "write"),
        ("@every 0s", "zero"),
        ("@every -5s", "count from 0"),
        ("@after 0s", "zero"),
        ("@every foobar", "cannot read the duration 'foobar'"),
        ("@every 1 month", "Calendar"),
        ("* * * *", "five or six fields"),
        ("TZ=UTC @every 5s", "write '@every 5s'"),
        ("CRON_TZ=Mars/Base 0 9 * * *", "no zone 'Mars/Base'"),
        ("CRON_TZ=Europe/Berlin", "write"),
        ("0 0 31 2 *", "never comes"),
        ("0 9 * * mon /usr/bin/backup --all", "leave the command away: write '0 9 * * mon'"),
        ("*/5 * * * * root test -x /usr/sbin/anacron || run-parts /etc", "leave the command away"),
        ("0 9 * * mon backup.sh", "leave the command away: write '0 9 * * mon'"),
        ("@daily /usr/bin/backup", "leave the command away: write '@daily'"),
        ("0 9 * * friday", "did you mean 'fri'?"),
        ("0 9 * * monday-friday", "did you mean 'mon-fri'?"),
        ("0 9 * january *", "did you mean 'jan'?"),
        ("0 0 9 1 1 friday", "did you mean 'fri'?"),
        ("R * * * *", "did you mean 'H'?"),
        ("R(0-29)/10 * * * *", "did you mean 'H(0-29)/10'?"),
        ("~ * * * *", "did you mean 'H'?"),
        ("0~30 * * * *", "did you mean 'H(0-30)'?"),
        ("/15 * * * *", "did you mean '*/15'?"),
        ("Mon..Fri *-*-* 09:00", "OnCalendar of systemd: did you mean '0 9 * * mon-fri'?"),
        ("Sat,Sun 10:30:15", "did you mean '15 30 10 * * sat,sun'?"),
        ("*-*-01 04:00:00 Europe/Berlin", "did you mean 'CRON_TZ=Europe/Berlin 0 4 1 * *'?"),
        ("*:0/15", "did you mean '0/15 * * * *'?"),
        ("Mon *-*-1..7 09:00", "OnCalendar of systemd: write fields"),
        ("0 9 * * * Europe/Berlin", "write 'CRON_TZ=Europe/Berlin 0 9 * * *'"),
        ("@daily UTC", "write 'CRON_TZ=UTC @daily'"),
        (None, "must be text"),
        (5, "must be text"),
    ],
)
def test_anything_else_is_refused_with_advice(text, advice):
    """A typing error is answered with what was probably meant."""
    with pytest.raises(ScheduleError) as caught:
        parse(text)
    assert advice in str(caught.value)


LINES = (
    *("0 9 * * mon run", "Mon..Fri 09:00", "*-*-* *:00/5", "~ * * * *", "/5 * * * *", "@daily UTC", "* * * * * UTC"),
    *("1_000", ".5s", "PT0,5S", "R R * * *", "0 9 * * friday", "Sat,Sun 2026-*-* 10:00"),
)


@given(st.lists(st.sampled_from(sorted({word for line in LINES for word in line.split()})), max_size=7).map(" ".join))
def test_advice_about_a_line_can_be_taken(text):
    """Whatever words come together: what an error says to write is a schedule."""
    try:
        parse(text)
    except ScheduleError as error:
        for meant in re.findall(r"(?:systemd: did you mean|away: write|in front: write) '([^']*)'", str(error)):
            parse(meant)


intervals = st.timedeltas(timedelta(microseconds=1), timedelta(days=10_000))
crons = st.builds(
    Cron,
    st.sampled_from(["@daily", "0 9 * * mon-fri", "*/10 * * * * *", "0 0 0 L * * 2030", "H H * * *", "0 0 15W * 5#3"]),
    tz=st.sampled_from(["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+8"]),
)


@given(st.builds(Every, intervals) | st.builds(After, intervals) | crons)
def test_a_schedule_reads_back_from_its_text(schedule):
    """`parse(str(schedule))` is the schedule, so it can stand in files and tables."""
    assert parse(str(schedule)) == schedule


@given(st.text())
def test_no_text_raises_anything_but_the_error_of_this_package(text):
    """Whatever a configuration file holds."""
    with suppress(ScheduleError):
        parse(text)


@given(st.lists(st.sampled_from("0123456789*/-,?LWH#()@ abcjanmonfri"), max_size=30).map("".join))
def test_nothing_like_cron_raises_anything_else_either(text):
    """The same for text made of what expressions are made of."""
    for line in (text, f"0 0 {text} * *", f"0 0 * * {text}", f"{text} * * * *"):
        with suppress(ScheduleError):
            assert parse(line).next(NOON) != NOON

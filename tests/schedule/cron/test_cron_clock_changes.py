"""Cron where clocks are set back or forward: every change of every IANA zone from 2024 to 2027.

The truth is an enumeration of minutes written here, which shares no code with the package. cronsim, which follows
Debian's cron, is the second witness; where it says something else, a row says why.
"""

from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest
from cronsim import CronSim

from kit import examples
from schedule import Cron

pytestmark = pytest.mark.slow

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
FIRST, LAST = datetime(2024, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)

FIXED = (
    "0 0 * * *",
    "5 0 * * *",
    "30 0 * * *",
    "30 1 * * *",
    "0 2 * * *",
    "30 2 * * *",
    "15,45 2 * * *",
    "0 0-23 * * *",
    "0-59/7 0-3 * * *",
    "59 23 * * *",
    "45 1,2 * * sun",
    "30 2 29 * mon",
    "0 3 1-7 3-11 *",
)
RECURRING = (
    "* * * * *",
    "*/7 * * * *",
    "*/20 * * * *",
    "0 * * * *",
    "30 */2 * * *",
    "*/30 2 * * *",
    "* 0-2 * * sat,sun",
    "15 */1 8-14 * */7",
)


def values(text, low, high):
    """Read a field: numbers, weekdays, ranges, steps and lists."""
    found = set()
    for part in text.split(","):
        body, _, step = part.partition("/")
        first, _, last = body.partition("-")
        first, last = (low, high) if body == "*" else (number(first), number(last or first))
        found |= set(range(first, last + 1, int(step or 1)))
    return found


def number(word):
    """Read a number or a weekday."""
    weekdays = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
    return weekdays.index(word) if word in weekdays else int(word)


@cache
def rule(expression):
    """Read an expression: the minutes of a day, a test of dates, and whether it keeps real spacing."""
    minute, hour, day, month, weekday = expression.split()
    minutes = {h * 60 + m for h in values(hour, 0, 23) for m in values(minute, 0, 59)}
    days, months, weekdays = values(day, 1, 31), values(month, 1, 12), values(weekday, 0, 6)
    together = all if day.startswith("*") or weekday.startswith("*") else any

    @cache
    def has_date(date):
        return date.month in months and together((date.day in days, date.isoweekday() % 7 in weekdays))

    return minutes, has_date, minute.startswith("*") or hour.startswith("*")


def enumerated(expression, window, skipped):
    """List the instants of a window at which the expression comes, by its rules, minute by minute."""
    minutes, has_date, is_recurring = rule(expression)

    def comes(wall):
        return wall.hour * 60 + wall.minute in minutes and has_date(wall.date())

    found = {instant for instant, local in window if comes(local) and (is_recurring or not local.fold)}
    if not is_recurring:
        found |= {instant for instant, walls in skipped if any(comes(wall) for wall in walls)}
    return sorted(found)


def minutes_around(zone, change):
    """List the minutes from 4 hours before a change to 28 hours after it, and what wall time is skipped."""
    instants = [change + MINUTE * index for index in range(-4 * 60, 28 * 60)]
    window = [(instant, instant.astimezone(zone)) for instant in instants]
    skipped = []
    for (_, earlier), (instant, local) in pairwise(window):
        wall, end = earlier.replace(tzinfo=None) + MINUTE, local.replace(tzinfo=None)
        if wall < end:
            skipped.append((instant, [wall + MINUTE * index for index in range((end - wall) // MINUTE)]))
    return window, skipped


def chain(expression, zone, window):
    """List what Cron says for the same window."""
    cron, found = Cron(expression, tz=zone.key), []
    instant, end = window[0][0] - MINUTE, window[-1][0]
    while (instant := cron.next(instant)) <= end:
        found.append(instant)
    return found


@cache
def changes(name):
    """List the instants at which a zone's offset changes, each with the offset from then on."""
    zone, found = ZoneInfo(name), []
    days = [FIRST + DAY * index for index in range((LAST - FIRST).days + 1)]
    offsets = [day.astimezone(zone).utcoffset() for day in days]
    for (start, end), (before, later) in zip(pairwise(days), pairwise(offsets), strict=True):
        if before != later:
            low, high = start, end
            while high - low > MINUTE:
                middle = low + (high - low) // 2
                low, high = (middle, high) if middle.astimezone(zone).utcoffset() == before else (low, middle)
            found.append((high.replace(second=0, microsecond=0), later))
    return offsets[0], tuple(found)


@cache
def windows():
    """Return (zone, change, minutes, skipped walls) once for each way of changing clocks; most names share theirs."""
    alike = {changes(name): ZoneInfo(name) for name in sorted(available_timezones(), reverse=True)}
    return [(zone, change, *minutes_around(zone, change)) for key, zone in alike.items() for change, _ in key[1]]


def said_by_cronsim(expression, zone, window):
    """List what cronsim says for the same window."""
    found, start = [], window[0][0] - MINUTE
    for local in CronSim(expression, start.astimezone(zone)):
        if local.astimezone(UTC) > window[-1][0]:
            return found
        found.append(local.astimezone(UTC))
    return found


@pytest.mark.parametrize("expression", FIXED + RECURRING)
def test_every_change_of_every_zone_is_as_enumerated(expression):
    """All slots from 4 hours before to 28 hours after each change are those of the rules: none early, lost or twice."""
    slots = 0
    rarely = 100 // examples(100) if expression == "* * * * *" else 1  # it has ten times as many slots as the others
    for zone, change, window, skipped in windows()[::rarely]:
        expected = enumerated(expression, window, skipped)
        assert chain(expression, zone, window) == expected, (zone.key, change)
        slots += len(expected)
    assert len(windows()) >= 200
    assert slots >= 150


@pytest.mark.parametrize("expression", FIXED + RECURRING)
def test_asked_at_any_instant_around_a_change_next_is_the_first_later_slot(expression):
    """It makes no difference where between two slots, or in which pass of an hour that comes twice, one asks."""
    asked = 0
    for zone, _, window, skipped in windows():
        slots, cron = enumerated(expression, window, skipped), Cron(expression, tz=zone.key)
        for index in range(3 * 60, 6 * 60, 17):
            after = window[index][0] + timedelta(seconds=index % 60, microseconds=index % 7)
            later = bisect_right(slots, after)
            if later < len(slots):
                assert cron.next(after) == slots[later], (zone.key, after)
                asked += 1
    assert asked >= 300


CRONSIM_IS_WRONG = {
    # The half hour from 01:30 that comes twice: cronsim walks into its second pass in whole hours and overshoots 02:00.
    "*/30 2 * * *": "Australia/Lord_Howe",
    # Clocks go back from 03:45 to 02:45: cronsim leaves hour 2 by adding hours and never sees its last quarter again.
    "* 0-2 * * sat,sun": "Pacific/Chatham",
}


@pytest.mark.parametrize("expression", FIXED + RECURRING[1:])
def test_cronsim_agrees_but_for_named_zones(expression):
    """Debian's rules as cronsim knows them; where it differs from the enumeration the row above says why.

    That Cron is as enumerated is shown above, so that it need not be asked again.
    """
    wrong = CRONSIM_IS_WRONG.get(expression)
    differing = {
        changes(zone.key)
        for zone, _, window, skipped in windows()
        if said_by_cronsim(expression, zone, window) != enumerated(expression, window, skipped)
    }
    assert differing == ({changes(wrong)} if wrong else set())


def slots(expression, tz, start, count):
    """List some slots from an instant on, as local times with their offsets."""
    cron, found, instant = Cron(expression, tz=tz), [], datetime.fromisoformat(start)
    for _ in range(count):
        instant = cron.next(instant)
        found.append(instant.astimezone(ZoneInfo(tz)).isoformat(" "))
    return found


BERLIN_SPRING, BERLIN_AUTUMN = "2026-03-29T00:59:30+00:00", "2026-10-25T00:29:50+00:00"


@pytest.mark.parametrize(
    ("expression", "tz", "start", "expected"),
    [
        # Fixed minute and hour, seconds each ten: all of the skipped minute counts at the first instant after the gap.
        ("*/10 30 2 * * *", "Europe/Berlin", BERLIN_SPRING, ["2026-03-29 03:00:00+02:00", "2026-03-30 02:30:00+02:00"]),
        ("15 30 2 * * *", "Europe/Berlin", BERLIN_SPRING, ["2026-03-29 03:00:00+02:00", "2026-03-30 02:30:15+02:00"]),
        # Recurring: real spacing across the gap, nothing for skipped times.
        ("*/30 * * * * *", "Europe/Berlin", BERLIN_SPRING, ["2026-03-29 03:00:00+02:00", "2026-03-29 03:00:30+02:00"]),
        ("5 */30 2 * * *", "Europe/Berlin", BERLIN_SPRING, ["2026-03-30 02:00:05+02:00", "2026-03-30 02:30:05+02:00"]),
        # Comes twice: fixed at the first only, recurring at both.
        (
            "*/20 30 2 * * *",
            "Europe/Berlin",
            BERLIN_AUTUMN,
            [
                "2026-10-25 02:30:00+02:00",
                "2026-10-25 02:30:20+02:00",
                "2026-10-25 02:30:40+02:00",
                "2026-10-26 02:30:00+01:00",
            ],
        ),
        (
            "20 */30 2 * * *",
            "Europe/Berlin",
            BERLIN_AUTUMN,
            [
                "2026-10-25 02:30:20+02:00",
                "2026-10-25 02:00:20+01:00",
                "2026-10-25 02:30:20+01:00",
                "2026-10-26 02:00:20+01:00",
            ],
        ),
        # The second pass is not lost where nothing comes after it.
        (
            "0 */30 2 25 10 * 2026",
            "Europe/Berlin",
            "2026-10-25T00:30:00+00:00",
            ["2026-10-25 02:00:00+01:00", "2026-10-25 02:30:00+01:00"],
        ),
        # Asked in the second pass of an hour that comes twice: all of its fixed times have been.
        ("*/20 30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00+00:00", ["2026-10-26 02:30:00+01:00"]),
        # Half an hour comes twice on Lord Howe Island.
        (
            "0 */15 * * * *",
            "Australia/Lord_Howe",
            "2026-04-04T14:44:59+00:00",
            [
                "2026-04-05 01:45:00+11:00",
                "2026-04-05 01:30:00+10:30",
                "2026-04-05 01:45:00+10:30",
                "2026-04-05 02:00:00+10:30",
            ],
        ),
        # A whole day is skipped: Samoa had no 30 December 2011.
        ("0 0 9 30 12 *", "Pacific/Apia", "2011-01-01T00:00:00+00:00", ["2011-12-31 00:00:00+14:00"]),
        (
            "0 0 9 * * *",
            "Pacific/Apia",
            "2011-12-29T20:00:00+00:00",
            ["2011-12-31 00:00:00+14:00", "2011-12-31 09:00:00+14:00"],
        ),
    ],
)
def test_seconds_in_gaps_and_folds(expression, tz, start, expected):
    """The rules hold to the second; cronsim takes every expression with seconds as recurring, which ours are not."""
    assert slots(expression, tz, start, len(expected)) == expected


def runs(expression, tz, start, end):
    """Count the slots from start to end, start not included."""
    cron, instant, count = Cron(expression, tz=tz), datetime.fromisoformat(start), 0
    while (instant := cron.next(instant)) <= datetime.fromisoformat(end):
        count += 1
    return count


@pytest.mark.parametrize(("expression", "expected"), [("0 * * * *", 4), ("*/30 * * * *", 8), ("30 2 * * *", 1)])
def test_heartbeat_defect_5_new_york_spring_does_not_run_without_end(expression, expected):
    """Heartbeat ran them 36,000, 18,001 and 18,000 times in the hour before the clocks go forward."""
    assert runs(expression, "America/New_York", "2026-03-08T05:00:00+00:00", "2026-03-08T09:00:00+00:00") == expected


def test_heartbeat_defect_5_berlin_spring_runs_a_skipped_time_at_the_end_of_the_gap():
    """Heartbeat ran `30 2` at 03:30, half an hour late."""
    assert slots("30 2 * * *", "Europe/Berlin", BERLIN_SPRING, 1) == ["2026-03-29 03:00:00+02:00"]


@pytest.mark.parametrize(
    ("tz", "start"), [("Europe/Berlin", "2026-10-24T23:00:00+00:00"), ("America/New_York", "2026-11-01T04:00:00+00:00")]
)
@pytest.mark.parametrize(("expression", "minutes"), [("0 * * * *", 60), ("*/5 * * * *", 5)])
def test_heartbeat_defect_5_autumn_repeats_the_hour_that_comes_twice(tz, start, expression, minutes):
    """Heartbeat left it out: two hours between hourly runs, 1 h 05 min between those each five minutes."""
    cron, instant = Cron(expression, tz=tz), datetime.fromisoformat(start)
    for _ in range(6 * 60 // minutes):
        assert cron.next(instant) == instant + MINUTE * minutes
        instant = cron.next(instant)


@pytest.mark.parametrize("expression", ["0 0 * * *", "5 0 * * *", "30 0 * * *", "59 0 * * *"])
def test_the_day_after_clocks_go_forward_is_not_lost(expression):
    """APScheduler 3.11 skips these on the day after the change."""
    assert [text[:10] for text in slots(expression, "Europe/Berlin", "2026-03-28T00:00:00+00:00", 3)] == [
        "2026-03-29",
        "2026-03-30",
        "2026-03-31",
    ]


def test_a_gap_at_midnight_does_not_lose_the_day():
    """Cairo skips from 00:00 to 01:00: what is meant for midnight comes at one."""
    assert slots("0 0 * * *", "Africa/Cairo", "2026-04-23T00:00:00+00:00", 2) == [
        "2026-04-24 01:00:00+03:00",
        "2026-04-25 00:00:00+03:00",
    ]

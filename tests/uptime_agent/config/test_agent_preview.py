"""What `timerqueue check` says of a file beside its checks: groups, windows, servers, signals, the network."""

from datetime import UTC, datetime

from kit import nothing
from schedule import Every
from scheduler import Scheduler
from timerqueue.testing import ManualClock
from uptime_agent.config.config import parse_config
from uptime_agent.config.preview import config_lines
from uptime_agent.text import wording

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def lines(text):
    """Return what is said of a file of that text."""
    return list(config_lines(parse_config(text, "uptime.toml", {}), NOW))


def test_everything_that_a_file_has_is_shown():
    """One line for each."""
    told = lines("""
        [[check]]
        name = "a"
        url = "http://h"
        [[check]]
        name = "b"
        url = "push://b"
        token = "tttttttttttttttttttt"
        [[group]]
        name = "shop"
        members = ["a", "b"]
        down_if = "1 of 2"
        [[group]]
        name = "all"
        members = ["a", "b"]
        [[maintenance]]
        name = "backup"
        schedule = "0 2 * * *"
        duration = "1h"
        targets = ["a"]
        [[postgres]]
        name = "orders"
        host = "db.example"
        user = "monitor"
        [[postgres]]
        name = "old"
        host = "old.example"
        enabled = false
        [push]
        listen = "[::1]:8075"
        [network]
        probe = ["tcp://192.0.2.1:53"]
    """)
    assert "group shop: a, b; down if 1 of 2 are" in told
    assert "group all: a, b; down if 2 of 2 are" in told
    nights = ", ".join(f"2026-11-{day}T02:00:00.000Z" for day in (22, 23, 24))
    assert f"maintenance backup: 1h00m, 1 target; next: {nights}" in told
    (orders,) = (line for line in told if line.startswith("server orders: monitor@db.example:5432, "))
    assert orders.endswith(" probes, at most 3 connections")
    assert "server old: old.example:5432, 0 probes, at most 3 connections, disabled" in told
    assert "signals come in at [::1]:8075" in told
    assert "offline if none of these answers: tcp://192.0.2.1:53" in told


def test_a_file_without_them_says_nothing_of_them():
    """No line that says that there is none."""
    told = "\n".join(lines('[[check]]\nurl = "http://h"\n'))
    assert not any(word in told for word in ("group", "maintenance", "server", "signals", "offline"))


def of(name, text):
    """Return when a check of that name is said to start, where nothing else is in the file."""
    (line,) = [line for line in lines(f'[[check]]\nname = "{name}"\n{text}') if line.startswith("    next: ")]
    return line.removeprefix("    next: ")


async def test_the_starts_after_one_at_once_are_those_that_come():
    """One that lies within half an interval is what the start at once stands for, and does not come as well."""
    for name in map(str, range(8)):
        promised = of(name, 'url = "http://h"\ninterval = "6h"\nstart = "now"\n').removeprefix("at once, then ")
        clock = ManualClock(start=NOW)
        async with Scheduler(clock=clock) as s:
            job = s.add(nothing, Every("6h"), id=name, start="now")
            await clock.travel(1)
            assert promised.split(",")[0] == wording.stamp(job.next_start.timestamp())


def test_a_target_that_reports_by_itself_has_no_starts():
    """Its check follows its signals."""
    text = 'url = "push://backup"\ntoken = "0123456789abcdef"\n[push]\nlisten = "127.0.0.1:1"\n'
    assert of("backup", text) == "with each signal, or when none has come in time"

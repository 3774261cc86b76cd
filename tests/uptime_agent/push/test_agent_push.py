"""Push checks: what a target reports, until when the next signal has to come, and what a request may cost."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import anyio
import pytest
from anyio import wait_all_tasks_blocked

from kit import PATIENCE
from push_kit import request
from schedule import Cron, Every
from scheduler import Scheduler
from timerqueue import SystemClock
from timerqueue.testing import START, ManualClock
from uptime_agent import app
from uptime_agent.app import RunPlan
from uptime_agent.checks import Inbox, Said, Signal
from uptime_agent.checks.contract.check import Attempt
from uptime_agent.checks.contract.result import Status
from uptime_agent.checks.contract.stopwatch import Stopwatch
from uptime_agent.config.config import parse_config
from uptime_agent.push.requests import NotKept
from uptime_agent.push.signals import Signals, deadline_after, first_deadline
from uptime_agent.standing import TASK
from uptime_agent.targets import add_job
from uptime_agent.toml.sections import ConfigError
from uptime_agent.web import Peers

TOKEN = "backup-7f3a9c51d2e8"
LIMITS = {"push": 10}
FILE = f"""
store = "memory"
[push]
listen = "127.0.0.1:8075"
[[check]]
name = "backup"
url = "push://backup"
token = "{TOKEN}"
interval = "1h"
grace = "5m"
"""


def target():
    (found,) = parse_config(FILE, "uptime.toml", {}).targets
    return found


def attempt(**before):
    return Attempt("", Stopwatch(SystemClock()), 1.0, before=before)


def signal(said, at=1_000.0, **more):
    return Signal(said=said, at=at, **more)


@pytest.mark.parametrize(
    ("signals", "status", "error"),
    [
        ([signal(Said.SUCCESS)], Status.UP, None),
        ([signal(Said.FAIL)], Status.DOWN, "it reports a failure"),
        ([signal(Said.FAIL, code=3, log="disk full")], Status.DOWN, "it exited with 3: disk full"),
        ([signal(Said.START)], Status.UNKNOWN, "it has started, and its end is waited for"),
        ([signal(Said.LOG, log="at 50 %")], Status.UNKNOWN, "it says: at 50 %"),
        ([signal(Said.FAIL), signal(Said.SUCCESS)], Status.UP, None),
        ([signal(Said.SUCCESS), signal(Said.LOG, log="more")], Status.UP, None),
        ([], Status.DOWN, "no signal has come"),
    ],
)
async def test_what_a_target_says_is_its_status(signals, status, error):
    """Of many at once the last that says good or bad; what says neither moves no state; silence is down."""
    check = target().check
    for each in signals:
        check.inbox.put(each)
    found = await check.attempt(attempt())
    assert (found.status, found.error) == (status, error)


async def test_silence_says_since_when_also_after_a_restart():
    """The last result holds the instant of the last signal, and each that follows passes it on."""
    found = await target().check.attempt(attempt(signal_at=1_767_225_600.0))
    assert "2026-01-01" in found.error
    assert found.detail == {"signal_at": 1_767_225_600.0, "stands": "down"}


@pytest.mark.parametrize("said", [Said.LOG, Said.START])
@pytest.mark.parametrize(("stood", "status"), [("up", Status.UP), ("down", Status.DOWN), (None, Status.UNKNOWN)])
async def test_what_says_neither_good_nor_bad_leaves_a_target_where_it_stood(said, stood, status):
    """A line for the history of a backup that is well does not make it unknown until the next one has run."""
    check = target().check
    check.inbox.put(signal(said, log="at 50 %"))
    found = await check.attempt(attempt() if stood is None else attempt(stands=stood))
    assert (found.status, found.detail.get("stands")) == (status, stood)
    check.inbox.put(signal(said))
    assert (await check.attempt(attempt(**found.detail))).status is status


def test_a_run_with_an_id_is_told_how_long_it_lasted():
    """Runs that overlap are told apart; a start that never ends is forgotten in time."""
    inbox = Inbox()
    inbox.put(signal(Said.START, 10.0, run="a"))
    inbox.put(signal(Said.START, 12.0, run="b"))
    assert inbox.put(signal(Said.SUCCESS, 30.0, run="b")).lasted == 18.0
    assert inbox.put(signal(Said.FAIL, 31.0, run="a")).lasted == 21.0
    assert inbox.put(signal(Said.SUCCESS, 32.0, run="a")).lasted is None


AT = datetime(2026, 1, 1, 12, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "said", "minutes"),
    [
        (Every("1h"), Said.SUCCESS, 65),
        (Every("1h"), Said.FAIL, 65),
        (Every("1h"), Said.START, 5),
        (Cron("0 13 * * *"), Said.SUCCESS, 58),
        (Every("400d"), Said.SUCCESS, 400 * 24 * 60 + 5),
    ],
)
def test_the_next_signal_has_to_come_within_the_interval_and_its_grace(schedule, said, minutes):
    """A run that has started has to end within the grace."""
    found = deadline_after(schedule, 300.0, signal(said, AT.timestamp()))
    assert found - AT == timedelta(minutes=minutes)


def test_a_line_for_the_history_moves_no_deadline():
    """It is no sign of life."""
    assert deadline_after(Every("1h"), 300.0, signal(Said.LOG, AT.timestamp())) is None


async def test_a_signal_is_judged_at_once_and_the_deadline_after_it_is_the_next_start():
    """So it stands in the store like any other start."""
    clock, runs = ManualClock(), []
    each = target()

    async def check():
        runs.append(await each.check.attempt(attempt()))

    async with Scheduler(clock=clock) as s:
        first = first_deadline(each.schedule, each.check.grace, START)
        job = s.add(check, each.schedule, id="backup", start=first)
        notices = []
        signals = Signals(s, notices.append, now=clock.wall, peers=Peers(10))
        signals.follow([each])
        await clock.travel(600)
        await signals.take(TOKEN, signal(Said.SUCCESS, clock.wall()), "peer")
        assert [found.status for found in runs] == [Status.UP]
        assert job.next_start == START + timedelta(seconds=600 + 3_600 + 300)
        await clock.travel(3_899)
        assert len(runs) == 1
        await clock.travel(1)
        assert [found.status for found in runs] == [Status.UP, Status.DOWN]
        for _ in range(3):
            await signals.take("nobody-has-this-one", signal(Said.SUCCESS, clock.wall()), "peer")
        assert len(runs) == 2
        assert notices == ["a signal has come with a token that no push check has: nothing is made of it"]
        signals.follow([target()])  # the file has been read again, and says the same
        await signals.take(TOKEN, signal(Said.SUCCESS, clock.wall()), "peer")
        assert [found.status for found in runs] == [Status.UP, Status.DOWN, Status.UP]


async def test_a_signal_that_comes_while_its_target_is_judged_is_judged_next():
    """Silence may take seconds to be judged, while it is found out whether we are offline. What comes meanwhile is not
    left lying until the next deadline.
    """
    each, found, may_end = target(), [], anyio.Event()

    async def check(name):
        found.append((await each.check.attempt(attempt())).status)
        await may_end.wait()

    async with Scheduler(limits=LIMITS) as s:
        s.register(TASK, check)
        add_job(s, each, first_deadline(each.schedule, each.check.grace, datetime.now(UTC)), 10.0)
        signals = Signals(s, lambda _: None, now=SystemClock().wall, peers=Peers(10))
        signals.follow([each])
        async with anyio.create_task_group() as group:
            s.get("backup").run_now()  # as its deadline does
            await wait_all_tasks_blocked()
            for said in (Said.FAIL, Said.LOG, Said.SUCCESS):
                group.start_soon(signals.take, TOKEN, signal(said, datetime.now(UTC).timestamp()), "peer")
                await wait_all_tasks_blocked()
            may_end.set()
    assert found[0] is Status.DOWN
    assert found[-1] is Status.UP


async def test_who_hears_ok_need_not_send_a_signal_again(tmp_path):
    """Its deadline and what was made of it are stored by then: another process reads both."""
    each = target()

    async def check(name):
        return {"status": (await each.check.attempt(attempt())).status.value}

    place = f"sqlite:///{tmp_path / 'uptime.db'}"
    async with Scheduler(limits=LIMITS, store=place) as s:
        s.register(TASK, check)
        add_job(s, each, first_deadline(each.schedule, each.check.grace, datetime.now(UTC)), 10.0)
        signals = Signals(s, lambda _: None, now=SystemClock().wall, peers=Peers(10))
        signals.follow([each])
        now = datetime.now(UTC).timestamp()
        await signals.take(TOKEN, signal(Said.FAIL, now), "peer")
        with closing(sqlite3.connect(tmp_path / "uptime.db")) as other:
            rows = other.execute("SELECT outcome, result FROM tick").fetchall()
            ((next_us,),) = other.execute("SELECT next_us FROM job_state").fetchall()
    assert [(outcome, json.loads(result)) for outcome, result in rows] == [("succeeded", {"status": "down"})]
    assert next_us == pytest.approx((now + 3_900) * 1e6, abs=10)


async def test_who_is_not_told_ok_has_to_send_a_signal_again():
    """An agent that stops, or whose store refuses, does not say that it has taken a signal."""
    each = target()
    async with Scheduler(limits=LIMITS) as s:
        s.register(TASK, lambda name: None)
        add_job(s, each, None, 10.0)
        signals = Signals(s, lambda _: None, now=SystemClock().wall, peers=Peers(10))
        signals.follow([each])
    with pytest.raises(NotKept):
        await signals.take(TOKEN, signal(Said.SUCCESS), "peer")


@pytest.mark.parametrize(
    ("was", "becomes", "words"),
    [
        (f'token = "{TOKEN}"', "", "a token is missing"),
        (f'token = "{TOKEN}"', 'token = "short"', "at least 16"),
        (f'token = "{TOKEN}"', 'token = { env = "NOT_SET" }', "NOT_SET"),
        (f'token = "{TOKEN}"', 'token = { file = "/no/file" }', "a file that can be read (no such file or directory)"),
        ("push://backup", "push://backup/x", "push://NAME"),
        ('listen = "127.0.0.1:8075"', "", "listen"),
        ('"127.0.0.1:8075"', '"example.org:80"', "an address of this machine"),
        ('"127.0.0.1:8075"', '"127.0.0.1:99999"', "an address of this machine"),
        ('"127.0.0.1:8075"', '"127.0.0.1:8075"\nget = "yes"', "true or false"),
    ],
)
def test_a_mistake_is_told_without_the_token(was, becomes, words):
    """With what to write."""
    with pytest.raises(ConfigError) as raised:
        parse_config(FILE.replace(was, becomes), "uptime.toml", {})
    assert words in str(raised.value)
    assert TOKEN not in str(raised.value)
    assert "short" not in str(raised.value)


def test_no_two_checks_share_a_token():
    """Nobody would know which of them has reported."""
    second = FILE[FILE.index("[[check]]") :].replace('"backup"', '"other"')
    with pytest.raises(ConfigError, match="other and backup have the same token"):
        parse_config(FILE + second, "uptime.toml", {})


def test_a_get_is_a_signal_only_where_the_file_says_so():
    """Who has devices that can do nothing else says get = true."""
    assert not parse_config(FILE, "uptime.toml", {}).push.takes_get
    assert parse_config(FILE.replace('8075"', '8075"\nget = true'), "uptime.toml", {}).push.takes_get


def test_listening_beyond_this_machine_is_warned_of():
    """There is no TLS, and the token is in the request."""
    config = parse_config(FILE.replace("127.0.0.1:8075", "0.0.0.0:8075"), "uptime.toml", {})
    assert any("without TLS" in each for each in config.warnings)


class Display:
    """What is shown of the checks."""

    refresh_every = None

    def __init__(self):
        self.statuses = []
        self.changed = anyio.Event()

    def checked(self, target, *, is_change):
        self.statuses.append(target.status)
        self.changed.set()

    def __getattr__(self, name):
        return lambda *args, **options: None


async def test_the_agent_takes_signals(free_port):
    """From the request to the status, with the whole agent."""
    config = parse_config(FILE.replace("8075", str(free_port)), "uptime.toml", {})
    display = Display()
    async with anyio.create_task_group() as group:
        group.start_soon(app.run, config, display, RunPlan(), SystemClock())
        with anyio.fail_after(PATIENCE):
            while not display.statuses:
                try:
                    async with await anyio.connect_tcp("127.0.0.1", free_port) as stream:
                        await stream.send(request(f"/push/{TOKEN}"))
                        await stream.receive()
                except OSError:
                    await anyio.sleep(0.01)
                    continue
                await display.changed.wait()
        group.cancel_scope.cancel()
    assert display.statuses[0] is Status.UP


async def test_with_once_nobody_listens_so_nothing_is_known():
    """Not "down": the target may well have reported. It is no reason for an exit code of 1 either."""
    display = Display()
    with anyio.fail_after(PATIENCE):
        code = await app.run(parse_config(FILE, "uptime.toml", {}), display, RunPlan(once=True), SystemClock())
    assert (code, display.statuses) == (0, [Status.UNKNOWN])


async def test_history_needs_no_token(ran, tmp_path):
    """As it needs no other secret of checks: whoever reads history asks nobody."""
    file = tmp_path / "uptime.toml"
    file.write_text(FILE.replace('store = "memory"', "").replace(f'"{TOKEN}"', '{ env = "NO_SUCH_TOKEN" }'))
    assert (await ran("run", str(file)))[2].count("NO_SUCH_TOKEN") > 0
    _, _, err = await ran("history", "--config", str(file))
    assert err.startswith("cannot use the store: ")
    assert "uptime.db" in err

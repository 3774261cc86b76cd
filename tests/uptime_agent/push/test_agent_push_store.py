"""Signals that come while the store does not work: their senders are told so, and they count all the same."""

import sqlite3
import threading
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime

import anyio
import pytest

from kit import PATIENCE, settle, until
from scheduler import JobState, RunEnded, RunMissed, Scheduler, StoreDown, StoreUp
from scheduler.stores.memory import MemoryStore
from scheduler.stores.sqlite import SQLiteStore
from scheduler.testing.flaky import FlakyStore
from timerqueue import SystemClock
from uptime_agent.checks import Said, Signal
from uptime_agent.checks.contract.check import Attempt
from uptime_agent.checks.contract.stopwatch import Stopwatch
from uptime_agent.config.config import parse_config
from uptime_agent.push import Signals, first_deadline, signals as module
from uptime_agent.push.requests import NotKept
from uptime_agent.standing import TASK
from uptime_agent.targets import add_job
from uptime_agent.web import Peers

TOKEN = "backup-7f3a9c51d2e8"
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
ALWAYS = range(1, 10**9)


class Reporting:
    """A push target whose checks are stored; what they found, and whether the store is down."""

    def __init__(self, scheduler, clock):
        self.scheduler, self.clock = scheduler, clock
        (self.target,) = parse_config(FILE, "uptime.toml", {}).targets
        self.found, self.downs = [], []
        self.before = {}
        self.may_end = anyio.Event()
        self.may_end.set()
        scheduler.register(TASK, self.check)
        now = datetime.fromtimestamp(clock.wall(), UTC)
        first = first_deadline(self.target.schedule, self.target.check.grace, now)
        add_job(scheduler, self.target, first, 10.0)
        self.signals = Signals(scheduler, lambda _: None, now=clock.wall, peers=Peers(10))
        scheduler.listen(self.signals.listen, RunMissed, RunEnded, StoreDown, StoreUp)
        scheduler.listen(self.downs.append, StoreDown)
        self.signals.follow([self.target])

    async def check(self, name):
        found = await self.target.check.attempt(Attempt("", Stopwatch(SystemClock()), 1.0, before=self.before))
        self.found.append(found)
        self.before = found.detail
        await self.may_end.wait()
        return {"status": found.status.value}

    async def send(self, said=Said.SUCCESS, token=TOKEN, **more):
        """Send a signal: whether it was stored."""
        try:
            await self.signals.take(token, Signal(said=said, at=self.clock.wall(), **more), "peer")
        except NotKept:
            return False
        return True

    @property
    def statuses(self):
        return [each.status.value for each in self.found]

    async def records(self):
        """Return what is stored of the target, latest first, once nothing is on the way to the store."""
        while self.scheduler.get("backup").state is not JobState.SCHEDULED:
            await settle()
        await self.scheduler.flush()
        return [record.result["status"] for record in await self.scheduler.history("backup")]


@asynccontextmanager
async def reporting(store, clock=None):
    clock = clock or SystemClock()
    with anyio.fail_after(PATIENCE):
        async with Scheduler(limits={"push": 10}, store=store, clock=clock) as s:
            yield Reporting(s, clock)


@pytest.fixture
def soon(monkeypatch):
    """Wait for a store no longer than this."""
    for name in ("AT_ONCE_S", "ANSWER_S", "STORED_WITHIN_S"):
        monkeypatch.setattr(module, name, 0.1)


async def test_a_locked_store_is_told_and_what_was_heard_is_stored_once_it_is_free(tmp_path, soon):
    """It was silence for five seconds, and no client sends that again. The deadline has moved meanwhile."""
    file = tmp_path / "uptime.db"
    async with reporting(SQLiteStore(file)) as it:
        assert await it.records() == []
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            assert not await it.send(Said.FAIL, code=3)
            assert not await it.send(token="of-nobody-at-all-00")
            assert it.scheduler.get("backup").next_start.timestamp() > SystemClock().wall() + 3_800
            assert it.found == []
            other.execute("ROLLBACK")
        assert await it.records() == ["down"]
    with closing(sqlite3.connect(file)) as other:
        assert other.execute("SELECT count(*) FROM tick").fetchone() == (1,)


async def test_a_store_that_is_known_to_be_away_is_not_waited_for(soon):
    """Who sends a signal is told so at once, whether or not a target has that token."""
    store = FlakyStore(MemoryStore(), is_immediate=False)
    async with reporting(store) as it:
        await it.scheduler.flush()
        store.fail_on = ALWAYS
        assert not await it.send(Said.START)
        await until(lambda: it.downs)
        before = it.signals._scheduler.flush
        it.signals._scheduler.flush = None  # nobody asks the store
        assert not await it.send()
        assert not await it.send(token="of-nobody-at-all-00")
        it.signals._scheduler.flush = before
        store.fail_on = ()
        assert await it.records() == ["up"]


async def test_a_store_that_fails_is_not_waited_for_any_longer(monkeypatch):
    """The first who sent a signal heard nothing for two seconds, though the store had failed at once."""
    monkeypatch.setattr(module, "AT_ONCE_S", 10 * PATIENCE)
    store = FlakyStore(MemoryStore(), is_immediate=False)
    async with reporting(store) as it:
        await it.scheduler.flush()
        store.fail_on = ALWAYS
        assert not await it.send()
        assert it.downs
        store.fail_on = ()
        assert await it.records() == ["up"]


class StuckStore(MemoryStore):
    """A store that commits nothing, and perhaps answers nothing, until `gate` is set. `asked`: how often it was."""

    def __init__(self):
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.answers = True
        self.asked = 0

    @property
    def is_immediate(self):
        return False

    def commit(self, batch):
        self.gate.wait()
        return super().commit(batch)

    def history(self, *args, **kwargs):
        self.asked += 1
        if not self.answers:
            self.gate.wait()
        return super().history(*args, **kwargs)


async def test_a_store_that_is_slow_once_is_waited_for(monkeypatch):
    """It answers a question meanwhile: who has sent a signal hears OK, and sends it once."""
    monkeypatch.setattr(module, "AT_ONCE_S", 0.05)
    monkeypatch.setattr(module, "STORED_WITHIN_S", PATIENCE)
    store, heard = StuckStore(), []
    async with reporting(store) as it, anyio.create_task_group() as group:
        await it.scheduler.flush()
        store.gate.clear()

        async def send():
            heard.append(await it.send())

        group.start_soon(send)
        await until(lambda: store.asked)
        await settle()
        assert heard == []
        store.gate.set()
        await until(lambda: heard)
        assert heard == [True]


async def test_a_store_that_answers_nothing_is_not_waited_for(monkeypatch):
    """It may take long until it counts as down. What comes next does not ask it again."""
    monkeypatch.setattr(module, "AT_ONCE_S", 0.05)
    monkeypatch.setattr(module, "ANSWER_S", 0.05)
    monkeypatch.setattr(module, "STORED_WITHIN_S", 10 * PATIENCE)
    store = StuckStore()
    async with reporting(store) as it:
        await it.scheduler.flush()
        store.answers = False
        store.gate.clear()
        try:
            assert [await it.send() for _ in range(3)] == [False, False, False]
            assert it.downs == []
            assert store.asked == 1
        finally:
            store.gate.set()
        store.answers = True
        assert await it.records() == ["up"]


async def test_all_that_was_heard_while_the_store_was_away_is_judged_together_and_nothing_is_silent(soon):
    """A second run was asked for, found an empty inbox and called that silence: down, though it had reported."""
    store = FlakyStore(MemoryStore(), is_immediate=False)
    async with reporting(store) as it:
        await it.scheduler.flush()
        store.fail_on = ALWAYS
        for said in (Said.START, Said.LOG, Said.SUCCESS):
            assert not await it.send(said)
        store.fail_on = ()
        assert await it.records() == ["up"]
    assert it.statuses == ["up"]


async def test_a_signal_is_taken_by_the_run_of_its_deadline_that_waits_for_the_store(soon):
    """Whatever other run was asked for finds nothing then, and the deadline lies ahead: that is no silence."""
    store = FlakyStore(MemoryStore(), is_immediate=False)
    async with reporting(store) as it:
        await it.scheduler.flush()
        store.fail_on = ALWAYS
        it.scheduler.get("backup").set_next_start(datetime.now(UTC))  # its deadline
        await settle()
        assert not await it.send()
        store.fail_on = ()
        assert set(await it.records()) == {"up"}
    assert set(it.statuses) == {"up"}


async def test_a_signal_that_is_sent_again_is_stored_once(soon):
    """By the id of its run. Its sender was told to; and who hears no OK sends it again in any case."""
    store = FlakyStore(MemoryStore(), is_immediate=False)
    async with reporting(store) as it:
        assert await it.send(Said.START, run="7")
        store.fail_on = ALWAYS
        for _ in range(3):
            assert not await it.send(Said.FAIL, run="7", code=3, log="disk full")
        store.fail_on = ()
        assert len(await it.records()) == 2
        assert await it.send(Said.FAIL, run="7", code=3, log="disk full")
        assert await it.send(Said.FAIL, run="7", code=3, log="disk full")
        assert len(await it.records()) == 2
        assert it.found[-1].detail["lasted"] >= 0
        assert await it.send(Said.SUCCESS, run="7")  # says something else
        assert await it.send(Said.FAIL, run="7", code=3, log="disk full")
        assert await it.records() == ["down", "up", "down", "unknown"]


@pytest.mark.parametrize("scope", ["target", "all"])
async def test_the_signals_of_a_paused_target_are_heard_and_do_not_count(scope):
    """They are answered OK, move the deadline, and change nothing: a paused target is not checked."""
    async with reporting(MemoryStore()) as it:
        job = it.scheduler.get("backup")
        assert await it.send()
        (job if scope == "target" else it.scheduler).pause(reason="moving house")
        for said in (Said.FAIL, Said.START, Said.SUCCESS):
            assert await it.send(said)
        (job if scope == "target" else it.scheduler).resume()
        await until(lambda: job.next_start)
        assert it.statuses == ["up"]
        assert job.next_start.timestamp() > SystemClock().wall() + 3_800
        assert await it.send(Said.FAIL)
        assert await it.records() == ["down", "up"]


async def test_a_deadline_that_passed_during_a_pause_is_no_silence(clock):
    """The target has its whole time again: it knows nothing of pauses, and reports when it does."""
    async with reporting(MemoryStore(), clock=clock) as it:
        job = it.scheduler.get("backup")
        job.pause("moving house")
        await clock.travel(4 * 3_600)
        job.resume()
        await clock.travel(0)
        assert (job.next_start - clock.now()).total_seconds() == 3_900
        assert it.statuses == []


async def test_a_signal_that_comes_while_its_target_is_judged_is_judged_next_though_nobody_waits():
    """Its sender has gone, or was told to send it again: it lay there until the next deadline."""
    async with reporting(MemoryStore()) as it:
        it.may_end = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(it.send, Said.FAIL)
            while not it.found:
                await settle()
            group.start_soon(it.send, Said.SUCCESS)
            await settle()
            group.cancel_scope.cancel()
        it.may_end.set()
        while len(it.found) < 2:
            await settle()
    assert it.statuses == ["down", "up"]

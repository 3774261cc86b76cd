"""What Heartbeat's tests say of its loader of stored states, and its defect 13, said of the agent's past."""

import threading

import anyio
import pytest
from attrs import evolve

from kit import PATIENCE, until
from scheduler import StoreUnavailable, StoreUnusable
from scheduler.stores.sqlite import SQLiteStore
from scheduler.testing import FlakyStore
from timerqueue import SystemClock
from uptime_agent.app import RunPlan, run
from uptime_agent.checks.contract.result import Status
from uptime_agent.config.config import parse_config
from uptime_agent.config.place import StorePlace
from uptime_agent.standing import recall

NAMES = ("first", "second")


class Watcher:
    """A display that remembers which targets stood how, and says when each has been checked."""

    refresh_every = None

    def __init__(self):
        self.stood = {}
        self.changes = []
        self.checked_once = {name: anyio.Event() for name in NAMES}

    def started(self, view):
        self.view = view

    def remembered(self, target):
        self.stood[target.name] = target.status

    def checked(self, target, *, is_change):
        self.changes += [target.name] * is_change
        self.checked_once[target.name].set()

    def notice(self, text):
        """Not what is looked for here."""

    def missed(self, target, event):
        """Nor this."""

    def stopped(self, summary):
        """Nor this."""


class Given(StorePlace):
    """The place of a store that a test has made."""

    def make(self):
        return self.file


class SlowFor(FlakyStore):
    """A store that answers about one target only when it is told to."""

    def __init__(self, store, name):
        super().__init__(store)
        self.name = name
        self.is_asked, self.may_answer = threading.Event(), threading.Event()

    def history(self, job_id=None, **options):
        if job_id == self.name:
            self.is_asked.set()
            self.may_answer.wait(PATIENCE)
        return super().history(job_id, **options)


@pytest.fixture
async def agent(up):
    """Run an agent with that store and its two targets, both up: once each, or until it is cancelled."""

    async def start(store, display, *, once=True):
        checks = "".join(
            f'[[check]]\nname = "{name}"\nurl = "http://127.0.0.1:{up.port}"\nstart = "now"\n' for name in NAMES
        )
        config = evolve(parse_config(checks, "uptime.toml", {}), store=Given(file=store))
        with anyio.fail_after(PATIENCE):
            return await run(config, display, RunPlan(once=once), SystemClock())

    return start


@pytest.fixture
async def file(agent, tmp_path):
    """Keep the history of an agent that found both targets up."""
    file = tmp_path / "uptime.db"
    assert await agent(SQLiteStore(file), Watcher()) == 0
    return file


def broken(file, *, fail_on, error):
    """Make a store that fails to read its history at these calls."""
    return FlakyStore(SQLiteStore(file), fail_on=fail_on, error=error, verbs=["history"])


async def test_heartbeat_loader_a_failing_read_is_tried_three_times(agent, file, monkeypatch):
    """A store that cannot be reached for a moment costs no target what was known of it."""
    monkeypatch.setattr(recall, "WAITS", (0.01, 0.02))
    store, display = broken(file, fail_on={1, 2}, error=StoreUnavailable("gone for a moment")), Watcher()
    assert await agent(store, display) == 0
    assert display.stood == dict.fromkeys(NAMES, Status.UP)
    assert display.changes == []


@pytest.mark.parametrize(
    ("error", "tries"), [(StoreUnavailable("gone for good"), 3), (StoreUnusable("not ours"), 1)], ids=["gone", "final"]
)
async def test_heartbeat_loader_gives_up_in_the_end(agent, file, monkeypatch, caplog, error, tries):
    """After three tries, or one if the error is final: the targets begin anew, are checked, and a warning says why."""
    monkeypatch.setattr(recall, "WAITS", (0.01, 0.02))
    store, display = broken(file, fail_on=range(1, 100), error=error), Watcher()
    assert await agent(store, display) == 0
    assert store.calls["history"] == 1 + tries * len(NAMES)  # once for all: whether there is any history
    assert sorted(display.changes) == sorted(NAMES)
    assert f"what was known of 'first' cannot be read, so it begins anew: {error}" in caplog.text


async def test_heartbeat_loader_is_waited_for_no_longer_than_its_timeout(agent, file, monkeypatch, caplog):
    """Then the target is checked without its past, which does not come back later."""
    monkeypatch.setattr(recall, "PATIENCE", 0.05)
    store, display = SlowFor(SQLiteStore(file), "first"), Watcher()
    async with anyio.create_task_group() as group:
        group.start_soon(agent, store, display)
        await display.checked_once["first"].wait()
        store.may_answer.set()
    assert "first" in display.changes
    assert "first" not in display.stood
    assert "what was known of 'first' cannot be read, so it begins anew: no answer within 0.05 s" in caplog.text


async def test_what_a_store_said_that_could_not_tell_is_why_its_targets_begin_anew(agent, file, monkeypatch, caplog):
    """It has answered, and says what is wrong: that the time is over is no news."""
    monkeypatch.setattr(recall, "WAITS", (30.0, 30.0))
    monkeypatch.setattr(recall, "PATIENCE", 2.0)  # in which the store says it, on a busy machine too
    store, display = broken(file, fail_on=range(1, 100), error=StoreUnavailable("too many connections")), Watcher()
    assert await agent(store, display) == 0
    assert "what was known of 'first' cannot be read, so it begins anew: too many connections" in caplog.text
    assert "no answer" not in caplog.text


async def test_heartbeat_defect_13_a_store_that_is_slow_for_one_target_delays_no_other(agent, file, monkeypatch):
    """While the state of one is being read another is remembered and checked."""
    monkeypatch.setattr(recall, "PATIENCE", 30)
    store, display = SlowFor(SQLiteStore(file), "first"), Watcher()
    async with anyio.create_task_group() as group:
        group.start_soon(agent, store, display)
        await display.checked_once["second"].wait()
        await until(store.is_asked.is_set)
        assert display.stood == {"second": Status.UP}
        store.may_answer.set()
    assert display.stood == dict.fromkeys(NAMES, Status.UP)
    assert display.changes == []

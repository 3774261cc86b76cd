"""The short ways to what users want most: a job by its id, one kind of event, a store by its URL, the last result."""

import gc
import re
import subprocess
import sys
from functools import partial
from urllib.parse import quote

import pytest

from schedule import Every
from scheduler import (
    JobNotFound,
    JobRemoved,
    Retention,
    RunEnded,
    RunMissed,
    RunStarted,
    Scheduler,
)
from scheduler.stores.memory import MemoryStore
from scheduler.stores.sqlite import SQLiteStore


async def nothing():
    """Take no time."""


# -- a job by its id ---------------------------------------------------------------------------------------------------


async def test_a_job_is_removed_by_its_id(clock, events):
    """And what is not there is told, as `get` does."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(nothing, Every("10s"), id="a")
        assert "a" in s
        s.remove("a")
        assert "a" not in s
        assert events.of(JobRemoved, job_id="a")
        with pytest.raises(JobNotFound, match="there is no job 'a'"):
            s.remove("a")


def test_a_job_is_in_its_own_scheduler_alone():
    """The handle of another one with the same id is not."""
    s, other = Scheduler(), Scheduler()
    job = s.add(nothing, Every("10s"), id="a")
    stranger = other.add(nothing, Every("10s"), id="a")
    assert job in s
    assert stranger not in s
    assert 5 not in s
    job.remove()
    assert job not in s


# -- kinds of events ---------------------------------------------------------------------------------------------------


async def test_a_listener_is_told_of_one_kind_of_event(clock, events):
    """It used to have to tell them apart by itself."""
    async with Scheduler(clock=clock) as s:
        end = s.listen(events, RunEnded)
        job = s.add(nothing, Every("10s"))
        await job.run_now()
        assert [type(event) for event in events] == [RunEnded]
        end()
        await job.run_now()
        assert len(events) == 1


async def test_a_listener_is_told_of_several_kinds_of_events(clock, events):
    """In the order in which they come."""
    async with Scheduler(clock=clock) as s:
        s.listen(events, RunStarted, RunEnded, RunMissed)
        await s.add(nothing, Every("10s")).run_now()
    assert [type(event) for event in events] == [RunStarted, RunEnded]


@pytest.mark.parametrize("kind", [int, "RunEnded", RunEnded | RunMissed, None, [RunEnded]])
def test_what_is_no_kind_of_event_is_refused(kind):
    """A listener for it would never be called. The error names that one, and not those beside it."""
    with pytest.raises(TypeError, match=re.escape(f"such as RunEnded, RunMissed, not of {kind!r}")):
        Scheduler().listen(print, RunStarted, kind)


def test_a_kind_of_event_is_no_listener():
    """Whoever forgets the callback would find an error in the log for each event."""
    with pytest.raises(TypeError, match=r"called with an event, not .*RunEnded"):
        Scheduler().listen(RunEnded)


class _Awaited:
    async def __call__(self, event):
        """Do nothing."""


@pytest.mark.parametrize("listener", [_Awaited(), _Awaited().__call__, partial(_Awaited().__call__)])
def test_a_listener_that_would_have_to_be_awaited_is_refused(listener):
    """Nobody would await it, and none of its code would ever run."""
    with pytest.raises(TypeError, match="a listener is called and not awaited"):
        Scheduler().listen(listener, RunEnded)


# -- a store by its URL ------------------------------------------------------------------------------------------------


async def test_a_store_is_named_by_its_url(tmp_path, monkeypatch, clock):
    """Three slashes and a path, four and an absolute one."""
    monkeypatch.chdir(tmp_path)
    for url in ("sqlite:///jobs.db", f"sqlite:///{tmp_path}/jobs.db"):
        async with Scheduler(store=url, clock=clock) as s:
            s.register("nothing", nothing)
            s.add("nothing", Every("10s"), id="a", on_conflict="keep")
    store = SQLiteStore(tmp_path / "jobs.db")
    store.open(0, lambda: None)
    assert [row.id for chunk in store.load() for row, _ in chunk] == ["a"]
    store.close()


async def test_a_path_in_a_url_may_be_quoted(tmp_path, clock):
    """As everything in a URL."""
    async with Scheduler(store=f"sqlite:///{tmp_path}/my%20jobs.db", clock=clock):
        pass
    assert (tmp_path / "my jobs.db").exists()


async def test_a_store_in_memory_has_a_url_too(clock):
    """For tests, and for programs that let their users choose."""
    async with Scheduler(store="memory://", clock=clock) as s:
        s.register("nothing", nothing)
        s.add("nothing", Every("10s"), id="a")
        await s.flush()
        assert s.statistics().store is not None


async def test_a_postgres_is_named_by_its_url(postgres_server, clock):
    """The URL is the one that libpq takes."""
    url = f"postgresql://postgres@/postgres?host={quote(str(postgres_server.folder), safe='')}"
    async with Scheduler(store=url, clock=clock) as s:
        await s.flush()
        assert s.statistics().store.trouble is None


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("jobs.db", r"'sqlite:///jobs.db', 'postgresql://user@host/database' or 'memory://'"),
        ("mysql://root:secret@host/db", r"there is no store for 'mysql://'"),
        ("sqlite://", r"'sqlite:///jobs.db'"),
        ("sqlite:///", r"'sqlite:///jobs.db'"),
        ("sqlite:jobs.db", r"'sqlite:///jobs.db'"),
        ("sqlite://jobs.db", r"three slashes"),
        ("sqlite:///jobs.db?mode=ro", r"no options"),
        ("sqlite:///:memory:", r"MemoryStore"),
        ("memory://jobs", r"'memory://'"),
        ("", r"'sqlite:///jobs.db'"),
    ],
)
def test_a_url_that_names_no_store_is_refused(url, said):
    """The error says what is possible, and shows no password."""
    with pytest.raises(ValueError, match=said) as raised:
        Scheduler(store=url)
    assert "secret" not in str(raised.value)


def test_a_driver_that_is_not_installed_is_named():
    """The error names the extra that brings it."""
    program = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from scheduler import Scheduler\n"
        "try:\n    Scheduler(store='postgresql://host/db')\n"
        "except ModuleNotFoundError as error:\n    print(error)\n"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install timerqueue[postgres]" in answer.stdout


# -- retention in words ------------------------------------------------------------------------------------------------


def test_retention_is_given_in_words():
    """As durations are everywhere else."""
    kept = Retention(age="30d", total_bytes="256 MiB")
    assert kept == Retention()
    assert Retention(age="1h", total_bytes="2kB") == Retention(age=3_600.0, total_bytes=2_000)
    assert Retention(age=None, total_bytes=None).age is None


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ({"age": "a while"}, "age"),
        ({"age": "0s"}, "age must be"),
        ({"total_bytes": "much"}, "total_bytes must be .*256 MiB"),
        ({"total_bytes": "0 MiB"}, "total_bytes must be"),
        ({"per_job": "1d"}, "per_job must be"),
    ],
)
def test_words_that_make_no_sense_are_refused(bounds, said):
    """The error names the bound."""
    with pytest.raises(ValueError, match=said):
        Retention(**bounds)


# -- the last result ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", [None, MemoryStore], ids=["memory", "store"])
async def test_the_last_result_of_a_job_is_kept(clock, store):
    """As JSON gives it back, and until there is another one."""
    results = iter([3, (1, "two"), None, object(), "x" * 3_000])

    async def work():
        return next(results)

    async with Scheduler(clock=clock, store=store and store()) as s:
        s.register("work", work)
        job = s.add("work", Every("1d"), id="a")
        assert job.statistics().last_result is None
        seen = []
        for _ in range(5):
            await job.run_now()
            seen.append(job.statistics().last_result)
    assert seen == [3, [1, "two"], [1, "two"], None, None]


async def test_no_object_of_a_run_is_kept_for_its_last_result(clock):
    """A text is: a full collection of garbage has nothing more to look at."""

    async def work():
        return {"a": [1, 2, 3]}

    async with Scheduler(clock=clock) as s:
        jobs = [s.add(work, Every("10s", anchor=clock.now())) for _ in range(100)]
        await clock.travel(100)
        gc.collect()
        before = len(gc.get_objects())
        await clock.travel(1_000)
        gc.collect()
        assert len(gc.get_objects()) <= before + 20
        assert jobs[0].statistics().last_result == {"a": [1, 2, 3]}

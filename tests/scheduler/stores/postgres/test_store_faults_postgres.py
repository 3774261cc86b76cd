"""A scheduler whose PostgreSQL is restarted, loses its connections or stands still."""

from contextlib import contextmanager

import psycopg
import pytest
from anyio.to_thread import run_sync

from kit import until
from scheduler import StoreDown, StoreUp
from scheduler.stores._postgres.connection import StoreConnection

pytestmark = pytest.mark.slow


@pytest.fixture(params=["postgres"])
def place(place):
    """One that does not wait long for a server that stands still."""
    place.spec["dsn"] += " connect_timeout=2"
    return place


@pytest.fixture
def backends(postgres_server):
    """List the processes that serve stores."""

    def backends():
        query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'timerqueue'"
        with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
            return [pid for (pid,) in connection.execute(query)]

    return backends


@pytest.fixture
def terminate(postgres_server):
    def terminate(pids):
        with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
            for pid in pids:
                connection.execute("SELECT pg_terminate_backend(%s)", [pid])

    return terminate


async def check_that_it_goes_on(work, events):
    begun = len(work)
    await until(lambda: len(work) >= begun + 3)
    assert [type(event) for event in events.of(StoreDown, StoreUp)] in ([StoreDown, StoreUp], [StoreDown, StoreUp] * 2)


@pytest.mark.parametrize("how", ["fast", "immediate"])
async def test_a_restart_of_the_server_is_survived(place, postgres_server, ticking, work, events, how):
    """An orderly one and a crash. What was acknowledged is there, what runs is on record."""
    async with ticking(place.store()) as s:
        await until(lambda: len(work) >= 3)
        await run_sync(postgres_server.stop, how)
        await until(lambda: events.of(StoreDown))
        begun = len(work)
        s.add("work", "0 0 1 1 *", id="extra").run_now()
        assert "PostgreSQL at" in events.of(StoreDown)[0].error
        await run_sync(postgres_server.start)
        await until(lambda: events.of(StoreUp))
        await until(lambda: ("extra", 1) in {(run[0], run[2]) for run in work})
        await check_that_it_goes_on(work, events)
        assert begun < len(work)
    rows, ticks = place.content()
    assert set(rows) == {"extra", "ticks"}
    work.check(ticks)


async def test_connections_that_are_ended_are_made_anew(place, ticking, work, events, backends, terminate):
    """All of them, the one that listens included: jobs written by hand are still seen at once."""
    async with ticking(place.store()) as s:
        await until(lambda: len(work) >= 3)
        before = await run_sync(backends)
        assert len(before) >= 2
        await run_sync(terminate, before)
        await until(lambda: events.of(StoreUp))
        await check_that_it_goes_on(work, events)
        await s.history("ticks")
        assert not {*before} & {*await run_sync(backends)}
    work.check(place.content()[1])


async def test_a_server_that_stands_still_stops_no_loop(
    place, postgres_server, ticking, work, events, backends, monkeypatch
):
    """Nothing starts without a mark, all else goes on, and when it moves again so does all."""
    monkeypatch.setattr(StoreConnection, "patience", 5)
    beats = []

    async def beat():
        beats.append(None)

    @contextmanager
    def frozen():
        with postgres_server.frozen(*backends(), postgres_server.pid):
            yield

    async with ticking(place.store()) as s:
        s.add(beat, "@every 20ms", durable=False)
        await until(lambda: len(work) >= 3)
        with frozen():
            await until(lambda: events.of(StoreDown))
            assert "has not answered" in events.of(StoreDown)[0].error
            begun, count = len(work), len(beats)
            await until(lambda: len(beats) >= count + 10)
            assert len(work) == begun
        await until(lambda: events.of(StoreUp))
        await check_that_it_goes_on(work, events)
    work.check(place.content()[1])

"""A store that has forgotten its last changes, as a standby has that was behind: jobs are as its rows say from then on.

What the standby does not know of is taken out of the tables here; test_failovers.py has a standby.
"""

from threading import Event

import pytest

from kit import PATIENCE, until
from schedule import Every
from scheduler import StoreDown, StoreUnavailable
from scheduler._memory import rereading
from scheduler.stores import StoreBusy


@pytest.fixture
def forget(fleet):
    """Take changes back without a word in the log, as a server does that never knew of them."""

    def forget(store, *statements):
        fleet.execute("ALTER TABLE job DISABLE TRIGGER USER")
        fleet.execute("ALTER TABLE pause DISABLE TRIGGER USER")
        for statement in statements:
            fleet.execute(statement)
        fleet.execute("ALTER TABLE job ENABLE TRIGGER USER")
        fleet.execute("ALTER TABLE pause ENABLE TRIGGER USER")
        ask = store.changes

        def changes():  # one that is under way says where it has come to
            store.changes = ask
            store.log.begin(f"1000000000:1000000000: {store.log.seen.split(' ')[1]}")
            return ask()

        store.changes = changes

    return forget


@pytest.mark.parametrize("kind", ["postgres", "not stored"], ids=["alone", "shared"])
async def test_jobs_and_pauses_are_as_the_rows_of_a_store_that_forgets(fleet, forget, kind, tmp_path):
    """A job that is gone again, one that is there again, one that has its old schedule, and two pauses."""
    store = fleet.store_of(kind, tmp_path)
    async with fleet.scheduler("one", store) as s:
        for id in ("stays", "goes", "turns back"):
            s.add("work", "@every 9h", id=id)
        s.pause("all of it")
        await s.flush()
        forget(
            store,
            "DELETE FROM job WHERE id = 'goes'",
            "UPDATE job SET schedule = '@every 50ms' WHERE id = 'turns back'",
            "INSERT INTO job (id, task, schedule) VALUES ('comes back', 'work', '@every 50ms')",
            "DELETE FROM pause",
            "INSERT INTO pause (scope, reason) VALUES ('tag:old', 'again')",
        )
        await until(lambda: fleet.runners() and {id for _, id, _ in fleet.runs} == {"turns back", "comes back"})
        assert {job.id for job in s.jobs()} == {"stays", "turns back", "comes back"}
        s.stop(grace=0)


async def test_what_is_written_while_a_store_is_read_anew_stays(fleet, forget, tmp_path):
    """The rows are those of the beginning: of what is put or removed here meanwhile they say what was."""
    store, has_read, goes_on = fleet.store_of("postgres", tmp_path), Event(), Event()
    read = store.load

    def load():
        for page in read():
            has_read.set()
            assert goes_on.wait(PATIENCE)
            yield page

    async with fleet.scheduler("one", store) as s:
        for id in ("goes", "changes", "last"):
            s.add("work", "@every 9h", id=id)
        await s.flush()
        store.load = load
        forget(store, "UPDATE job SET schedule = '@every 50ms' WHERE id = 'last'")
        await until(has_read.is_set)
        s.get("goes").remove()
        s.get("changes").update(schedule="@every 8h")
        s.add("work", "@every 9h", id="comes")
        goes_on.set()
        await until(lambda: fleet.runs and not s._memory.polling._rereading._going_on)
        schedules = {job.id: job.schedule for job in s.jobs()}
        assert schedules == {"changes": Every("8h"), "comes": Every("9h"), "last": Every("50ms")}
        s.stop(grace=0)


@pytest.mark.parametrize(("kind", "is_down"), [(StoreUnavailable, True), (StoreBusy, False)])
async def test_rows_that_cannot_be_read_are_read_again(fleet, forget, tmp_path, monkeypatch, kind, is_down):
    """From the first one on: the store may have been away in between. That others of us have the connection for that
    says nothing of the store.
    """
    monkeypatch.setattr(rereading, "RETRY_S", 0.01)
    store, failures = fleet.store_of("postgres", tmp_path), []
    read = store.load

    def load():
        pages = read()
        if len(failures) < 2:
            failures.append(len(failures))
            if failures[-1]:
                yield next(pages)
            raise kind("away")
        yield from pages

    async with fleet.scheduler("one", store) as s:
        s.add("work", "@every 9h", id="a")
        await s.flush()
        store.load, told = load, []
        s.listen(told.append, StoreDown)
        forget(
            store, "UPDATE job SET schedule = '@every 50ms'", "INSERT INTO pause (scope, reason) VALUES ('tag:x', '')"
        )
        await until(lambda: fleet.runs and s.pauses() and not s._memory.polling._rereading._going_on)
        assert (len(failures), bool(told)) == (2, is_down)
        s.stop(grace=0)


async def test_a_pause_that_is_lifted_while_rows_are_read_anew_is_lifted(fleet, forget, tmp_path):
    """Pauses were read before the rows, and what was changed between the two was never told of."""
    store, reads = fleet.store_of("postgres", tmp_path), []
    read = store.load

    def load():
        fleet.execute("DELETE FROM pause")
        reads.append("rows")
        yield from read()

    async with fleet.scheduler("one", store) as s:
        s.add("work", "@every 9h", id="a")
        s.pause("all of it")
        await s.flush()
        store.load = load
        forget(store, "UPDATE job SET schedule = '@every 8h'")
        await until(lambda: reads and not s._memory.polling._rereading._going_on)
        await until(lambda: not s.pauses())
        s.stop(grace=0)

"""The place of a job: jobs of one place are on one agent, and a job keeps its place."""

import pytest

from schedule import Every
from scheduler import InvalidJob, Scheduler
from scheduler.stores import StoredJob, shard_of
from scheduler.stores.memory import MemoryStore
from scheduler.stores.postgres import PostgresStore


@pytest.fixture
def s():
    """Make a scheduler with a task."""
    s = Scheduler(store=MemoryStore())
    s.register("work", work)
    return s


async def work():
    """Do nothing."""


def test_a_job_without_a_place_is_one_by_itself(s):
    """It costs nothing: its options are those of all jobs."""
    one, two = s.add("work", Every(1), id="a"), s.add("work", Every(1), id="b", place="host:x")
    assert one.policy is s.add("work", Every(1), id="c", place=None).policy
    assert one.policy.place is None
    assert two.policy.place == "host:x"


def test_a_job_keeps_its_place(s):
    """Its agent may be at work on it."""
    job = s.add("work", Every(1), id="a", place="x")
    for place in ("y", None):
        with pytest.raises(InvalidJob, match=r"job 'a' keeps its place, 'x'.*replace"):
            job.update(place=place)
        with pytest.raises(InvalidJob, match=r"job 'a' keeps its place, 'x'.*replace"):
            s.add("work", Every(1), id="a", place=place, on_conflict="update")
    job.update(place="x", priority=3)
    assert s.add("work", Every(1), id="a", place="y", on_conflict="replace").policy.place == "y"


@pytest.mark.parametrize("place", ["", 1, "x" * 1_001, "a\0b"])
def test_a_place_is_a_text_that_a_store_can_hold(s, place):
    """Anything else is refused at once."""
    with pytest.raises(InvalidJob, match="place"):
        s.add("work", Every(1), id="a", place=place)
    assert s.jobs() == []


def test_the_tables_know_the_shard_of_a_place(postgres_server, postgres_schema):
    """Options that somebody has written by hand and that cannot be read leave a job where its id is."""
    options = {
        "a": '{"place": "host:x"}',
        "b": '{"priority": 2, "place": "host:x"}',
        "c": '{"priority": 2}',
        "d": '{"place": nonsense',
        "e": '{"needs": "place"}',
        "f": '{"place": null}',
    }
    store = PostgresStore(postgres_server.dsn, schema=postgres_schema, shared=True)
    store.open(0, lambda: None)
    try:
        with store.transaction() as connection:
            for id, text in options.items():
                row = StoredJob(id, "work", "@every 1m", options=text)
                connection.execute(
                    f"INSERT INTO {postgres_schema}.job (id, task, schedule, options) VALUES (%s, %s, %s, %s)",
                    [row.id, row.task, row.schedule, row.options],
                )
            found = dict(connection.execute(f"SELECT id, shard FROM {postgres_schema}.job").fetchall())
    finally:
        store.close()
    assert found == {id: shard_of("host:x" if id in "ab" else id) for id in options}

"""A batch that a server has no time for: it is sent in pieces until each gets through."""

import psycopg
import pytest
from psycopg import sql

from inline_store import InlineStore, ask_inline
from kit import nothing, settle, until
from scheduler import Outcome, Scheduler
from scheduler.stores import StoreUnavailable, StoreUnreachable
from scheduler.stores.postgres import PostgresStore

MANY = 1_000
FEW = 300
"""Marks that the server has time for."""

SLOW = """
    CREATE FUNCTION {schema}.be_slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF (SELECT count(*) FROM put) > {few} THEN
            RAISE query_canceled USING MESSAGE = 'canceling statement due to statement timeout';
        END IF;
        RETURN NULL;
    END $$;
    CREATE TRIGGER be_slow AFTER INSERT ON {schema}.tick REFERENCING NEW TABLE AS put
        EXECUTE FUNCTION {schema}.be_slow()
"""
"""As a server that is starved of CPU answers, without the five seconds before that."""


async def test_starts_that_are_too_many_for_the_server_at_once_begin(postgres_server, postgres_schema, events):
    """They are sent in halves, instead of all together for as long as the server is so slow."""
    store = PostgresStore(postgres_server.dsn, schema=postgres_schema)
    async with Scheduler(store=store, limit=MANY, blocked_after=None) as s:
        s.register("nothing", nothing)
        s.listen(events)
        jobs = s.add_many("nothing", [(f"job-{number}", "@every 9h") for number in range(MANY)])
        await s.flush()
        with psycopg.connect(postgres_server.dsn, autocommit=True) as admin:
            admin.execute(sql.SQL(SLOW).format(schema=sql.Identifier(postgres_schema), few=FEW))
        for job in jobs:
            job.run_now()
        await until(lambda: len(events.outcomes()) == MANY)
        await s.flush()
        assert set(events.outcomes()) == {Outcome.SUCCEEDED}
        s.stop(0)


class Server(InlineStore):
    """Has no time for more than `most` states, and refuses so many connections before."""

    most = MANY
    refusals = 0

    def commit(self, batch):
        if self.refusals:
            self.refusals -= 1
            raise StoreUnreachable("connection refused")
        if len(batch.states) > self.most:
            raise StoreUnavailable("it takes too long")
        return super().commit(batch)


@pytest.fixture
def server(monkeypatch):
    ask_inline(monkeypatch)
    return Server()


async def start_all(s, clock, server):
    """Let all jobs start at once. How many marks went together, batch after batch, until all have got through."""
    server.batches.clear()
    for job in s.jobs():
        job.run_now()
    while sum(len(batch.marks) for batch in server.batches) < MANY:
        await clock.travel(0.1)
    await settle()
    return [len(batch.marks) for batch in server.batches if batch.marks]


async def test_batches_grow_again_once_the_server_has_time(server, clock):
    """No second start of all of them fails while it has none; afterwards they share a commit as before."""
    async with Scheduler(store=server, clock=clock, limit=MANY, blocked_after=None) as s:
        s.register("nothing", nothing)
        s.add_many("nothing", [(f"job-{number}", "@every 9h") for number in range(MANY)])
        await s.flush()
        server.most = FEW
        assert max(await start_all(s, clock, server)) <= FEW
        assert max(await start_all(s, clock, server)) <= FEW
        server.most = MANY
        for _ in range(3):
            together = await start_all(s, clock, server)
        assert together == [MANY]
        s.stop(0)


@pytest.mark.parametrize(("refusals", "is_whole"), [(5, True), (42, False)])
async def test_what_a_server_refused_that_could_not_be_reached_is_sent_as_a_whole(server, clock, refusals, is_whole):
    """It came in pieces, each a way to the server and back later than the one before. But what breaks each connection
    may do so for its size: it is sent in pieces in the end.
    """
    async with Scheduler(store=server, clock=clock, limit=MANY, blocked_after=None) as s:
        s.register("nothing", nothing)
        s.add_many("nothing", [(f"job-{number}", "@every 9h") for number in range(MANY)])
        await s.flush()
        server.refusals = refusals
        assert (await start_all(s, clock, server) == [MANY]) == is_whole
        s.stop(0)


async def test_the_last_words_are_said_in_pieces(server, clock):
    """The server had no time for all of them at once, and all of them were lost. Here it is away before the stop."""
    async with Scheduler(store=server, clock=clock, limit=MANY, blocked_after=None) as s:
        s.register("nothing", nothing)
        jobs = s.add_many("nothing", [(f"job-{number}", "@every 9h") for number in range(MANY)])
        await s.flush()
        server.most = -1
        for job in jobs:
            job.run_now()
        await clock.travel(1)
        server.batches.clear()
        server.most = FEW
        s.stop(0)
    assert len(server.batches) > MANY // FEW
    assert {id for batch in server.batches for id in batch.states} == {job.id for job in jobs}
    assert s.statistics().store.unsaved == 0

"""The table of outages: its rows are in order, and what it does to the server's sessions happens."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from fleet_outages import Row, in_order, victim_of
from fleet_records import SECOND, begun, evidence
from kit import wait_until
from postgres_server import PostgresServer
from server_outages import Victim, busy, used_up

FULL = {"max_connections": 8, "superuser_reserved_connections": 0}

CLIENTS = "SELECT array_agg(pid) FROM pg_stat_activity WHERE backend_type = 'client backend'"


def agent_at(server, name):
    """Connect as an agent of that name does."""
    return psycopg.connect(f"{server.dsn} application_name={name}")


def is_full(looks, without):
    """Whether all sessions of the server are taken, and none is that one."""
    (pids,) = looks.execute(CLIENTS).fetchone()
    return len(pids) == FULL["max_connections"] and without not in pids


def work_until(agent, is_over):
    """Commit, as an agent does, until the session has ended or all is over."""
    with contextlib.suppress(psycopg.OperationalError):
        while not is_over():
            agent.execute("SELECT 1")
            agent.commit()


def has_ended(agent):
    """Whether the server has ended the session."""
    with pytest.raises(psycopg.OperationalError):
        agent.execute("SELECT 1")
    return agent.closed


def test_sessions_that_are_asked_often_are_busy():
    """Each change of a state counts once, however often it was seen."""
    often = [(7, second) for second in range(6)]
    assert busy([*often, *often, *[(8, 1)] * 99]) == [7]


def test_an_agent_in_the_middle_of_a_commit_loses_its_session(postgres_server):
    """A far agent is nearly always inside of one. Its other sessions stay, also one that has just committed."""
    with (
        psycopg.connect(postgres_server.dsn, autocommit=True) as hand,
        agent_at(postgres_server, "middle") as works,
        agent_at(postgres_server, "middle") as seldom,
        ThreadPoolExecutor(1) as pool,
    ):
        finding = pool.submit(Victim.working, postgres_server, "middle")
        work_until(works, finding.done)
        seldom.execute("SELECT 1")
        seldom.commit()
        works.execute("SELECT 1")
        assert finding.result().end(hand) == 1
        assert has_ended(works)
        seldom.execute("SELECT 1")


def test_an_agent_that_does_not_commit_is_an_error(postgres_server):
    """The row would have no effect, and its figures would say that an outage costs nothing."""
    with pytest.raises(LookupError, match="'nobody' has not committed"):
        Victim.working(postgres_server, "nobody")


def test_a_victim_that_is_faster_loses_its_new_session_as_well():
    """Another program has all connections while the block lasts."""
    with PostgresServer(settings=FULL) as server, ThreadPoolExecutor(1) as pool:
        is_over = threading.Event()

        def come_again_and_again():
            while not is_over.is_set():
                with contextlib.suppress(psycopg.OperationalError), agent_at(server, "fast") as agent:
                    work_until(agent, is_over.is_set)

        with holding(is_over):
            pool.submit(come_again_and_again)
            with used_up(server, Victim.working(server, "fast")):
                for _ in range(9):
                    with pytest.raises(psycopg.OperationalError, match="too many clients"):
                        psycopg.connect(server.dsn)


def test_a_connection_that_another_agent_gives_up_is_taken_as_well():
    """A victim that asks often would have it before the outage is over."""
    with PostgresServer(settings=FULL) as server, psycopg.connect(server.dsn, autocommit=True) as looks:
        other = agent_at(server, "other")
        with used_up(server, Victim.all_of("nobody")):
            gone = other.info.backend_pid
            other.close()
            wait_until(lambda: is_full(looks, without=gone))


@contextlib.contextmanager
def holding(is_over):
    """Have it be over in the end."""
    try:
        yield
    finally:
        is_over.set()


def test_behind_a_pooler_the_sessions_of_all_agents_end(postgres_server):
    """It would give another one to an agent whose session has ended."""
    with psycopg.connect(postgres_server.dsn, autocommit=True) as hand:
        hand.execute("CREATE ROLE pooled LOGIN")
        try:
            first, second = (psycopg.connect(f"{postgres_server.dsn} user=pooled") for _ in range(2))
            assert Victim.all_of("pooled").end(hand) == 2
            assert has_ended(first)
            assert has_ended(second)
        finally:
            hand.execute("DROP ROLE pooled")


def test_a_row_behind_a_pooler_ends_all_sessions():
    """Of the role of the agents."""
    assert victim_of(Row("password", 1, "pooler", has_queue=False), None) == Victim.all_of("fleet")


def test_rows_that_are_played_at_once_stand_in_order():
    """The first row ends after the second has."""
    second_has_ended = threading.Event()

    def play(row):
        if row == "second":
            second_has_ended.set()
        return row, second_has_ended.wait(60)

    assert list(in_order(play, ["first", "second"], 2)) == [("first", True), ("second", True)]


class Broken(Row):
    """A row that cannot be played."""

    def played(self, options):
        raise TimeoutError(f"after {options} s")


def test_a_row_that_cannot_be_played_says_why():
    """The others are worth playing."""
    said = Broken("stop", 1, "direct", has_queue=False).text(5)
    assert said == "| stop | 1 | direct | no | could not be played: TimeoutError('after 5 s') |"


def test_the_starts_that_an_outage_made_late_are_counted():
    """A row in which nothing was late had no effect. What was late before the outage does not count."""
    runs = [begun(due=second * SECOND, at=(second + late) * SECOND) for second, late in ((1, 9), (20, 2), (21, 0))]
    figures = Row("stop", 3, "direct", has_queue=False).figures(
        evidence(*runs, every=SECOND), since=20 * SECOND, back=23 * SECOND, until=24 * SECOND
    )
    assert figures.startswith("3.0 | 1 | ")

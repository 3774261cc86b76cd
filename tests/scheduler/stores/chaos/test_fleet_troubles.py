"""Bad days of a server as the chaos plays them, on a real server: each begins while a commit is held on its way."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from types import SimpleNamespace

import psycopg
import pytest

import fleet_outage_defects
import fleet_outage_troubles
from fleet_members import Member
from fleet_outage_troubles import BLOCKS, outage, starve
from kit import wait_until
from postgres_server import PostgresServer
from scheduler.stores import postgres
from scheduler.stores.postgres import PostgresStore

MARKS = "SELECT '{\"running\"' FROM chaos.agent"
"""Words of a commit that the chaos holds, and a lock that it has: that of who reads the table of agents."""


@pytest.fixture
def fleet():
    """What a trouble knows of a fleet: its server, and what stands there."""
    with PostgresServer() as server:
        with psycopg.connect(server.dsn, autocommit=True) as hand:
            hand.execute("CREATE SCHEMA chaos")
            hand.execute("CREATE TABLE chaos.agent ()")
        yield SimpleNamespace(server=server, door=None, broker=None, schemas={"chaos": 0})


@contextmanager
def committing(fleet):
    """Have a member commit again and again, over a proxy, until the block ends or its session does."""
    member, is_over = Member(fleet, "a"), threading.Event()

    def commit(agent):
        while not is_over.is_set():
            agent.execute(MARKS, prepare=False)
            agent.commit()

    def work():
        with psycopg.connect(f"{member.proxy.dsn} application_name=a") as agent:
            commit(agent)

    with member.proxy, ThreadPoolExecutor(1) as pool:
        works = pool.submit(work)
        try:
            yield member, works
        finally:
            member.proxy.let_go()
            is_over.set()


def test_a_lock_of_the_agents_does_not_wait_for_ever_for_a_commit_that_is_held(fleet):
    """That one has a lock itself, and was let go once the table was locked: never."""
    with committing(fleet) as (member, works):
        member.hold_a_commit(answer=False)
        assert member.held
        since, until, lost = outage(BLOCKS["lock"], 0)(fleet, member, Random(1))
    assert since < until
    assert lost is None
    works.result()


def test_an_agent_loses_its_connection_in_the_middle_of_a_commit(fleet, monkeypatch):
    """Which of its sessions commits is seen only while none of its commits is held."""
    monkeypatch.setattr(fleet_outage_troubles, "STARVES", 0)
    with committing(fleet) as (member, works):
        member.hold_a_commit(answer=False)
        assert member.held
        starve(fleet, member, Random(1))
        assert member.held
    with pytest.raises(psycopg.OperationalError):
        works.result()


def test_a_server_goes_on_of_which_a_process_ended_as_it_stood_still():
    """The postmaster buries such a process as soon as it goes on itself, so it goes on last."""
    with PostgresServer() as server:
        hand = psycopg.connect(server.dsn)
        ended = hand.info.backend_pid
        os.kill(server.pid, signal.SIGSTOP)
        hand.close()
        wait_until(lambda: Path(f"/proc/{ended}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
        with server.frozen(server.pid, *[ended] * 100_000):  # it takes so long that the postmaster is faster
            pass
        psycopg.connect(server.dsn).close()


def test_a_defect_in_the_tables_is_planted_once(postgres_server, postgres_schema, monkeypatch):
    """An agent that joins again waits for no lock that the defect, or a commit, has at that moment."""
    monkeypatch.setattr(postgres, "prepare", postgres.prepare)
    fleet_outage_defects.snapshot()
    with closing(PostgresStore(postgres_server.dsn, schema=postgres_schema, shared=True)) as first:
        first.open(0, lambda: None)
        with psycopg.connect(postgres_server.dsn) as commits:
            commits.execute(f'LOCK TABLE "{postgres_schema}".tick IN ROW EXCLUSIVE MODE')
            with closing(PostgresStore(postgres_server.dsn, schema=postgres_schema, shared=True)) as again:
                again.open(0, lambda: None)

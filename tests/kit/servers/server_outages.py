"""Outages of a PostgreSQL that agents share, and other bad days of it: for fleet_troubles.py and fleet_outages.py.

Each is a block: the server is away for as long as it lasts, and back when it has ended. `Standby` is a server that
follows another one, and can be promoted in its place.
"""

import contextlib
import os
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import psycopg
from psycopg import sql

from postgres_server import PATIENCE, PostgresServer, until

SOON = 0.3
"""Seconds in which a session ends that has been told to."""

LOOKS, OFTEN = 1.0, 6
"""Seconds for which sessions are looked at, and how often one that commits is asked in that time at least."""

AGAIN = 0.01
"""Seconds after which a program that wants all connections asks for one more."""

SESSIONS = "SELECT pid, state_change FROM pg_stat_activity WHERE application_name = %s"
END_SESSIONS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {column} = %s AND ({condition})
"""


def stand_alone(server):
    """Let commits wait for no standby any more."""
    ask(server, "ALTER SYSTEM RESET synchronous_standby_names")
    ask(server, "SELECT pg_reload_conf()")


def ask(server, text, *asked):
    """Ask a server over a connection of its own. Returns the rows."""
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        cursor = connection.execute(text, asked or None)
        return cursor.fetchall() if cursor.description else []


@contextlib.contextmanager
def stopped(server, how="fast"):
    """The server is stopped, and started in the end."""
    server.stop(how)
    try:
        yield
    finally:
        server.start()


@contextlib.contextmanager
def still(server):
    """All processes of the server stand still, as where its disk or its hypervisor does."""
    os.kill(server.pid, signal.SIGSTOP)  # first: it starts no other meanwhile
    pids = server.pids()
    with server.frozen(*pids):
        yield


@contextlib.contextmanager
def locked(server, schemas):
    """The table of agents is locked, as a step of a migration or a VACUUM FULL locks it."""
    with psycopg.connect(server.dsn) as connection:
        for schema in schemas:
            connection.execute(sql.SQL("LOCK TABLE {}.agent").format(sql.Identifier(schema)))
        yield


@contextlib.contextmanager
def altered(server, schema):
    """A step of the schema goes on: others may read the table of agents meanwhile, and the server is busy with it."""
    with psycopg.connect(server.dsn) as connection:
        connection.execute(sql.SQL("LOCK TABLE {}.agent IN EXCLUSIVE MODE").format(sql.Identifier(schema)))

        def work():
            with contextlib.suppress(psycopg.errors.QueryCanceled):
                connection.execute("SELECT pg_sleep(600)")

        working = threading.Thread(target=work)
        working.start()
        try:
            yield
        finally:
            connection.cancel_safe()
            working.join()


class Victim(NamedTuple):
    """The sessions that an outage ends: those over which one agent works, or all of a role.

    `pids`: of the sessions that are there before the outage; None: of all.
    """

    column: str
    name: str
    pids: list[int] | None

    @classmethod
    def working(cls, server, agent):
        """Find the sessions over which an agent commits and takes, by how often they are asked: it takes a second.

        Those for its lease and for news are asked seldom. `agent`: its application_name.
        """
        with psycopg.connect(server.dsn, autocommit=True) as hand:
            seen, over = [], time.monotonic() + LOOKS
            while time.monotonic() < over:
                seen += hand.execute(SESSIONS, [agent]).fetchall()
                time.sleep(LOOKS / 200)
        if not (pids := busy(seen)):
            raise LookupError(f"agent {agent!r} has not committed within {LOOKS:g} s")
        return cls("application_name", agent, pids)

    @classmethod
    def all_of(cls, role):
        """All sessions of a role: a pooler gives each of them to whichever agent asks next."""
        return cls("usename", role, None)

    def end(self, hand):
        """End the sessions. Returns how many."""
        return self._end(hand, "%s::int[] IS NULL OR pid = ANY (%s)", self.pids, self.pids)

    def end_new(self, hand, since):
        """End what began after that instant of the server. Returns how many."""
        return self._end(hand, "backend_start > %s", since)

    def _end(self, hand, condition, *asked):
        ended = hand.execute(END_SESSIONS.format(column=self.column, condition=condition), [self.name, *asked])
        return len(ended.fetchall())


def busy(seen):
    """Return the ids of the sessions that are asked often. `seen`: ids, and when each session's state changed last."""
    changes = Counter(pid for pid, _ in set(seen))
    return sorted(pid for pid, count in changes.items() if count >= OFTEN)


@contextlib.contextmanager
def used_up(server, victim):
    """Another program has all connections, and the sessions of a Victim end."""
    with contextlib.ExitStack() as stack:
        hand = stack.enter_context(psycopg.connect(server.dsn, autocommit=True))
        take_all(server, stack)
        take_from(hand, server, stack, victim)
        stack.enter_context(taking(server))
        yield


@contextlib.contextmanager
def taking(server):
    """Take each connection that becomes free while the block lasts: agents end sessions of their own accord, too."""
    is_over = threading.Event()

    def take():
        with contextlib.ExitStack() as stack:
            while not is_over.is_set():
                take_all(server, stack)
                time.sleep(AGAIN)

    with ThreadPoolExecutor(1) as pool:
        takes = pool.submit(take)
        try:
            yield
        finally:
            is_over.set()
        takes.result()


def take_from(hand, server, stack, victim):
    """End the sessions of a victim, and take their connections. If the victim was faster, end its new sessions, too."""
    (since,) = hand.execute("SELECT clock_timestamp()").fetchone()
    ended = victim.end(hand)
    over = time.monotonic() + PATIENCE
    while ended and time.monotonic() < over:
        for _ in range(ended):
            take_next(server, stack)
        (now,) = hand.execute("SELECT clock_timestamp()").fetchone()
        ended, since = victim.end_new(hand, since), now
    if ended:
        raise TimeoutError(f"{victim.name!r} is always faster")


def take_all(server, stack):
    """Take each connection that the server has left."""
    with contextlib.suppress(psycopg.OperationalError):
        while True:
            stack.enter_context(contextlib.closing(psycopg.connect(server.dsn)))


def take_next(server, stack):
    """Take a connection that ends just now, before anybody else does: agents wait a moment until they ask again."""
    over = time.monotonic() + SOON
    while time.monotonic() < over:
        with contextlib.suppress(psycopg.OperationalError):
            stack.enter_context(contextlib.closing(psycopg.connect(server.dsn)))
            return


@contextlib.contextmanager
def published(server):
    """Each table is published, and somebody reads what is published (change data capture). It needs wal_level=logical.

    Yields a function that reads once.
    """
    with psycopg.connect(server.dsn, autocommit=True) as hand:
        hand.execute("CREATE PUBLICATION chaos FOR ALL TABLES")
        hand.execute("SELECT pg_create_logical_replication_slot('chaos', 'pgoutput')")
        try:
            yield lambda: hand.execute(
                "SELECT count(*) FROM pg_logical_slot_get_binary_changes('chaos', NULL, 10000,"
                " 'proto_version', '1', 'publication_names', 'chaos')"
            ).fetchone()[0]
        finally:
            hand.execute("SELECT pg_drop_replication_slot('chaos')")
            hand.execute("DROP PUBLICATION chaos")


class Standby(PostgresServer):
    """A server that follows another one, whose clock it shares. Start it, promote it, and close the other one."""

    def __init__(self, primary):
        self._primary = primary
        super().__init__(settings={**primary.settings, "unix_socket_directories": ""})
        self.settings["unix_socket_directories"] = self.folder
        self.clock, self._offset, self._faked = primary.clock, primary._offset, primary._faked

    def _find_programs(self):
        return self._primary.programs

    def _make_data(self, options):
        """Copy what the primary has, and what it writes meanwhile."""
        self.environment = self._primary.environment
        command = ["-h", self._primary.folder, "-U", "postgres", "-D", self.folder / "data", "-R", "-c", "fast"]
        process = self._popen("pg_basebackup", *command, "--no-sync", *options)
        assert process.wait(PATIENCE) == 0, (self.folder / "log").read_text()

    def catch_up(self):
        """Wait until it has all that the primary has by now."""
        (place,) = ask(self._primary, "SELECT pg_current_wal_lsn()")[0]
        until(lambda: ask(self, "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", place)[0][0], "the standby catches up")

    def become_synchronous(self):
        """Let no commit on the primary be over before this one has it, too."""
        ask(self._primary, "ALTER SYSTEM SET synchronous_standby_names = '*'")
        ask(self._primary, "SELECT pg_reload_conf()")
        until(
            lambda: ask(self._primary, "SELECT pid FROM pg_stat_replication WHERE sync_state = 'sync'"),
            "the standby becomes synchronous",
        )

    def fall_behind(self):
        """Receive nothing more."""
        ask(self, "ALTER SYSTEM SET primary_conninfo = ''")
        ask(self, "SELECT pg_reload_conf()")
        until(lambda: not ask(self._primary, "SELECT pid FROM pg_stat_replication"), "the standby receives no more")

    def promote(self):
        """Become a primary. The other one has ended."""
        ask(self, "SELECT pg_promote(true)")

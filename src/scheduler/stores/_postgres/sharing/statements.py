from __future__ import annotations

from ..._store import Opened, StoreTakenOver, StoreUnusable
from ..changes import NOW, NewsStatements
from ..connection import Cursor, StoreConnection, one_row, sql
from ..statements import ShardStatements, Statements
from ..table import REQUEST

ROUND, ROUNDS = "1s", 20
"""A wait for a session's end has rounds, each with its own snapshot."""


class SharingStatements:
    def __init__(self, statements: Statements, schema: str) -> None:
        of = statements.of
        self._name = sql.Literal(f"timerqueue {schema}")
        self.answers = statements.answers
        self.asked = of(
            "SELECT asked_at, {columns} FROM {schema}.request WHERE done_at IS NULL AND (asked_at, number) > (%s, %s)"
            " AND NOT EXISTS (SELECT FROM unnest(%s::bigint[]) AS begun WHERE begun = number)"
            " AND job_id IN (SELECT id FROM {schema}.job JOIN {owned} AS owned ON owned.number = job.shard"
            " WHERE owner = %s) ORDER BY asked_at, number LIMIT %s",
            REQUEST,
            owned=statements.owned,
        )
        self.join = of(
            "INSERT INTO {schema}.lease (epoch, until, format, is_unsettled)"
            " VALUES (%s, clock_timestamp() + %s * interval '1s', %s, true)"
        )
        self.settle = of(
            "WITH told AS (UPDATE {schema}.lease SET is_unsettled = %(is_unsettled)s"
            " WHERE epoch = %(me)s AND {is_ours}) SELECT pg_notify(%(channel)s, %(hint)s)",
            is_ours=statements.is_ours,
        )
        self.others = of(
            "SELECT name FROM {schema}.agent JOIN {schema}.lease USING (epoch) WHERE until > clock_timestamp() LIMIT 1"
        )
        without_lease = of("NOT EXISTS (SELECT FROM {schema}.lease WHERE lease.epoch = agent.epoch)")
        self.unshared = of(
            "SELECT name FROM {schema}.agent WHERE {without_lease}"
            " AND NOT pg_try_advisory_xact_lock_shared(hashtext({name}), agent.epoch::integer) LIMIT 1",
            without_lease=without_lease,
            name=self._name,
        )
        self.forget = of("DELETE FROM {schema}.agent")
        self.forget_unshared = of("DELETE FROM {schema}.agent WHERE {without_lease}", without_lease=without_lease)
        until_us = sql.SQL("floor(extract(epoch FROM lease.until) * 1000000)::bigint")
        self.renew = of(
            "WITH renewed AS (UPDATE {schema}.lease SET until = clock_timestamp() + %(lease)s * interval '1s',"
            " in_session = %(in_session)s, skew = %(skew)s, is_off = %(is_off)s,"
            " connections = %(connections)s WHERE epoch = %(me)s AND {is_ours}"
            " AND NOT %(only_look)s RETURNING"
            " set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'),"
            " true)) SELECT EXISTS (SELECT FROM renewed)"
            " OR %(only_look)s AND EXISTS (SELECT FROM {schema}.lease WHERE epoch = %(me)s) AND {is_ours},"
            " floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint,"
            " (SELECT array_agg(coalesce(owner, 0) ORDER BY number) FROM {schema}.shard),"
            " (SELECT json_agg(json_build_array(epoch, name, extract(epoch FROM until - clock_timestamp()), format,"
            " opened_us, in_session, labels, skew, is_off, is_unsettled, {until_us}) ORDER BY epoch)"
            " FROM {schema}.agent JOIN {schema}.lease USING (epoch)),"
            " (SELECT json_agg(json_build_array(number, labels, coalesce(owner, 0))) FROM {schema}.labelled_shard),"
            " {is_news}, {now}",
            is_news=NewsStatements(statements, shared=True).is_news,
            now=NOW,
            is_ours=statements.is_ours,
            until_us=until_us,
        )
        self.hint = of("SELECT pg_notify(%s, %s)")
        self.of_shards = ShardStatements(statements)
        self._set_ends(statements, until_us)

    def _set_ends(self, statements: Statements, until_us: sql.SQL) -> None:
        of = statements.of
        self.wait_for_last = of("SELECT FROM {schema}.agent WHERE epoch = ANY (%s::bigint[]) ORDER BY epoch FOR UPDATE")
        self.bury = of(  # a node that renewed its lease while we waited lives, and none can renew from here on
            "DELETE FROM {schema}.agent USING (SELECT epoch FROM {schema}.lease WHERE epoch = ANY (%s::bigint[])"
            " AND (until < clock_timestamp() OR in_session AND epoch = ANY (%s::bigint[]) AND {is_free}"
            " OR (epoch, {until_us}) IN (SELECT * FROM unnest(%s::bigint[], %s::bigint[]))) ORDER BY epoch FOR UPDATE)"
            " AS ended WHERE agent.epoch = ended.epoch RETURNING agent.epoch",
            until_us=until_us,
            is_free=of("pg_try_advisory_xact_lock_shared(hashtext({name}), epoch::integer)", name=self._name),
        )
        self.lock = of("SELECT pg_try_advisory_lock(hashtext({name}), %s::bigint::integer)", name=self._name)
        self.is_free = of(
            "SELECT pg_try_advisory_xact_lock_shared(hashtext({name}), %s::bigint::integer)", name=self._name
        )
        self.round = sql.SQL(
            "SELECT set_config('lock_timeout', %s, false), set_config('statement_timeout', '0', false)"
        )
        self.leave = of(
            "DELETE FROM {schema}.agent WHERE epoch = %s AND incarnation = %s"
            " AND set_config('timerqueue.goes', 'y', true) > ''"
        )
        self.break_off = sql.SQL(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ANY (pg_blocking_pids(%s))"
            " AND wait_event_type = 'Client'"
        )

    def wait(self, epoch: int) -> sql.Composed:
        """Wait for a session's end. The server does not log the caught errors.

        It commits each round, because a long snapshot stops vacuum (test_sharing.py).
        """
        text = (
            "DO $body$ BEGIN FOR number IN 1..{rounds} LOOP"
            " BEGIN PERFORM pg_advisory_xact_lock_shared(hashtext({name}), {epoch}); EXIT;"
            " EXCEPTION WHEN lock_not_available THEN NULL; END; COMMIT; END LOOP; END $body$"
        )
        return sql.SQL(text).format(name=self._name, epoch=sql.Literal(epoch), rounds=sql.Literal(ROUNDS))


def make_way(connection: StoreConnection, statements: SharingStatements, where: str, *, shared: bool) -> None:
    """Admit a new node. Exclusive: it takes over from the previous owner. Shared: it joins the others.

    Raises StoreUnusable if living nodes use it the other way. A sharing node has a lease; an exclusive one a lock
    (`Presence`). Without a lock, as in older versions, it looks like a stopped node and is taken over.
    """
    if shared:
        found, why = connection.execute(statements.unshared).fetchone(), "a node has it for itself"
    else:
        found, why = connection.execute(statements.others).fetchone(), "nodes share it"
    if found is not None:
        raise StoreUnusable(f"{where}: {why}, such as {found[0]}: open it as they do (shared={not shared})")
    # Both statements wait for a commit in flight of the removed nodes.
    connection.execute(statements.forget_unshared if shared else statements.forget)


def check_ours(
    connection: StoreConnection, who: Cursor, where: str, opened: Opened, *, is_shared: bool, only_reads: bool
) -> None:
    """Raise StoreTakenOver if we lost the opened store, StoreUnusable if it is another one.

    A standby that missed our joining may have replaced a shared store's server: we join again. An exclusive node cannot
    tell it from an old copy.
    """
    instance, epoch, is_ours, name, pid = one_row(who)
    connection.note_pid(pid)
    is_older = epoch < opened.epoch
    if instance != opened.instance or (is_older and not is_shared):
        raise StoreUnusable(f"{where}: it is not what was opened: it has been replaced, or restored from an older copy")
    if is_older and not only_reads:
        raise StoreTakenOver(f"{where}: it has lost its last changes, and with them that we have joined")
    if not is_ours and not only_reads:
        raise StoreTakenOver(f"{where}: another node has taken it over: {name or 'it has left since'}")


class Presence:
    """A session's lock shows others that the node lives."""

    def __init__(self, statements: SharingStatements) -> None:
        self._statements = statements
        self._shown_over: StoreConnection | None = None
        self._is_direct = self._is_held = False

    def show(self, connection: StoreConnection, epoch: int) -> bool:
        """Hold the lock. False: a pooler answers, or another session has it, perhaps our last one."""
        if connection is not self._shown_over:
            self._is_held, self._is_direct = False, connection.is_direct()
            self._shown_over = connection
        if self._is_direct and not self._is_held:
            self._is_held = bool(one_row(connection.execute(self._statements.lock, [epoch]))[0])
        return self._is_held

"""One batch in one transaction, in a handful of statements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .._rows import Batch, Execution, Receipt, StoredTick
from .connection import Connection, psycopg, sql
from .execution_statements import ExecutionStatements
from .executions import write_executions
from .statements import Statements
from .table import JOB, PAUSE, STATE, TICK, Row, Table, number_array, storable, text_array

Key = tuple[str, int]
Cursor = psycopg.Cursor[Row]
Sent = list[tuple[list[StoredTick], Cursor]]
"""Ticks that have been sent, and where the keys of those come back that were put."""


def write(
    connection: Connection, statements: Statements, of_executions: ExecutionStatements, batch: Batch, epoch: int
) -> Receipt:
    """Carry the batch of the agent with that epoch out, in the transaction that the connection is in."""
    with connection.pipeline():
        _put_or_remove(connection, JOB, batch.jobs, (statements.put_jobs, statements.remove_jobs))
        if batch.paused:
            ids, pauses = list(batch.paused), list(zip(*batch.paused.values(), strict=True))
            connection.execute(statements.pause_jobs, [text_array(ids), text_array(pauses[0]), number_array(pauses[1])])
        if batch.finished:
            over = [text_array(batch.finished), text_array(batch.finished.values())]
            connection.execute(statements.finish_jobs, over)
        if batch.states:
            connection.execute(statements.put_states, STATE.parameters(batch.states.values()))
        _put_or_remove(connection, PAUSE, batch.pauses, (statements.put_pauses, statements.remove_pauses))
        ended = _put(connection, statements.put_ended, batch.ended)
        fences = _fences(connection, statements, batch)
        if batch.missed:
            connection.execute(statements.put_missed, TICK.parameters(batch.missed))
        marks = _put(connection, statements.put_marks, batch.marks)
        gone = write_executions(connection, of_executions, batch, epoch)
    done = _done_before(fences, batch)
    stale = (tick for tick in _not_put(ended) if _key(tick) not in done)
    return Receipt(
        refused=tuple(_not_put(marks)),
        stale=tuple(stale),
        gone=tuple(Execution(*row) for cursor in gone for row in cursor),
    )


def _put_or_remove(
    connection: Connection, table: Table, rows: Mapping[str, Row | None], how: tuple[sql.Composed, sql.Composed]
) -> None:
    put, remove = how
    if there := [row for row in rows.values() if row is not None]:
        connection.execute(put, table.parameters(there))
    if gone := [key for key, row in rows.items() if row is None]:
        connection.execute(remove, [text_array(gone)])


def _put(connection: Connection, statement: sql.Composed, ticks: list[StoredTick]) -> Sent:
    return [(wave, connection.execute(statement, TICK.parameters(wave))) for wave in _waves(ticks)]


def _waves(ticks: list[StoredTick]) -> Iterator[list[StoredTick]]:
    """Lists in which no tick stands twice, for one statement cannot put a row twice. Nearly always one."""
    while ticks:
        firsts: dict[Key, StoredTick] = {}
        rest = [tick for tick in ticks if firsts.setdefault(_key(tick), tick) is not tick]
        yield list(firsts.values())
        ticks = rest


def _not_put(sent: Sent) -> Iterator[StoredTick]:
    for ticks, cursor in sent:
        put = set(cursor)
        yield from (tick for tick in ticks if _key(tick) not in put)


def _fences(connection: Connection, statements: Statements, batch: Batch) -> Cursor | None:
    """Ask for the fences of ticks that this batch both ends and marks, as they are between the two."""
    both = {_key(tick) for tick in batch.marks} & {_key(tick) for tick in batch.ended}
    if not both:
        return None
    job_ids, dues = zip(*both, strict=True)
    return connection.execute(statements.fences, [text_array(job_ids), number_array(dues)])


def _done_before(fences: Cursor | None, batch: Batch) -> set[Key]:
    """Ticks whose record is of a mark of this batch before that has been made: the batch has been carried out before,
    and the end that is stale now was not stale then.
    """
    if fences is None:
        return set()
    marks = {(*_key(tick), tick.fence) for tick in batch.marks}
    return {(job_id, due_us) for job_id, due_us, fence in fences if (job_id, due_us, fence) in marks}


def _key(tick: StoredTick) -> Key:
    """As PostgreSQL gives it back."""
    return storable(tick.job_id), tick.due_us

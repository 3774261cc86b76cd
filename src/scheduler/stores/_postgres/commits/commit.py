"""One batch in one transaction.

Rows that several nodes may write are locked in the order of ids: else two commits could deadlock for a second.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from attrs import frozen

from ..._rows import Batch, Execution, Receipt, StoredJob, StoredTick
from ..connection import BRIEFLY, StoreConnection, psycopg, sql
from ..execution_statements import ExecutionStatements
from ..executions import write_executions
from ..quiet_pipeline import quiet_pipeline
from ..statements import Statements
from ..table import JOB, MADE, PAUSE, REQUEST, STATE, TICK, Row, StoreTable, number_array, storable, text_array

Key = tuple[str, int]
Cursor = psycopg.Cursor[Row]
Sent = list[tuple[list[StoredTick], Cursor]]
"""Sent ticks, with cursors of the written keys."""


def write(
    connection: StoreConnection, statements: Statements, of_executions: ExecutionStatements, batch: Batch, epoch: int
) -> Receipt:
    new = _add(connection, statements, batch)
    standing = _standing(connection, statements, batch, new)
    with quiet_pipeline(connection):
        sent = send(connection, statements, of_executions, batch, epoch, new=new)
        connection.end()
    return sent.receipt(batch, standing)


@frozen
class Sending:
    """The cursors have rows after the pipeline."""

    ended: Sent
    marks: Sent
    fences: Cursor | None
    gone: list[Cursor]

    def receipt(self, batch: Batch, standing: tuple[StoredJob, ...] = ()) -> Receipt:
        done = _done_before(self.fences, batch)
        stale = (tick for tick in _not_put(self.ended) if _key(tick) not in done)
        return Receipt(
            refused=tuple(_not_put(self.marks)),
            stale=tuple(stale),
            gone=tuple(Execution(*row) for cursor in self.gone for row in cursor),
            standing=standing,
        )


def send(
    connection: StoreConnection,
    statements: Statements,
    of_executions: ExecutionStatements,
    batch: Batch,
    epoch: int,
    *,
    new: Collection[str] = (),
) -> Sending:
    """Send in a pipeline. `new`: added jobs."""
    jobs = {id: row for id, row in batch.jobs.items() if id not in batch.added} if batch.added else batch.jobs
    connection.execute(BRIEFLY, prepare=False)
    _lock(connection, statements, batch, jobs)
    put = {id: row for id, row in jobs.items() if row is None or id not in batch.changed} if batch.changed else jobs
    _put_or_remove(connection, JOB, put, (statements.put_jobs, statements.remove_jobs))
    if changed := [row for id in sorted(batch.changed) if (row := jobs.get(id)) is not None]:
        connection.execute(statements.change_jobs, JOB.parameters(changed))
    if batch.paused:
        ids, pauses = list(batch.paused), list(zip(*batch.paused.values(), strict=True))
        connection.execute(statements.pause_jobs, [text_array(ids), text_array(pauses[0]), number_array(pauses[1])])
    if batch.finished:
        over = [text_array(batch.finished), text_array(batch.finished.values())]
        connection.execute(statements.finish_jobs, over)
    if batch.states:
        connection.execute(statements.put_states, STATE.parameters(map(batch.states.__getitem__, sorted(batch.states))))
    _put_or_remove(connection, PAUSE, batch.pauses, (statements.put_pauses, statements.remove_pauses))
    ended = _put(connection, statements.put_ended, batch.ended)
    fences = _fences(connection, statements, batch)
    if batch.missed:
        connection.execute(statements.put_missed, TICK.parameters(batch.missed))
    marks = _put(connection, statements.put_marks, batch.marks)
    gone = write_executions(connection, of_executions, batch, epoch)
    _write_requests(connection, statements, batch, new)
    if batch.made:
        connection.execute(statements.put_made, MADE.parameters(batch.made))
    return Sending(ended, marks, fences, gone)


def _lock(
    connection: StoreConnection, statements: Statements, batch: Batch, jobs: Mapping[str, StoredJob | None]
) -> None:
    if changed := [*jobs, *batch.paused, *batch.finished]:
        connection.execute(statements.lock_jobs, [text_array(changed)])
    if gone := [*(id for id, row in jobs.items() if row is None), *batch.finished]:
        connection.execute(statements.lock_states, [text_array(gone)])


def _add(connection: StoreConnection, statements: Statements, batch: Batch) -> set[str]:
    rows = [row for id in sorted(batch.added) if (row := batch.jobs.get(id)) is not None]
    if not rows:
        return set()
    return {row[0] for row in connection.execute(statements.add_jobs, JOB.parameters(rows))}


def _standing(
    connection: StoreConnection, statements: Statements, batch: Batch, new: set[str]
) -> tuple[StoredJob, ...]:
    """An equal row may be our own, from a repeated batch."""
    there = [id for id in batch.added if storable(id) not in new]
    if not there:
        return ()
    rows = [StoredJob(*row) for row in connection.execute(statements.jobs_of, [text_array(there)])]
    return tuple(row for row in rows if row != batch.jobs.get(row.id))


def _write_requests(connection: StoreConnection, statements: Statements, batch: Batch, new: Collection[str]) -> None:
    """A job that was not added requests nothing, or did before."""
    if begun := [state for id, state in batch.begun.items() if storable(id) in new]:
        connection.execute(statements.begin_states, STATE.parameters(begun))
    if asked := [each for each in batch.requests if each.job_id not in batch.added or storable(each.job_id) in new]:
        connection.execute(statements.ask, REQUEST.parameters(asked))
    if batch.done:
        numbers, _, dues, reasons = zip(*batch.done, strict=True)
        connection.execute(statements.done, [number_array(numbers), number_array(dues), text_array(reasons)])
    if batch.done or batch.requests:
        connection.execute(statements.forget_requests)
    if batch.is_news:
        connection.execute(statements.tell)


def _put_or_remove(
    connection: StoreConnection,
    table: StoreTable,
    rows: Mapping[str, Row | None],
    how: tuple[sql.Composed, sql.Composed],
) -> None:
    put, remove = how
    if there := [row for key in sorted(rows) if (row := rows[key]) is not None]:
        connection.execute(put, table.parameters(there))
    if gone := [key for key, row in rows.items() if row is None]:
        connection.execute(remove, [text_array(gone)])


def _put(connection: StoreConnection, statement: sql.Composed, ticks: list[StoredTick]) -> Sent:
    return [(wave, connection.execute(statement, TICK.parameters(wave))) for wave in _waves(ticks)]


def _waves(ticks: list[StoredTick]) -> Iterator[list[StoredTick]]:
    """A statement cannot put a row twice."""
    while ticks:
        firsts: dict[Key, StoredTick] = {}
        rest = [tick for tick in ticks if firsts.setdefault(_key(tick), tick) is not tick]
        yield list(firsts.values())
        ticks = rest


def _not_put(sent: Sent) -> Iterator[StoredTick]:
    for ticks, cursor in sent:
        put = set(cursor)
        yield from (tick for tick in ticks if _key(tick) not in put)


def _fences(connection: StoreConnection, statements: Statements, batch: Batch) -> Cursor | None:
    """Return fences, between ends and marks, of ticks with both."""
    both = {_key(tick) for tick in batch.marks} & {_key(tick) for tick in batch.ended}
    if not both:
        return None
    job_ids, dues = zip(*both, strict=True)
    return connection.execute(statements.fences, [text_array(job_ids), number_array(dues)])


def _done_before(fences: Cursor | None, batch: Batch) -> set[Key]:
    """Return the ticks with marks of this very batch: it is repeated, and their ends are not stale."""
    if fences is None:
        return set()
    marks = {(*_key(tick), tick.fence) for tick in batch.marks}
    return {(job_id, due_us) for job_id, due_us, fence in fences if (job_id, due_us, fence) in marks}


def _key(tick: StoredTick) -> Key:
    return storable(tick.job_id), tick.due_us

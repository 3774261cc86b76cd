"""Executions in PostgreSQL, many at once.

Taking or planning for a job first locks its row, in the order of ids. So one node at a time plans for it, and an audit,
which passes over locked rows, delays none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from operator import attrgetter
from typing import Any, Final, Protocol

from ..._values import EVERYTHING
from .._executions import Audited, Decide, Fetched, Mended, NotTaken, Standing, Taken
from .._rows import PENDING, RUNNING, SCHEDULED, TAKEN, Batch, Execution, Planned, StoredJob, StoredState, StoredTick
from .._store import StoreLocked
from .connection import BRIEFLY, Asked, StoreConnection, one_row, psycopg, sql
from .execution_statements import ExecutionStatements, in_part
from .table import PLACED, PLANNED, Row, number_array, storable, text_array

AT_A_TIME: Final = 1_000

Rows = psycopg.Cursor[Row]

Lost = dict[str, list[StoredTick]]


class ExecutionsPlace(Protocol):
    @property
    def epoch(self) -> int: ...

    def transaction(self) -> AbstractContextManager[StoreConnection]: ...

    def ask_once(self, *asked: Asked) -> list[Rows]:
        """In one transaction and one way."""

    def writing(self) -> AbstractContextManager[StoreConnection]:
        """Under our row, like commits."""

    def writing_if(self, asked: Asked) -> AbstractContextManager[StoreConnection | None]:
        """Like `writing`, but not only by keys. None: the answer to `asked` is no."""

    def in_one_way(self) -> AbstractContextManager[StoreConnection]:
        """Like `writing`. No answer is here before its end."""


def write_executions(
    connection: StoreConnection, statements: ExecutionStatements, batch: Batch, epoch: int
) -> list[Rows]:
    """Send in a pipeline. Return the cursors of executions that gave way."""
    if batch.placed:
        connection.execute(statements.place, PLACED.parameters(sorted(batch.placed)))
    if batch.lost:
        connection.execute(statements.lose, PLACED.parameters(sorted(batch.lost)))
    if batch.released:
        released = sorted(batch.released)
        asked = [text_array(released), number_array(map(batch.released.__getitem__, released)), epoch]
        connection.execute(statements.forget_done, asked)
        connection.execute(statements.release, asked)
    return [_plan(connection, statements, batch.planned.values())[0]] if batch.planned else []


def _plan(
    connection: StoreConnection, statements: ExecutionStatements, planned: Iterable[Planned]
) -> tuple[Rows, Rows]:
    given = PLANNED.parameters(sorted(planned, key=attrgetter("job_id")))
    return connection.execute(statements.give_way, given), connection.execute(statements.plan, given)


class PostgresExecutions:
    def __init__(self, place: ExecutionsPlace, statements: ExecutionStatements, name: str) -> None:
        self._place = place
        self._statements = statements
        self._locks = statements.locks
        self._locked: set[str] = set()
        """Found at the last look: a take does not wait for them again."""
        self._name = f"timerqueue audit of {name}"

    def take(self, ticks: Sequence[tuple[str, int]]) -> list[Taken | NotTaken]:
        if self._locked.isdisjoint(job_id for job_id, _ in ticks):
            with suppress(StoreLocked):
                return self._take_all(ticks)
        return self._take_free(ticks)

    def _take_free(self, ticks: Sequence[tuple[str, int]]) -> list[Taken | NotTaken]:
        """Pass over locked rows."""
        with self._place.transaction() as connection:
            locked = self._locks.of(connection, [Batch(released=dict.fromkeys(job_id for job_id, _ in ticks))])
        self._locked = locked
        others = [tick for tick in ticks if tick[0] not in locked]
        answers = iter(self._take_all(others) if others else ())
        return [NotTaken.LOCKED if job_id in locked else next(answers) for job_id, _ in ticks]

    def _take_all(self, ticks: Sequence[tuple[str, int]]) -> list[Taken | NotTaken]:
        with self._place.in_one_way() as connection:  # commits wait behind it
            sent = [self._take(connection, sorted(wave)) for wave in _waves(ticks)]
        epoch, answers = self._place.epoch, dict[tuple[str, int], Taken | NotTaken]()
        for asked, found in sent:
            lost = _by_job(found)
            answers |= {(row[0], row[1]): _answer(row, epoch, lost) for row in asked}
        return [answers[storable(job_id), due_us] for job_id, due_us in ticks]

    def _take(self, connection: StoreConnection, ticks: list[tuple[str, int]]) -> tuple[Rows, Rows]:
        """`ticks`: of distinct jobs. Return what stands now, and what was cut off."""
        statements, epoch = self._statements, self._place.epoch
        ids = text_array(job_id for job_id, _ in ticks)
        given = [ids, number_array(due_us for _, due_us in ticks)]
        connection.execute(BRIEFLY, prepare=False)
        connection.execute(statements.lock_jobs, [ids])
        connection.execute(statements.end_left, given)
        connection.execute(statements.take, [epoch, *given])
        asked = connection.execute(statements.asked, given)
        return asked, connection.execute(statements.lost, [ids, ids])

    def fetch(self, job_ids: Sequence[str], now_us: int) -> list[Fetched | NotTaken]:
        statements, epoch, ids = self._statements, self._place.epoch, text_array(job_ids)
        with self._place.writing() as connection:
            with connection.pipeline():
                connection.execute(BRIEFLY, prepare=False)
                connection.execute(statements.lock_jobs, [ids])
                connection.execute(statements.end_all_left, [ids])
                connection.execute(statements.fetch, {"ids": ids, "now_us": now_us, "epoch": epoch})
                fetched = connection.execute(statements.fetched, [epoch, ids])
                found = connection.execute(statements.lost, [ids, ids])
                connection.end()
            lost = _by_job(found)
            answers = {row[1]: _fetched(row, lost) for row in fetched}
        return [answers.get(storable(job_id), NotTaken.UNKNOWN) for job_id in job_ids]

    def waiting(
        self, status: str, *, before_us: int, after: tuple[int, str] = (-1, ""), limit: int = 1_000
    ) -> list[Execution]:
        return self._read(self._statements.waiting, [status, before_us, after[0], storable(after[1]), limit])

    def taken(self) -> list[Execution]:
        return self._read(self._statements.taken, [self._place.epoch])

    def of_job(self, job_id: str) -> list[Execution]:
        return self._read(self._statements.of_job, [storable(job_id)])

    def wheres(self, job_ids: Sequence[str]) -> dict[str, str]:
        (found,) = self._place.ask_once((self._statements.wheres, [text_array(job_ids)]))
        return dict(found.fetchall())

    def _read(self, statement: sql.Composed, asked: Sequence[Any]) -> list[Execution]:
        (found,) = self._place.ask_once((statement, asked))  # commits wait behind it
        return [Execution(*row) for row in found]

    def reconcile(self, job_ids: Sequence[str], decide: Decide) -> Mended:
        ids = text_array(job_ids)
        with self._place.writing() as connection:
            connection.execute(BRIEFLY, prepare=False)
            # look only with the lock: others may have changed them
            connection.execute(self._statements.lock_jobs, [ids])
            found = connection.execute(self._statements.standing, [ids])
            standings = [_standing(row[1:], owes=row[0]) for row in found]
            removed = [Execution(*row) for row in connection.execute(self._statements.without_job, [ids])]
            standings += [Standing(row.job_id, None, None, row) for row in removed]
            return self._mend(connection, standings, decide)

    def _mend(self, connection: StoreConnection, standings: Iterable[Standing], decide: Decide) -> Mended:
        standings = list(standings)
        planned = [plan for plan in map(decide, standings) if plan is not None]
        if not planned:
            return Mended()
        were_live = {at.live[:2] for at in standings if at.live is not None}
        with connection.pipeline():
            gone, made = _plan(connection, self._statements, planned)
        return Mended(
            planned=tuple(Execution(*row) for row in made if row[:2] not in were_live and row[2] == PENDING),
            gone=tuple(Execution(*row) for row in gone),
        )

    def audit(self, part: int, *, now_us: int, instance: str | None, decide: Decide) -> Audited | None:
        asked = in_part(part) | {
            "instance": None if instance is None else storable(instance),
            "now_us": now_us,
            "everything": EVERYTHING,
            "limit": AT_A_TIME,
        }
        statements = self._statements
        with self._place.writing_if((statements.try_lock, [self._name, part])) as connection:
            if connection is None:
                return None
            with connection.pipeline():
                further = [connection.execute(statements.give_way_to_left, asked)]
                found = [connection.execute(statements.find_left, asked)]
                if instance is not None:
                    found.append(connection.execute(statements.find_lost, asked))
                if not part:  # executions of deleted jobs are in no part
                    connection.execute(statements.forget_audits)
                    further.append(connection.execute(statements.supersede_removed))
                locked = self._lock_broken(connection, asked, "")
            gone = [Execution(*row) for rows in further for row in rows]
            planned = list[Execution]()
            for standings in self._broken(connection, asked, locked):
                mended = self._mend(connection, standings, decide)
                planned += mended.planned
                gone += mended.gone
            with connection.pipeline():
                stamped = connection.execute(statements.stamp, asked)
                connection.end()
            jobs = one_row(stamped)[0]
            return Audited(
                planned=tuple(planned), gone=tuple(gone), jobs=jobs, orphans=sum(each.rowcount for each in found)
            )

    def _lock_broken(self, connection: StoreConnection, asked: dict[str, Any], after: str) -> Rows:
        return connection.execute(self._statements.lock_broken, asked | {"after": after})

    def _broken(self, connection: StoreConnection, asked: dict[str, Any], locked: Rows) -> Iterator[list[Standing]]:
        while True:
            ids = [row[0] for row in locked]
            if ids:  # look only with the lock: a locked row says nothing of its other tables
                found = connection.execute(self._statements.broken, asked | {"ids": text_array(ids)})
                yield [_standing(row[1:], owes=row[0]) for row in found]
            if len(ids) < AT_A_TIME:
                return
            locked = self._lock_broken(connection, asked, ids[-1])

    def last_audit(self, job_id: str) -> int | None:
        (found,) = self._place.ask_once((self._statements.last_audit, [storable(job_id)]))
        row = found.fetchone()
        return None if row is None else row[0]

    def unaudited(self, since_us: int, *, limit: int = 100) -> list[tuple[str, int | None]]:
        asked = {"since_us": since_us, "limit": limit, "everything": EVERYTHING}
        (found,) = self._place.ask_once((self._statements.unaudited, asked))
        return [(job_id, at_us) for job_id, at_us in found]


def _waves(ticks: Sequence[tuple[str, int]]) -> Iterator[list[tuple[str, int]]]:
    """Yield lists with each job once: its second tick sees the effect of the first."""
    rest = list(ticks)
    while rest:
        firsts: dict[str, tuple[str, int]] = {}
        for tick in rest:
            firsts.setdefault(tick[0], tick)
        yield list(firsts.values())
        rest = [tick for tick in rest if firsts[tick[0]] != tick]


def _by_job(rows: Iterable[Row]) -> Lost:
    lost: Lost = {}
    for row in rows:
        tick = StoredTick(*row)
        lost.setdefault(tick.job_id, []).append(tick)
    return lost


def _fetched(row: Row, lost: Lost) -> Fetched | NotTaken:
    due_us, standing = row[0], _standing(row[1:])
    if due_us is None or standing.job is None:
        return NotTaken.RUNNING
    return Fetched(taken=_taken(standing.job, standing.state, lost), due_us=due_us, live=standing.live)


def _taken(job: StoredJob, state: StoredState | None, lost: Lost) -> Taken:
    cut_off = lost.get(job.id, [])
    return Taken(
        job,
        state,
        tuple(tick for tick in cut_off if tick.outcome == RUNNING),
        tuple(tick for tick in cut_off if tick.owed),
    )


def _answer(row: Row, epoch: int, lost: Lost) -> Taken | NotTaken:
    status, holder, rest = row[2], row[3], row[4:]
    if status is None or rest[0] is None:
        return NotTaken.UNKNOWN
    if status == TAKEN and holder == epoch:
        job, state = StoredJob(*rest[: len(StoredJob._fields)]), rest[len(StoredJob._fields) :]
        return _taken(job, None if state[0] is None else StoredState(*state), lost)
    return NotTaken.RUNNING if status in {TAKEN, PENDING, SCHEDULED} else NotTaken(status)


def _standing(row: Row, *, owes: bool = False) -> Standing:
    jobs, states = len(StoredJob._fields), len(StoredState._fields)
    job, state, live = StoredJob(*row[:jobs]), row[jobs : jobs + states], row[jobs + states :]
    return Standing(
        job.id,
        job,
        None if state[0] is None else StoredState(*state),
        None if live[0] is None else Execution(*live),
        owes,
    )

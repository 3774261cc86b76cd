from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .._values import MissedReason, Outcome
from ..stores import RUNNING, Batch, Retention, Store, StoredJob, StoredPause, StoredState, StoredTick

MakeStore = Callable[[], Store]

START_US: Final = 1_767_225_600_000_000
"""The first instant of 2026."""

SECOND: Final = 1_000_000

ALL_RECORDS: Final = 1_000_000


def no_hint() -> None: ...


def due_at(seconds: int) -> int:
    return START_US + seconds * SECOND


def job(job_id: str = "a", **others: Any) -> StoredJob:
    return StoredJob(job_id, "package.module:task", "@every 100d")._replace(**others)


def mark(job_id: str = "a", seconds: int = 0, *, fence: int, attempt: int = 1) -> StoredTick:
    """Return the mark of the tick due `seconds` after START_US."""
    due_us = due_at(seconds)
    return StoredTick(job_id, due_us, attempt, fence, RUNNING, started_us=due_us + 10)


def end(started: StoredTick, outcome: Outcome = Outcome.SUCCEEDED, **others: Any) -> StoredTick:
    """Return the end of a run, half a second after it was due."""
    ended_us = started.due_us + SECOND // 2
    ended = started._replace(outcome=outcome.value, ended_us=ended_us, lateness=0.000_01, owed=False)
    return ended._replace(**others)


def missed(job_id: str = "a", seconds: int = 0) -> StoredTick:
    due_us = due_at(seconds)
    outcome, reason = Outcome.MISSED.value, MissedReason.LATE.value
    return StoredTick(job_id, due_us, 1, 0, outcome, ended_us=due_us + SECOND // 2, reason=reason)


def jobs_of(store: Store) -> dict[str, tuple[StoredJob, StoredState | None]]:
    return {row[0].id: row for rows in store.load() for row in rows}


def pauses_of(store: Store) -> dict[str, StoredPause]:
    return {pause.scope: pause for pause in store.pauses()}


def history_of(store: Store) -> list[StoredTick]:
    """Return all records, in the same order for every store."""
    return sorted(store.history(limit=ALL_RECORDS), key=lambda tick: (tick.due_us, tick.job_id))


def everything_in(store: Store) -> tuple[Any, ...]:
    return jobs_of(store), pauses_of(store), sorted(store.running()), sorted(store.owed()), history_of(store)


def prune_all(store: Store, retention: Retention, now_us: int) -> list[int]:
    """Prune until nothing is left to prune. Return how many records each call removed."""
    return list(iter(lambda: store.prune(retention, now_us), 0))


def wipe(store: Store) -> None:
    jobs = dict.fromkeys(jobs_of(store))
    pauses = dict.fromkeys(pauses_of(store))
    store.commit(Batch(jobs=jobs, pauses=pauses, ended=[end(tick) for tick in (*store.running(), *store.owed())]))
    prune_all(store, Retention(), due_at(10**9))

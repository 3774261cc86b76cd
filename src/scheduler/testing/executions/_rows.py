from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol, cast

import pytest

from ...stores import Batch, Execution, Executions, Placed, Planned, Receipt, Standing, Store, StoredState
from .._store_fixtures import StoreFixtures
from .._store_rows import START_US, MakeStore, due_at, job, no_hint

SERVER: Final = "server-1"

EVER: Final = due_at(10**6)


class ExecutingStore(Store, Protocol):
    @property
    def executions(self) -> Executions: ...


class ExecutionFixtures(StoreFixtures):
    @pytest.fixture
    def store(self, make_store: Any) -> Iterator[ExecutingStore]:
        store: ExecutingStore = make_store()
        store.open(START_US, no_hint)
        yield store
        store.close()


@contextmanager
def another(make_store: MakeStore) -> Iterator[ExecutingStore]:
    """Open the store as another node: the previous one has died."""
    other = cast("ExecutingStore", make_store())
    other.open(START_US, no_hint)
    try:
        yield other
    finally:
        other.close()


def planned(job_id: str = "a", seconds: int | None = 60, **others: Any) -> Planned:
    """Plan `seconds` after START_US; None: no live execution."""
    due_us = None if seconds is None else due_at(seconds)
    return Planned(job_id, due_us, job(job_id).schedule, START_US)._replace(**others)


def put(job_id: str = "a", seconds: int = 60, number: int = 1, instance: str = SERVER) -> Placed:
    return Placed(job_id, due_at(seconds), instance, number, START_US + 5)


def plan(store: Store, *plans: Planned) -> Receipt:
    return store.commit(
        Batch(
            jobs={each.job_id: job(each.job_id) for each in plans},
            states={each.job_id: StoredState(each.job_id, next_us=each.due_us) for each in plans},
            planned=by_job(*plans),
        )
    )


def by_job(*plans: Planned) -> dict[str, Planned]:
    return {each.job_id: each for each in plans}


def statuses(store: ExecutingStore, job_id: str = "a") -> list[tuple[float, str]]:
    """Return (seconds after START_US, status), first due first."""
    found = store.executions.of_job(job_id)
    return [((row.due_us - START_US) / 1e6, row.status) for row in reversed(found)]


def in_line(store: ExecutingStore, status: str) -> list[str]:
    """Return the jobs whose live execution has this status, first due first."""
    return [row.job_id for row in store.executions.waiting(status, before_us=EVER)]


def keys(rows: Iterable[Execution]) -> list[tuple[str, float]]:
    return sorted((row.job_id, (row.due_us - START_US) / 1e6) for row in rows)


def nothing(_: Standing) -> None: ...

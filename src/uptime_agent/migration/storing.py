"""Judged jobs go into a store. A repetition changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

from scheduler import Store
from scheduler.stores import Batch, StoredJob

from .judging import Judged

AT_A_TIME: Final = 1_000

Became = Literal["new", "changed", "unchanged"]


def stored(store: Store, jobs: Sequence[Judged], now_us: int) -> dict[str, Became]:
    """Store rows, and say what changed. Opens and closes the store. Raises StoreError.

    An existing job keeps its pause, counts and next start.
    """
    try:
        store.open(now_us, _unheard)
        there = {row.id: row for some in store.load() for row, _ in some}
        became: dict[str, Became] = {}
        changes: list[tuple[Judged, StoredJob]] = []
        for job in jobs:
            if job.row is None:
                continue
            present = there.get(job.id)
            row = job.row if present is None else _paused_as(present, job.row)
            became[job.id] = "new" if present is None else "unchanged" if row == present else "changed"
            if row != present:
                changes.append((job, row))
        for first in range(0, len(changes), AT_A_TIME):
            store.commit(_batch(changes[first : first + AT_A_TIME], became))
    finally:
        store.close()
    return became


def _batch(changes: Iterable[tuple[Judged, StoredJob]], became: Mapping[str, Became]) -> Batch:
    batch = Batch()
    for job, row in changes:
        batch.jobs[job.id] = row
        if job.state is not None and became[job.id] == "new":
            batch.states[job.id] = job.state
    return batch


def _paused_as(present: StoredJob, row: StoredJob) -> StoredJob:
    return row._replace(paused=present.paused, paused_until_us=present.paused_until_us)


def _unheard() -> None: ...

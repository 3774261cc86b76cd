"""Read all rows again: the store has forgotten changes.

A standby that missed the last ones replaced its server. The writer reads between commits. Rows changed here meanwhile
win. On the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from logging import getLogger
from typing import Final

from timerqueue import LifecycleError

from .._commits import Writer
from .._journal import LocalWrites
from .._loop import Core
from .._restore import Chunk, Rows, pauses_to_follow
from ..stores import Changes, Store, StoredPause

logger = getLogger(__name__)


RETRY_S: Final = 1.0
"""Seconds after a failure."""


class Rereading:
    def __init__(
        self,
        store: Store,
        writer: Writer,
        core: Core,
        *,
        follow: Callable[[Changes], object],
        failed: Callable[[Exception], object],
    ) -> None:
        self._store = store
        self._writer = writer
        self._core = core
        self._journal = core.journal
        self._follow = follow
        self._failed = failed
        self._gone: set[str] = set()
        self._going_on: ExitStack | None = None

    def begin(self) -> None:
        if self._going_on is not None:
            return
        logger.warning("the store has forgotten changes that were made in it: all of its rows are read again")
        self._going_on = ExitStack()
        noted = self._going_on.enter_context(self._journal.noting_rows())
        self._gone = {job.id for job in self._core.jobs.jobs() if job.task is not None}
        self._read_on(self._store.load(), noted)

    def end(self) -> None:
        if self._going_on is not None:
            self._going_on.close()
            self._going_on = None

    def _read_on(self, rows: Rows, noted: LocalWrites) -> None:
        self._writer.submit(lambda: next(rows, None), partial(self._read, rows, noted))

    def _read(self, rows: Rows, noted: LocalWrites, chunk: Chunk | None, error: Exception | None) -> None:
        if self._going_on is None or self._has_failed(error):
            return
        known, newer = noted.ids, self._journal.unfollowed  # rows that were polled meanwhile are newer
        if chunk is None:
            gone = [id for id in self._gone if id not in known and id not in newer]
            self._follow(Changes(jobs=dict.fromkeys(gone)))
            self._writer.submit(self._store.pauses, self._pauses_read)
            return
        self._gone.difference_update(row.id for row, _ in chunk)
        news = [(row, state) for row, state in chunk if row.id not in known and row.id not in newer]
        states = {row.id: state for row, state in news if state is not None}
        self._follow(Changes(jobs={row.id: row for row, _ in news}, states=states))
        self._read_on(rows, noted)

    def _pauses_read(self, pauses: list[StoredPause] | None, error: Exception | None) -> None:
        """Only later changes of pauses are told."""
        if self._going_on is None or self._has_failed(error):
            return
        self._follow(Changes(pauses=pauses_to_follow(self._core, pauses or ())))
        self.end()

    def _has_failed(self, error: Exception | None) -> bool:
        if error is None:
            return False
        self.end()
        self._failed(error)
        with suppress(LifecycleError):
            self._core.queue.push(self._core.monotonic() + RETRY_S, self.begin)
        return True

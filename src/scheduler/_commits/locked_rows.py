"""Changes of a job are put aside while another session locks the job's row.

If a commit waits for tenths of a second, the store names the locked jobs. Their changes wait aside, and the rest of the
batch is sent. Later changes of these jobs wait behind. Everything runs on the loop, except `look_last`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from logging import getLogger
from typing import Final

from .._loop import Core
from ..stores import Batch, Store, StoreError, capabilities
from .writer import Writer

logger = getLogger(__name__)

LOCKED_FOR: Final = 0.5
"""Seconds between two looks at which rows are still locked."""

Found = Callable[[set[str] | None, Exception | None], object]


class LockedRows:
    """`go_on` sends the sealed batches, which wait for their commit."""

    def __init__(self, store: Store, writer: Writer, core: Core, go_on: Callable[[], object]) -> None:
        self._find = capabilities(store).locked
        self._writer = writer
        self._journal = core.journal
        self._queue = core.queue
        self._marks = core.runs.marks
        self._go_on = go_on
        self._is_near = False
        self._was_last = False

    @property
    def can_be_found(self) -> bool:
        return self._find is not None

    def ask(self, found: Found) -> None:
        self._ask([self._journal.sealed[0].batch], found)

    def wait(self, jobs: Collection[str]) -> None:
        logger.warning("%d jobs wait until their rows are unlocked: %.200r", len(jobs), sorted(jobs)[:10])
        self.keep_aside(jobs)
        self._look_soon()

    def keep_aside(self, locked: Collection[str] = ()) -> None:
        """Put the changes of locked jobs in sealed batches aside. Call it while no commit is under way."""
        journal = self._journal
        if not (locked or journal.aside.parts):
            return
        sealed, journal.sealed = journal.sealed, []
        for each in sealed:  # later batches may have the same jobs
            kept, rest = journal.aside.keep(each, locked)
            if rest is not None:
                journal.sealed.append(rest)
            if kept is not None:
                self._marks.step_aside(kept.runs)

    def look_last(self) -> None:
        if self._was_last or self._find is None or not self._journal.sealed:
            return
        self._was_last = True
        with suppress(StoreError):
            self.keep_aside(self._find([each.batch for each in self._journal.sealed]))

    def _look_soon(self) -> None:
        if not self._is_near:
            self._is_near = True
            self._queue.push(self._queue.clock.monotonic() + LOCKED_FOR, self._look)

    def _look(self) -> None:
        self._is_near = False
        journal = self._journal

        def found(locked: set[str] | None, error: Exception | None) -> None:
            if error is None and locked is not None:
                journal.sealed += journal.aside.free(locked)
            if journal.sealed:
                self._go_on()
            if journal.aside.parts:
                self._look_soon()

        if journal.aside.parts:
            self._ask([part.batch for part in journal.aside.parts], found)

    def _ask(self, batches: list[Batch], found: Found) -> None:
        find = self._find
        assert find is not None
        self._writer.submit(lambda: find(batches), found)

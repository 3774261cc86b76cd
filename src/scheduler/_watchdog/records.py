"""Stray records: the store has a tick as RUNNING, but no run of that tick goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from logging import getLogger
from typing import Final

from .._loop import Core
from .._restore import Crashes, RowReader
from ..stores import StoredTick

logger = getLogger(__name__)

NOBODY: Final = "no process ran it any more, and its record said that it ran"

Key = tuple[str, int]
Answered = Callable[[list[StoredTick] | None, Exception | None], object]

AskWhatRuns = Callable[[Answered], object]
"""Asks the store, after everything sent before, which ticks run."""


class Records:
    """A record counts only if two audits in a row find it. Between them, a run may end, or a shard may come to us."""

    def __init__(self, core: Core, crashes: Crashes, row_reader: RowReader, ask: AskWhatRuns) -> None:
        self._core = core
        self._crashes = crashes
        self._row_reader = row_reader
        self._ask = ask
        self._before: set[tuple[str, int, int]] = set()

    def look(self, done: Callable[[int, str | None], object]) -> None:
        """Close stray records, then call `done` with their number and any trouble."""
        known = self._known()

        def answered(ticks: list[StoredTick] | None, error: Exception | None) -> None:
            try:
                found = self._answered(known, ticks, error)
            except Exception as exc:
                logger.exception("what runs cannot be compared with what the store says")
                found = 0, f"the records were left out: {type(exc).__name__}: {exc}"
            done(*found)

        self._ask(answered)

    def _known(self) -> set[Key]:
        """Ticks that run, or whose ends are not durable."""
        journal, runs = self._core.journal, self._core.runs
        known = {(run.job.id, run.due_us) for run in runs.all()}
        for ended in (journal.pending.ended, *(sealed.batch.ended for sealed in journal.unsettled)):
            known.update((tick.job_id, tick.due_us) for tick in ended)
        return known

    def _answered(
        self, known: set[Key], ticks: list[StoredTick] | None, error: Exception | None
    ) -> tuple[int, str | None]:
        if error is not None or ticks is None:
            return 0, f"the store was not asked what runs: {error}"
        strays = [tick for tick in self._row_reader.ticks(ticks) if (tick.job_id, tick.due_us) not in known]
        found = {(tick.job_id, tick.due_us, tick.fence) for tick in strays}
        to_close = [tick for tick in strays if (tick.job_id, tick.due_us, tick.fence) in self._before]
        self._before = found
        self._close(to_close)
        return len(to_close), None

    def _close(self, ticks: Iterable[StoredTick]) -> None:
        for tick in ticks:
            job = self._core.jobs.find(tick.job_id)
            logger.error("job %r: %s: %r", tick.job_id, NOBODY, tick)
            self._crashes.close(None if job is None or job.task is None else job, tick, NOBODY)

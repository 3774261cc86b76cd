"""Notes of stored runs without room, kept with their records if they begin late, or never.

The pool calls `note` only for work that must wait. A run that finds room costs nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from attrs import evolve

from timerqueue import Work

from .._loop import Core
from .._plan import instant_at, instant_of
from .._runs import MarkedRun, Run, RunBundle, SubtaskWork
from .._shape import LATE, MOST_HOLDERS, Holder, Waited

LOOKED_AT: Final = 16
"""Runs among which holders of places are looked for: the oldest."""

_KEPT_AFTER: Final = timedelta(seconds=LATE / 2)
"""Notes of shorter waits are not kept: a run begins soon after it has room."""

SAME_MOMENT: Final = 0.01
"""Seconds for which all runs without a place share one note."""


class Holdups:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._pool = core.pool
        self._full: tuple[float, Waited] | None = None

    def note(self, work: Work, released: Work | None = None) -> None:
        """Note what work finds as it begins to wait, and later whose end made room for it."""
        if not isinstance(work, MarkedRun):
            return
        if released is None:
            work.waited = self.found(work)
        elif work.waited is not None and self._now() - work.waited.at > _KEPT_AFTER:
            work.waited = evolve(work.waited, after=self._last(released, work.waited.limit))

    def _last(self, released: Work, limit: str | None) -> Holder | None:
        """Return the run that gave the units back: a run that may not begin only hands them on."""
        if isinstance(released, MarkedRun) and released.started is None:
            return None if released.waited is None else released.waited.after
        return next(self._holders((released,), limit), None)

    def found(self, run: Run) -> Waited | None:
        """Return what holds up a waiting run now. None: it begins in its turn. Any thread."""
        limit = self._pool.waits_for(run) if run.needs else None
        if limit is not None:
            return self._at(limit, run)
        return self._places() if self._pool.active >= self._pool.capacity else None

    def _at(self, limit: str, run: Run) -> Waited:
        held = self._pool.held(limit, MOST_HOLDERS)
        holders = tuple(self._holders(held.holders, limit))
        is_all = held.count == len(holders)
        return Waited(
            at=self._now(),
            limit=limit,
            size=held.size,
            holders=holders,
            others=held.count - len(holders),
            resting=held.used - sum(each.units for each in holders) if is_all else 0,
            elsewhere=max(0, int(held.size) - held.used) if self._pool.is_lent(limit) else 0,
            ahead=self._pool.ahead_of(run),
        )

    def _holders(self, works: tuple[Work, ...], limit: str | None) -> Iterator[Holder]:
        for work in works:
            run = work.run if isinstance(work, SubtaskWork) else work
            if isinstance(run, Run):
                yield self._holder(run, 1 if limit is None else dict(work.needs).get(limit, 1))

    def _holder(self, run: Run, units: int) -> Holder:
        started = run.started
        since = run.utc(self._core.monotonic() if started is None else started)
        return Holder(job_id=run.job.id, due=instant_of(run.due_us), since=instant_at(since), units=units)

    def _places(self) -> Waited:
        now = self._core.monotonic()
        if self._full is None or not 0 <= now - self._full[0] < SAME_MOMENT:
            self._full = now, self._full_now()
        return self._full[1]

    def _full_now(self) -> Waited:
        oldest = [run for run in self._oldest() if run.started is not None][:MOST_HOLDERS]
        holders = tuple(self._holder(run, 1) for run in oldest)
        others = max(0, self._pool.active - len(holders))
        return Waited(at=self._now(), limit=None, size=self._pool.capacity, holders=holders, others=others)

    def _now(self) -> datetime:
        return instant_of(self._core.timeline.us(self._core.monotonic(), steady=False))

    def _oldest(self) -> Iterator[Run]:
        for each in islice(self._core.runs.active.copy(), LOOKED_AT):
            if not isinstance(each, RunBundle):
                yield each

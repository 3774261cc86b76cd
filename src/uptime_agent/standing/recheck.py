"""Checks before the schedule: next attempts, and while a target is not well.

Such a check is the job's next start, set by hand: it holds no unit, and survives a restart. A regular start that comes
first replaces it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime

from scheduler import AlreadyStopped, JobNotFound, Outcome, RunEnded, Scheduler

from .news import Checked, News
from .status import TargetStatus, has_instants


def recheck(target: TargetStatus, run: RunEnded) -> float | None:
    """When to check after a run (UTC seconds). None: as scheduled.

    An attempt follows the last one's end. Targets that are not well keep a grid.
    """
    if target.last is not None and target.last.asks:
        return None
    if target.tried and target.last is not None and not target.last.is_final:
        return run.ended.timestamp() + target.retry_interval
    return None if target.is_well else _on_its_grid(target, run.due.timestamp(), run.ended.timestamp())


def made_up(target: TargetStatus, run: RunEnded, rest: float) -> float | None:
    """When to repeat a cut-off check (UTC seconds), which counts as down. None: as scheduled.

    `rest`: seconds to wait first.
    """
    ended = run.ended.timestamp()
    wanted = _on_its_grid(target, run.due.timestamp(), ended + rest)
    if target.retry_interval and target.max_attempts > 1:
        again = ended + max(target.retry_interval, rest)
        wanted = again if wanted is None else min(wanted, again)
    return wanted


def _on_its_grid(target: TargetStatus, due: float, after: float) -> float | None:
    if target.failing_interval is None:
        return None
    intervals = max(math.floor((after - due) / target.failing_interval) + 1, 1)
    return due + intervals * target.failing_interval


class Recheck:
    """Starts checks early. `rest`: seconds after a crash without interrupted checks."""

    def __init__(
        self,
        scheduler: Scheduler,
        targets: Mapping[str, TargetStatus],
        *,
        rest: float = 0.0,
    ) -> None:
        self._scheduler = scheduler
        self._targets = targets
        self._rest = rest
        self._crashed: dict[str, RunEnded] = {}
        self._children: dict[str, set[str]] = {}
        self._awaited: dict[str, set[str]] = {}
        self._early: dict[str, datetime] = {}
        """Starts that were set here last."""

    def hear(self, news: News) -> None:
        """Start a target earlier if needed."""
        if not isinstance(news, Checked) or news.target.last_run is None:
            return
        for parent in () if news.target.last is None else news.target.last.asks:
            self._ask(parent, news.target.name)
        if news.target.last is None or news.target.last.is_final:
            self.answered(news.target.name, news.target.last_run.ended.timestamp())
        wanted = recheck(news.target, news.target.last_run)
        if wanted is None:
            return
        self._start(news.target.name, datetime.fromtimestamp(wanted, UTC), instead=True)

    def listen(self, run: RunEnded) -> None:
        """Repeat a check that a stop cut off. `make_up` follows a crash."""
        if run.outcome is Outcome.CRASHED:
            self._crashed[run.job_id] = run
        elif run.outcome is Outcome.CANCELLED:
            self._make_up(run, 0.0)

    def make_up(self) -> None:
        """Repeat checks that a crash cut off, once jobs were read.

        They rest at most one interval, or a fast target would miss many checks.
        """
        crashed, self._crashed = self._crashed, {}
        for run in crashed.values():
            first, interval = self._regular(run.job_id, run.ended)
            self._make_up(run, min(self._rest, interval))
            if first is not None and interval < self._rest:
                self._start(run.job_id, first)

    def _regular(self, name: str, after: datetime) -> tuple[datetime | None, float]:
        """The first regular start, and the seconds to the next."""
        try:
            schedule = self._scheduler.get(name).schedule.bind(name)
        except JobNotFound:
            return None, math.inf
        first = schedule.next(after)
        second = None if first is None else schedule.next(first)
        return first, math.inf if first is None or second is None else (second - first).total_seconds()

    def _make_up(self, run: RunEnded, rest: float) -> None:
        target = self._targets.get(run.job_id)
        wanted = None if target is None else made_up(target, run, rest)
        if wanted is not None:
            self._start(run.job_id, datetime.fromtimestamp(wanted, UTC))

    def answered(self, parent: str, at: float) -> None:
        """Check targets that wait only for this parent, at `at` (UTC seconds)."""
        for child in self._children.pop(parent, ()):
            self._answered(child, parent, datetime.fromtimestamp(at, UTC))

    def waits_for(self, parent: str) -> bool:
        """Whether a target waits for this parent."""
        return parent in self._children

    def _ask(self, parent: str, child: str) -> None:
        """Check a parent now, and `child` after it. Votes wait for their instants."""
        is_asked = parent in self._children or has_instants(self._targets, parent)
        if not is_asked:
            try:
                self._scheduler.get(parent).run_now()
            except (JobNotFound, AlreadyStopped):
                return
        if has_instants(self._targets, child):
            return
        self._children.setdefault(parent, set()).add(child)
        self._awaited.setdefault(child, set()).add(parent)

    def _answered(self, child: str, parent: str, at: datetime) -> None:
        left = self._awaited.get(child, set())
        left.discard(parent)
        if not left:
            self._awaited.pop(child, None)
            self._start(child, at)

    def _start(self, name: str, at: datetime, *, instead: bool = False) -> None:
        """Check a target earlier. Other nodes start their own.

        `instead`: an early start of ours that still waits gives way to `at`, because a check by hand came first.
        """
        with suppress(JobNotFound, AlreadyStopped):
            job = self._scheduler.get(name)
            start = job.next_start
            is_ahead = start is None or at < start or (instead and start == self._early.get(name))
            if job.is_ours and is_ahead and start != at:
                job.set_next_start(at)
                self._early[name] = at

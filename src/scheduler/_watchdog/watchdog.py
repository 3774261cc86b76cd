"""Check all jobs at intervals and when asked, some in each turn of the loop.

    AuditStarted -> records of runs -> all jobs, in slices -> jobs with a flaw once more -> AuditEnded

The next audit is planned first, so no failure can stop the audits. A request meanwhile gets `has_lock=False`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from logging import getLogger
from typing import Any, Final

import anyio
from attrs import Factory, define

from timerqueue import LifecycleError

from .._jobs import Job
from .._loop import Core
from .._plan import AT_ONCE, instant_at
from .._values import Audit, AuditEnded, AuditStarted, WatchdogStatistics
from .flaws import Flaw, flaw_of, mend, name_of
from .records import NOBODY, Records

logger = getLogger(__name__)

FIRST: Final = 10.0
"""Seconds: older damage must not wait for a whole interval."""

RETRY_S: Final = 1.0
"""Seconds, while another audit goes on."""

CHECK_EVERY: Final = 60.0
"""Seconds."""

SLICE: Final = 200
MOST_NAMED: Final = 100

Done = Callable[[Audit], object]


@define(eq=False)
class _Pass:
    interval: float | None
    at: float
    began: float
    done: Done | None = None
    jobs: int = 0
    found: dict[Flaw, int] = Factory(lambda: dict.fromkeys(Flaw, 0))
    failing: list[str] = Factory(list)
    failed: int = 0
    closed: int = 0
    trouble: str | None = None
    suspects: list[tuple[Job, Flaw]] = Factory(list)
    oldest: tuple[str, float | None] | None = None

    def name_one(self, jobs: Iterable[Job]) -> None:
        if self.oldest is None:
            well = next((job for job in jobs if getattr(job, "audited", None) == self.at), None)
            self.oldest = None if well is None else (well.id, self.at)

    def found_failing(self, job: Job) -> None:
        """A job that cannot be mended keeps its stamp."""
        self.failed += 1
        self.failing += [job.id][: MOST_NAMED - len(self.failing)]
        since = getattr(job, "audited", None)
        if self.oldest is None or (since or 0.0) < (self.oldest[1] or 0.0):
            self.oldest = (job.id, since)

    def audit(self, now: float) -> Audit:
        return Audit(
            at=self.at,
            interval=self.interval,
            jobs=self.jobs,
            failed=self.failed,
            planned=self.found[Flaw.NOT_PLANNED],
            requeued=self.found[Flaw.NOT_IN_HEAP],
            withdrawn=self.found[Flaw.STARTS_THOUGH_PAUSED],
            closed=self.closed,
            seconds=now - self.began,
            trouble=self.trouble,
        )


class Watchdog:
    """`interval` in seconds; None: only when asked."""

    def __init__(self, core: Core, interval: float | None, records: Records | None = None) -> None:
        self._core = core
        self._interval = interval
        self._records = records
        self._timer: Any = None
        self._checked: float | None = None
        self._current: _Pass | None = None
        self._audits = 0
        self._last: Audit | None = None
        self._failing: tuple[str, ...] = ()
        self._oldest: tuple[str, float | None] | None = None
        self._is_over = False
        self._asked: list[Callable[[str | None], object]] = []

    def begin(self) -> None:
        if self._interval is not None and not self._core.runs.is_on_demand:
            self._plan(min(FIRST, self._interval))

    def ensure(self) -> None:
        """See, at most once a minute, that a next audit comes."""
        now = self._core.monotonic()
        if self._interval is None or self._is_over or (self._checked is not None and now - self._checked < CHECK_EVERY):
            return
        self._checked = now
        if self._timer is not None and not self._timer.is_waiting:
            logger.error("the next audit was planned nowhere: it comes now")
            self._plan(0.0)

    def end(self) -> None:
        """Waiting callers get what the present audit has found."""
        self._is_over = True
        if self._current is not None:
            self._finish(self._current)

    async def audited(self) -> Audit:
        done, answer = anyio.Event(), list[Audit]()

        def tell(audit: Audit) -> None:
            answer.append(audit)
            done.set()

        self._core.loop.call(self.audit, tell)
        await done.wait()
        return answer[0]

    def statistics(self) -> WatchdogStatistics:
        return WatchdogStatistics(
            interval=self._interval,
            audits=self._audits,
            last=self._last,
            failing=self._failing,
            oldest=self._oldest,
        )

    def look_at(self, job: Job) -> str | None:
        """Return what was wrong."""
        flaw = self._flaw_of(job)
        if flaw is None:
            return None
        self._mend(job, flaw, None)
        return name_of(flaw)

    def audit_job(self, job: Job, says_it_runs: bool, done: Callable[[str | None], object]) -> None:  # noqa: FBT001 - read as a sentence where it is called
        """Mend the job now, and call `done` with what was wrong.

        `says_it_runs`: then all records are audited twice, because one audit closes none.
        """
        found = self.look_at(job)
        if found is not None or not says_it_runs or self._records is None:
            done(found)
            return
        self._asked.append(done)
        if len(self._asked) == 1:
            self.audit(lambda _: self._soon(self.audit, self._audited_twice))

    def _audited_twice(self, audit: Audit) -> None:
        if not audit.has_lock and not self._is_over:  # another audit goes on
            with suppress(LifecycleError):
                self._core.queue.push(self._core.monotonic() + RETRY_S, self.audit, self._audited_twice)
                return
        asked, self._asked = self._asked, []
        found = NOBODY if audit.closed else None
        for done in asked:
            done(found)

    def audit(self, done: Done | None = None, *, interval: float | None = None) -> None:
        core = self._core
        now, at = core.monotonic(), core.clock.wall()
        core.listeners.tell(AuditStarted(instant_at(at), interval))
        if self._current is not None or self._is_over:
            audit = Audit(at=at, interval=interval, has_lock=False)
            core.listeners.tell(AuditEnded(audit))
            if done is not None:
                done(audit)
            return
        self._current = current = _Pass(interval, at, now, done)
        if self._records is None:
            self._step(current, self._begin_to_look)
        else:
            self._records.look(lambda closed, trouble: self._records_seen(current, closed, trouble))

    def _plan(self, seconds: float) -> None:
        with suppress(LifecycleError):  # the loop has ended
            self._timer = self._core.queue.push(self._core.monotonic() + seconds, self._due)

    def _due(self) -> None:
        assert self._interval is not None
        self._plan(self._interval)
        self.audit(interval=self._interval)

    def _records_seen(self, current: _Pass, closed: int, trouble: str | None) -> None:
        current.closed, current.trouble = closed, trouble
        self._step(current, self._begin_to_look)

    def _step(self, current: _Pass, step: Callable[..., object], *args: object) -> None:
        """An error ends this audit and no other."""
        if current is not self._current:
            return
        try:
            step(current, *args)
        except Exception as exc:
            logger.exception("an audit has failed; the next one comes all the same")
            current.trouble = f"it has failed: {type(exc).__name__}: {exc}"
            self._finish(current)

    def _begin_to_look(self, current: _Pass) -> None:
        self._look_on(current, iter(self._core.jobs.jobs()))

    def _look_on(self, current: _Pass, jobs: Iterator[Job]) -> None:
        slice_ = list(islice(jobs, SLICE))
        for job in slice_:
            self._look(current, job)
        current.name_one(slice_)
        if len(slice_) == SLICE:
            self._soon(self._step, current, self._look_on, jobs)
        elif current.suspects:
            self._soon(self._step, current, self._look_again)
        else:
            self._finish(current)

    def _look(self, current: _Pass, job: Job) -> None:
        if job.sparse is not None or job.due_us is None or not job.is_waiting:
            flaw = self._flaw_of(job)
            if flaw is not None:
                current.suspects.append((job, flaw))
                return
            if job.is_paused or job.is_removed:
                return
        job.audited = current.at
        current.jobs += 1

    def _flaw_of(self, job: Job) -> Flaw | None:
        """None also while the job is due or its tick waits for a trusted clock."""
        flaw = flaw_of(job)
        is_known = (
            flaw is None or self._is_over or self._core.turn.is_firing(job) or self._core.clock_guard.has_left(job)
        )
        return None if is_known else flaw

    def _look_again(self, current: _Pass) -> None:
        for job, flaw in current.suspects:
            if self._flaw_of(job) is flaw:
                self._mend(job, flaw, current)
            if not (job.is_paused or job.is_removed) and job.id not in current.failing:
                job.audited = current.at
                current.jobs += 1
        current.name_one(job for job, _ in current.suspects)
        self._finish(current)

    def _mend(self, job: Job, flaw: Flaw, current: _Pass | None) -> None:
        logger.error("the watchdog mends job %r: %s", job.id, name_of(flaw))
        try:
            mend(job, flaw, self._core)
        except Exception as exc:  # a user's schedule may raise anything
            logger.exception("job %r cannot be mended", job.id)
            self._core.starts.parking.park(job, exc)
            if current is not None:
                current.found_failing(job)
            return
        if current is not None:
            current.found[flaw] += 1

    def _finish(self, current: _Pass) -> None:
        self._current = None
        audit = current.audit(self._core.monotonic())
        self._audits += 1
        self._last, self._failing, self._oldest = audit, tuple(current.failing), current.oldest
        level = logger.info if audit.mended or audit.failed else logger.debug
        level("audit of %d jobs: %d mended, %d failed", audit.jobs, audit.mended, audit.failed)
        self._core.listeners.tell(AuditEnded(audit))
        if current.done is not None:
            current.done(audit)

    def _soon(self, func: Callable[..., object], *args: object) -> None:
        with suppress(LifecycleError):  # the loop has ended: `end` answers the callers that wait
            self._core.queue.push(AT_ONCE, func, *args)

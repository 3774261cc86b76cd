"""Ticks cut off by the end of a process: counted, rested for, and owed.

One death is one crash of a job, however many ticks it ended.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from logging import getLogger
from typing import Final

from attrs import frozen

from timerqueue import Random

from .._jobs import Job
from .._loop import Core
from .._plan import CrashFloor, after_crash, instant_of, rest_until
from .._starts import REMOVED, is_owed_by
from .._values import Outcome, RunEnded
from ..stores import StoredState, StoredTick

logger = getLogger(__name__)

DIED: Final = "the process died under it"


@frozen
class Lost:
    """`crashes`: found RUNNING. `owed`: since earlier."""

    crashes: Sequence[StoredTick] = ()
    owed: Sequence[StoredTick] = ()


NOTHING_LOST: Final = Lost()


def lost_by_job(crashes: Iterable[StoredTick], owed: Iterable[StoredTick]) -> dict[str, Lost]:
    found: defaultdict[str, tuple[list[StoredTick], list[StoredTick]]] = defaultdict(lambda: ([], []))
    for tick in crashes:
        found[tick.job_id][0].append(tick)
    for tick in owed:
        found[tick.job_id][1].append(tick)
    return {job_id: Lost(*both) for job_id, both in found.items()}


class Crashes:
    def __init__(self, core: Core, random: Random, *, crash_floor: float) -> None:
        self._core = core
        self._journal = core.journal
        self._random = random
        self._floor_us = int(crash_floor * 1e6)

    def take(
        self, job: Job, state: StoredState | None, lost: Lost, *, is_readable: bool
    ) -> tuple[StoredState | None, str | None]:
        """Let the job rest, and take its owed ticks. Return its new state, and why it is quarantined.

        An unreadable job owes its ticks until its row is mended.
        """
        quarantine = None
        if lost.crashes:
            state, quarantine = self._crashed(job, state, lost.crashes, is_owed=not is_readable or is_owed_by(job))
        if lost.owed:
            self._core.runs.owing.put(job, lost.owed)
        if state is not None and state.not_before_us is not None:
            self._rest(job, state.not_before_us)
        return state, quarantine

    def without_job(self, lost: Lost, error: str, why: str) -> None:
        """Give up a gone job's ticks: their records say so."""
        for tick in lost.crashes:
            self._journal.crashed(tick, self._now_us(), error)
        for tick in lost.owed:
            self._journal.give_up(tick, why)

    def close(self, job: Job | None, tick: StoredTick, error: str) -> None:
        """End the record of a run that no process runs. `job` None: it is gone."""
        if job is None:
            self.without_job(Lost([tick]), error, REMOVED)
            return
        is_owed = is_owed_by(job)
        job.counts().crash(error)
        job.lateness.crashes += 1
        record = self._journal.crashed(tick, self._now_us(), error, job, owed=is_owed)
        if is_owed:
            self._core.runs.owing.put(job, [record])
            self._core.starts.try_owed(job)
        self._tell(tick, self._now_us())

    def _crashed(
        self, job: Job, state: StoredState | None, ticks: Sequence[StoredTick], *, is_owed: bool
    ) -> tuple[StoredState, str | None]:
        now_us = self._now_us()
        tally = job.counts()
        tally.crash(DIED)
        job.lateness.crashes += len(ticks)
        aftermath = after_crash(
            now_us,
            self._floor_us,
            tally.consecutive_crashes,
            job.policy,
            interval=job.planner.interval,
            random=self._random(),
            not_before_us=None if state is None else state.not_before_us,
        )
        records = [self._journal.crashed(each, now_us, DIED, job, owed=is_owed) for each in ticks]
        if is_owed:
            self._core.runs.owing.put(job, records)
        for each in ticks:
            self._tell(each, now_us)
        logger.warning("job %r: %s %d time(s) in a row", job.id, DIED, tally.consecutive_crashes)
        state = (state or StoredState(job.id))._replace(not_before_us=aftermath.not_before_us)
        return state, aftermath.quarantine

    def _rest(self, job: Job, not_before_us: int) -> None:
        until_us = rest_until(
            not_before_us,
            self._now_us(),
            self._floor_us,
            job.counts().consecutive_crashes,
            job.policy,
            interval=job.planner.interval,
        )
        if until_us is not None:
            job.floor = CrashFloor(until_us)

    def _tell(self, tick: StoredTick, now_us: int) -> None:
        started_us = tick.started_us or tick.due_us
        self._core.listeners.tell(
            RunEnded(
                tick.job_id,
                instant_of(tick.due_us),
                instant_of(started_us),
                instant_of(now_us),
                tick.attempt,
                0.0,
                (now_us - started_us) * 1e-6,
                Outcome.CRASHED,
                DIED,
            )
        )

    def _now_us(self) -> int:
        return self._core.timeline.us(self._core.monotonic(), steady=False)

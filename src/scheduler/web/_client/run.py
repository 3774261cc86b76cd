"""The run that a client asked for. Its answer is read from the job's records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from threading import Event
from typing import Final

from anyio.to_thread import run_sync

from timerqueue import Clock

from ..._jobs import AskedRun
from ..._memory import Record
from ..._shape import seconds_of
from ..._values import Outcome, RunEnded, RunMissed

_FIRST_WAIT: Final = 0.02
_LONGEST_WAIT: Final = 1.0
"""Seconds between two looks at the records."""

RecordsOf = Callable[[], Sequence[Record]]


class RemoteRun(AskedRun):
    """A run in another process. `result` asks for its record until it has ended; so does `await`, in a thread.

    `due`: its tick. None: another node of a fleet has the job, and the run is the first tick after `after`.
    """

    __slots__ = ("_clock", "_records", "after", "due")

    def __init__(
        self, job_id: str, due: datetime | None, after: datetime | None, records: RecordsOf, clock: Clock
    ) -> None:
        super().__init__(job_id, set())
        self._open.discard(self)  # or it would be part of a reference cycle
        self.due = due
        self.after = after
        self._records = records
        self._clock = clock

    def result(self, timeout: timedelta | float | str | None = None) -> RunEnded | RunMissed:
        """Block this thread until there is an answer, for at most `timeout` of real time. Raises TimeoutError."""
        seconds = None if timeout is None else seconds_of("timeout", timeout)
        deadline = None if seconds is None else self._clock.monotonic() + seconds
        wait = _FIRST_WAIT
        while self.answer is None:
            if (record := self._found(self._records())) is not None:
                self.settle(_answer_of(record))
            elif deadline is not None and self._clock.monotonic() >= deadline:
                msg = f"the run of job {self.job_id!r} that was asked for has not ended after {seconds:g} s"
                raise TimeoutError(msg)
            else:
                Event().wait(wait)
                wait = min(2 * wait, _LONGEST_WAIT)
        return self._answered()

    async def _wait(self) -> RunEnded | RunMissed:
        return await run_sync(self.result, abandon_on_cancel=True)

    def _found(self, records: Sequence[Record]) -> Record | None:
        """Return the record of the tick, or of the later tick whose run answers for it, once it has ended."""
        later = [each for each in reversed(records) if self._is_later(each)]
        exact = [each for each in records if self.due is not None and each.due <= self.due <= each.last_due]
        record = next(iter(exact or later), None)
        return None if record is None or record.outcome is None or record.owed else record

    def _is_later(self, record: Record) -> bool:
        if self.due is not None:
            return record.due > self.due and record.outcome is not Outcome.MISSED
        return self.after is None or record.due > self.after


def _answer_of(record: Record) -> RunEnded | RunMissed:
    if record.reason is not None:
        return RunMissed(
            record.job_id, record.due, record.last_due, record.count, record.reason, record.is_exact, record.error
        )
    started, ended = record.started or record.due, record.ended or record.due
    return RunEnded(
        record.job_id,
        record.due,
        started,
        ended,
        record.attempt,
        record.lateness or 0.0,
        (ended - started).total_seconds(),
        record.outcome or Outcome.CRASHED,
        record.error,
        record.traceback,
        () if record.result is None else (record.result,),
    )

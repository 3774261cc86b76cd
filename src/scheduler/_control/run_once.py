"""One run of every job."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import anyio

from .._jobs import Job
from .._values import (
    Event,
    JobChanged,
    JobFinished,
    JobParked,
    JobRemoved,
    Listeners,
    RunEnded,
    RunMissed,
    SchedulerStopped,
    ScopePaused,
)


class RunOnce:
    """Waits for one run of each started job. It always ends: a job without another attempt is left out.

    `call_soon`: calls after the present turn.
    """

    def __init__(self, jobs: Iterable[Job], listeners: Listeners, call_soon: Callable[..., None]) -> None:
        self.ended: dict[str, RunEnded] = {}
        self._missing = {job.id: job for job in jobs}
        self._call_soon = call_soon
        self._done = anyio.Event()
        self._end_listening = listeners.add(self._listen)

    async def wait(self) -> None:
        self._look()
        try:
            await self._done.wait()
        finally:
            self._end_listening()

    def give_up(self) -> None:
        self._done.set()

    def _listen(self, event: Event) -> None:
        match event:
            case RunEnded(retry_at=None):
                self.ended[event.job_id] = event
                self._missing.pop(event.job_id, None)
            case RunMissed() | JobRemoved() | JobFinished() | JobParked() | JobChanged():
                if event.job_id in self._missing:
                    self._call_soon(self._look_at, event.job_id)
                return
            case ScopePaused():
                self._call_soon(self._look)
                return
            case SchedulerStopped():
                self._missing.clear()
            case _:
                return
        self._check()

    def _look(self) -> None:
        self._missing = {id: job for id, job in self._missing.items() if _may_end(job)}
        self._check()

    def _look_at(self, id: str) -> None:
        if id in self._missing and not _may_end(self._missing[id]):
            del self._missing[id]
            self._check()

    def _check(self) -> None:
        if not self._missing:
            self._done.set()


def _may_end(job: Job) -> bool:
    return not job.is_removed and bool(job.runs or job.backlog or (job.again is not None and not job.is_paused))

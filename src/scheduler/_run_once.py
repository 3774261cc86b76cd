"""Every job once, with all its subtasks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import anyio

from ._events import Event, JobChanged, JobFinished, JobParked, JobRemoved, RunEnded, RunMissed, SchedulerStopped
from ._state import JobState

if TYPE_CHECKING:
    from ._job import Job
    from ._listeners import Listeners


class RunOnce:
    """Waits for one run of each of some jobs. Ends in any case: a job that is removed or dropped is not waited for."""

    def __init__(self, jobs: Iterable[Job], listeners: Listeners) -> None:
        self.ended: dict[str, RunEnded] = {}
        self._missing = {job.id for job in jobs}
        self._done = anyio.Event()
        self._end_listening = listeners.add(self._listen)
        self._check()

    async def wait(self) -> None:
        """Return when all have ended, or when it was told to `give_up`."""
        try:
            await self._done.wait()
        finally:
            self._end_listening()

    def give_up(self) -> None:
        """Wait no longer."""
        self._done.set()

    def _listen(self, event: Event) -> None:
        match event:
            case RunEnded(retry_at=None):
                self.ended[event.job_id] = event
                self._missing.discard(event.job_id)
            case RunMissed() | JobRemoved() | JobFinished() | JobParked() | JobChanged(state=JobState.DISABLED):
                self._missing.discard(event.job_id)
            case SchedulerStopped():
                self._missing.clear()
            case _:
                return
        self._check()

    def _check(self) -> None:
        if not self._missing:
            self._done.set()

"""Acts as stored one-shot jobs: they end by themselves, and every node of a fleet reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from schedule import At, Missed
from scheduler import AlreadyStopped, Job, JobNotFound, Retry, Scheduler

from .act import PREFIX, Act, ScopeKind, act_of

TASK: Final = "act"
"""Also the tag of its jobs."""

NEVER: Final = timedelta(days=36_500)
"""The end of an act without one."""

RETRY: Final = Retry.exponential("1s", cap="1m", max_retries=None)
PRIORITY: Final = 6
"""Above checks that wait for room."""


class ActJobs:
    """The jobs of acts. A job runs as its act begins, for history, and at its end."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def keep(self, act: Act) -> None:
        """Store an act, or another version of it. Raises AlreadyStopped."""
        since = datetime.fromtimestamp(act.since, UTC)
        end = since + NEVER if act.until is None else datetime.fromtimestamp(act.until, UTC)
        self._scheduler.add(
            TASK,
            At(end),
            id=act.id,
            args=(act.values(),),
            priority=PRIORITY,
            retry=RETRY,
            missed=Missed.LATEST,
            delivery="at_least_once",
            place=act.scope.name if act.scope.kind is not ScopeKind.TAG else None,
            tags=(TASK,),
            on_conflict="update",
        )

    def note(self, id: str) -> None:
        """Have history say that an act has begun."""
        job = self.find(id)
        if job is not None:
            with suppress(AlreadyStopped, JobNotFound):
                job.run_now()

    def end(self, id: str) -> None:
        """Remove an act."""
        job = self.find(id)
        if job is not None:
            job.remove()

    def end_stuck(self, id: str) -> None:
        """Remove an act that was over before anybody read it: its job never runs."""
        job = self.find(id)
        if job is not None and job.is_ours and job.error is not None:
            job.remove()

    def find(self, id: str) -> Job | None:
        """The job of that act."""
        with suppress(JobNotFound):
            return self._scheduler.get(id)
        return None

    def is_ours(self, id: str) -> bool:
        """Whether no other node has the act's job."""
        job = self.find(id)
        return job is not None and job.is_ours

    def read(self, id: str) -> Act | None:
        """The stored act. Raises ValueError if it makes no sense."""
        job = self.find(id)
        if job is None:
            return None
        args: tuple[Any, ...] = job.args
        act = act_of(args[0] if args else None)
        if act.id != id:
            msg = f"it is {act.id}"
            raise ValueError(msg)
        return act

    def all(self) -> Iterator[Job]:
        """The jobs of all acts."""
        return (job for job in self._scheduler.jobs() if job.id.startswith(PREFIX) and TASK in job.tags)

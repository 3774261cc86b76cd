"""A stored one-shot job for each message."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from schedule import At
from scheduler import AlreadyStopped, JobNotFound, JobState, Retry, Scheduler

from .channels import Message
from .entries import NEVER, TASK, Entries, OutboxEntry, instant_of, job_id

RETRY: Final = Retry.exponential("2s", cap="5m", max_retries=None)
PRIORITY: Final = 6
"""Above checks that wait for room."""


class MessageJobs:
    """All messages' jobs. `now`: UTC seconds since 1970. `unstored`: a target whose messages are not stored."""

    def __init__(
        self, scheduler: Scheduler, entries: Entries, now: Callable[[], float], unstored: str | None = None
    ) -> None:
        self._scheduler = scheduler
        self._entries = entries
        self._now = now
        self._unstored = unstored

    def add(self, message: Message, due: float | None) -> None:
        """Enter a message and its job. `due` None: the outbox starts it later.

        A stopping scheduler takes none: the next process finds it in history.
        """
        with suppress(AlreadyStopped):
            self._add(message, due)

    def _add(self, message: Message, due: float | None) -> None:
        job = self._scheduler.add(
            TASK,
            At(instant_of(self._now()) + NEVER),
            id=job_id(message.key),
            args=(message.values(),),
            needs=f"channel:{message.channel}",
            priority=PRIORITY,
            retry=RETRY,
            delivery="at_least_once",
            place=message.target,
            tags=(TASK, message.channel),
            on_conflict="keep",
            durable=message.target != self._unstored,
        )
        self._entries.put(OutboxEntry(message, job))
        if due is not None:
            job.set_next_start(instant_of(due))

    def become(self, entry: OutboxEntry, message: Message) -> None:
        """Change a waiting message and its job."""
        entry.message = message
        entry.job.update(args=(message.values(),))

    def let_go(self, entry: OutboxEntry, due: float) -> None:
        """Have a message sent at `due`."""
        entry.job.set_next_start(instant_of(due))

    def start_soon(self, entry: OutboxEntry) -> None:
        """Start a waiting job now."""
        with suppress(JobNotFound):
            if entry.job.state is JobState.SCHEDULED:
                entry.job.set_next_start(instant_of(self._now()))

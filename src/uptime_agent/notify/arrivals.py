"""Messages from an earlier process or another node."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from scheduler import Job, JobNotFound, Scheduler

from .channels import message_of
from .digests import Digests
from .entries import PREFIX, TASK, Entries, OutboxEntry, job_id


class Arrivals:
    """Jobs of arriving messages. `say` hears of unreadable ones."""

    def __init__(self, scheduler: Scheduler, entries: Entries, digests: Digests, say: Callable[[str], None]) -> None:
        self._scheduler = scheduler
        self._entries = entries
        self._digests = digests
        self._say = say
        self._sent: list[OutboxEntry] = []

    def take_up(self) -> list[OutboxEntry]:
        """Discard other nodes' messages, return our new ones."""
        for entry in self._entries.all():
            if not entry.job.is_ours:
                self._entries.discard(entry)
        jobs = (job for job in self._scheduler.jobs() if job.id.startswith(PREFIX) and TASK in job.tags and job.is_ours)
        new = [job for job in jobs if self._entries.of_job(job.id) is None and not self._digests.has(job.id)]
        return [entry for entry in map(self._entry_of, new) if entry is not None]

    def sent(self) -> list[OutboxEntry]:
        """Return messages of digests whose jobs must still end. Once each."""
        sent, self._sent = self._sent, []
        return sent

    def may_come(self, key: str) -> bool:
        """Whether any node has that message's job."""
        try:
            return self._scheduler.get(job_id(key)) is not None
        except JobNotFound:
            return False

    def is_coming(self, key: str, again: datetime) -> bool:
        """Whether another node left us a message that is not entered yet. Then its job starts at `again`."""
        try:
            job = self._scheduler.get(job_id(key))
        except JobNotFound:  # it is settled
            return False
        if job.agent is None or self._digests.has(job.id):
            return False
        job.set_next_start(again)
        return True

    def _entry_of(self, job: Job) -> OutboxEntry | None:
        try:
            values, *digest = job.args
            message = message_of(values)
        except ValueError as exc:
            self._say(f"{job.id} holds no message and is not sent: {exc}")
            return None
        entry = OutboxEntry(message, job)
        if job_id(message.key) != job.id:
            self._say(f"{job.id} holds another message and is not sent: {message.key}")
        elif digest:
            self._digests.take_up(job, str(digest[0]))
            self._sent.append(entry)
        else:
            self._entries.put(entry)
            return entry
        return None

"""Messages of digests, until their jobs record it.

The transaction that ends the sending run makes their jobs name the digest: a later process sends nothing for them.
Lives on the loop.
"""

from __future__ import annotations

from contextlib import suppress

from attrs import frozen

from scheduler import Job, JobNotFound

from .channels import Message
from .entries import OutboxEntry, job_id


@frozen
class _Sent:
    job: Job
    digest: str
    message: Message | None
    """None: its job names the digest already."""


class Digests:
    """Messages by job, with their digests."""

    def __init__(self) -> None:
        self._sent: dict[str, _Sent] = {}

    def put(self, entry: OutboxEntry, digest: str) -> None:
        """Note a message sent in a digest."""
        self._sent[entry.job.id] = _Sent(entry.job, digest, entry.message)

    def take_up(self, job: Job, digest: str) -> None:
        """Note a job that names its digest."""
        self._sent[job.id] = _Sent(job, digest, None)

    def mark(self, digest: object) -> None:
        """Have its messages' jobs name the digest, while the run's end is told."""
        for sent in list(self._sent.values()):
            if sent.digest == digest and sent.message is not None:
                with suppress(JobNotFound):
                    sent.job.update(args=(sent.message.values(), sent.digest))
                self.take_up(sent.job, sent.digest)

    def has(self, id: str) -> bool:
        """Whether a digest sent that message."""
        return id in self._sent

    def digest_of(self, key: str) -> str | None:
        """The key of a message's digest."""
        sent = self._sent.get(job_id(key))
        return None if sent is None else sent.digest

    def end(self, id: str) -> None:
        """Forget and remove an ended job."""
        sent = self._sent.pop(id, None)
        if sent is not None:
            sent.job.remove()

"""Messages that went out in another one's digest, until their jobs have recorded it.

One run sends a digest, and its end settles all messages in it. The transaction that records that end also marks their
jobs: their arguments name the digest. A later process sends nothing for such a job, and lets it end. Lives on the loop,
in calls of the outbox.
"""

from __future__ import annotations

from contextlib import suppress

from attrs import frozen

from scheduler import Job, JobNotFound

from .channels import Message
from .entries import Entry, job_id


@frozen
class _Sent:
    job: Job
    digest: str
    message: Message | None
    """The message; None: its job names the digest already."""


class Digests:
    """The messages by job, and the digest of each."""

    def __init__(self) -> None:
        self._sent: dict[str, _Sent] = {}

    def put(self, entry: Entry, digest: str) -> None:
        """Note a message that has gone out in that digest, which only this process knows."""
        self._sent[entry.job.id] = _Sent(entry.job, digest, entry.message)

    def take_up(self, job: Job, digest: str) -> None:
        """Note a job of an earlier process that names its digest."""
        self._sent[job.id] = _Sent(job, digest, None)

    def mark(self, digest: object) -> None:
        """Have the jobs of its messages name the digest. Call it while the end of the sending run is told."""
        for sent in list(self._sent.values()):
            if sent.digest == digest and sent.message is not None:
                with suppress(JobNotFound):
                    sent.job.update(args=(sent.message.values(), sent.digest))
                self.take_up(sent.job, sent.digest)

    def has(self, id: str) -> bool:
        """Whether the message of that job went out in a digest."""
        return id in self._sent

    def digest_of(self, key: str) -> str | None:
        """The key of the digest of the message of that key. None: it was in none."""
        sent = self._sent.get(job_id(key))
        return None if sent is None else sent.digest

    def end(self, id: str) -> None:
        """Forget that job: it has ended."""
        sent = self._sent.pop(id, None)
        if sent is not None:
            sent.job.remove()

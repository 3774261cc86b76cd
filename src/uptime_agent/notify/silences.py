"""Silences: messages wait for their end, and go together then.

    an incident begins in a silence             -> its TRIGGER waits for the end
    it ends in the same silence                 -> both are settled as silenced, and not told
    it was told before, and ends in a silence   -> RESOLVED waits for the end
    it was told before, and is open at the end  -> one reminder

On the loop.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from scheduler import JobState

from .channels import MessageKind
from .entries import Entries, OutboxEntry, instant_of
from .message_jobs import MessageJobs
from .pace import Rules
from .reminders import Reminders


class Silences:
    """Holds and releases of waiting messages. `now`: UTC seconds."""

    def __init__(
        self,
        entries: Entries,
        jobs: MessageJobs,
        reminders: Reminders,
        *,
        now: Callable[[], float],
        rules: Callable[[], Rules],
    ) -> None:
        self._entries = entries
        self._jobs = jobs
        self._reminders = reminders
        self._now = now
        self._rules = rules

    def look(self) -> None:
        """Remind at the end of each silence, and release what no silence holds any more."""
        now, digest = self._now(), self._rules().digest
        longest = 0.0 if digest is None else digest.seconds  # a digest holds no message for longer
        for target in {entry.message.target for entry in self._entries.all()}:
            until = self._entries.silent_until(target, now)
            for entry in self._entries.of_target(target):
                if until is None:
                    self._release(entry, now, longest)
                else:
                    self._hold(entry, until, longest)

    def _hold(self, entry: OutboxEntry, until: float, longest: float) -> None:
        """Remind at the end of a silence. A message that an earlier silence held goes then, too."""
        message = entry.message
        if entry.kind is MessageKind.RESOLVED and message.ended is None:
            self._reminders.after_silence(entry, until)
        elif message.held_until is not None and message.held_until > until + longest:
            at = until if entry.kind is MessageKind.REMINDER else message.at
            self._jobs.become(entry, evolve(message, at=at, held_until=until))
            self._jobs.let_go(entry, until)
        elif entry.kind is not MessageKind.REMINDER and not message.is_silent and (message.held_until or 0.0) < until:
            self._jobs.become(entry, evolve(message, held_until=until))  # its age counts from there

    def _release(self, entry: OutboxEntry, now: float, longest: float) -> None:
        message = entry.message
        is_held = message.held_until is not None and message.held_until > now + longest
        if is_held:
            at = now if entry.kind is MessageKind.REMINDER else message.at
            self._jobs.become(entry, evolve(message, at=at, held_until=now))
        if (is_held or self._waits_too_long(entry, now + longest)) and self._entries.is_ready(entry, now):
            self._jobs.start_soon(entry)

    def _waits_too_long(self, entry: OutboxEntry, longest: float) -> bool:
        """Whether a message was postponed to the end of a silence."""
        if entry.goes_at is not None:  # it waits for the rate of its channel
            return False
        start = entry.job.next_start
        return entry.job.state is JobState.SCHEDULED and start is not None and start > instant_of(longest)

"""Reminders of open incidents: at regular times, and one at the end of a silence.

They rest while an incident is acknowledged: each comes to its time, is found needless, and the next is planned. On the
loop.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from attrs import evolve

from scheduler import JobNotFound, Scheduler

from ..acts import Act, ActsOf
from .channels import Message, MessageKind
from .entries import Entries, OutboxEntry, is_same
from .message_jobs import MessageJobs
from .pace import Rules


class Reminders:
    """The reminders in the outbox. `now`: UTC seconds."""

    def __init__(
        self,
        scheduler: Scheduler,
        entries: Entries,
        jobs: MessageJobs,
        acts_of: ActsOf,
        *,
        now: Callable[[], float],
        rules: Callable[[], Rules],
    ) -> None:
        self._scheduler = scheduler
        self._entries = entries
        self._jobs = jobs
        self._acts_of = acts_of
        self._now = now
        self._rules = rules
        self._resting: set[str] = set()
        """Paused, or in maintenance."""

    def rest(self, target: str) -> None:
        """A target is not checked."""
        self._resting.add(target)

    def go_on(self, target: str) -> None:
        """A target is checked again."""
        self._resting.discard(target)

    def plan(self, message: Message, number: int) -> None:
        """Plan a reminder of an incident, if the rules have any."""
        every = self._rules().reminders
        if every is not None:
            at = self._now() + every
            self._jobs.add(evolve(message, kind=MessageKind.REMINDER, number=number, at=at, held_until=None), at)

    def plan_again(self, message: Message) -> None:
        """Plan the next reminder of an open incident, unless there is one."""
        every = self._rules().reminders
        if every is not None and self.of(message) is None:
            ever_due = int(max(self._now() - message.began, 0.0) / every)
            self.plan(message, ever_due + 1)

    def after_silence(self, entry: OutboxEntry, until: float) -> None:
        """Remind of an open incident as a silence ends: it was told before."""
        message = entry.message
        if self._entries.trigger_of(message) is not None or acknowledgement(self._acts_of, message) is not None:
            return
        present = self.of(message)
        if present is None:
            number = message.reminded + 1
            self._jobs.become(entry, evolve(message, reminded=number))
            reminder = evolve(message, kind=MessageKind.REMINDER, number=number, at=until, held_until=until)
            self._jobs.add(reminder, until)
        elif (present.message.at, present.message.held_until) != (until, until):
            self._jobs.become(present, evolve(present.message, at=until, held_until=until))
            self._jobs.let_go(present, until)

    def of(self, message: Message) -> OutboxEntry | None:
        """The waiting reminder of the same incident and channel."""
        others = self._entries.of_target(message.target)
        return next((e for e in others if e.kind is MessageKind.REMINDER and is_same(e.message, message)), None)

    def is_needless(self, reminder: Message) -> bool:
        """Whether a reminder is not wanted now: no rule asks for it, or its incident is acknowledged."""
        has_no_rule = self._rules().reminders is None and reminder.held_until is None
        is_untold = self._entries.trigger_of(reminder) is not None
        is_known = acknowledgement(self._acts_of, reminder) is not None
        return has_no_rule or is_untold or is_known or not self._is_checked(reminder.target)

    def settled(self, reminder: Message) -> None:
        """Plan the next one, while the incident is open."""
        is_open = any(is_same(each.message, reminder) for each in self._entries.open_of(reminder.target))
        if is_open and self.of(reminder) is None:
            self.plan(reminder, reminder.number + 1)

    def end(self, message: Message) -> None:
        """Remove the reminder of an incident that has ended."""
        if (entry := self.of(message)) is not None:
            self._entries.discard(entry)
            with suppress(JobNotFound):
                entry.job.remove()

    def _is_checked(self, target: str) -> bool:
        """Neither paused nor in maintenance."""
        try:
            return target not in self._resting and self._scheduler.get(target).error is None
        except JobNotFound:  # a group
            return True


def acknowledgement(acts_of: ActsOf, message: Message) -> Act | None:
    """Who has acknowledged the incident of a message."""
    act = acts_of(message.target).acknowledged
    return act if act is not None and act.incident in (None, message.incident) else None

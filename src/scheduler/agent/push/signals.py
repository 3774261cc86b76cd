"""Signals find their targets, by tokens, and move deadlines."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from schedule import Schedule
from scheduler import AlreadyStopped, JobNotFound, Scheduler

from ..checks import PushCheck, Said, Signal
from ..config import Target


class Signals:
    """All targets that report to us. A token is looked up by its hash: no comparison tells how much of it is right."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._targets: dict[bytes, Target] = {}

    def follow(self, targets: Iterable[Target]) -> None:
        """Know these targets from now on, and no others."""
        self._targets = {
            _digest(each.check.token): each for each in targets if each.is_enabled and isinstance(each.check, PushCheck)
        }

    def take(self, token: str, signal: Signal) -> None:
        """Take a signal: its target is judged now, and at its next deadline. A token of nobody changes nothing."""
        target = self._targets.get(_digest(token))
        if target is None or not isinstance(target.check, PushCheck):
            return
        signal = target.check.inbox.put(signal)
        with suppress(JobNotFound, AlreadyStopped):
            job = self._scheduler.get(target.name)
            deadline = deadline_after(target.schedule, target.check.grace, signal)
            if deadline is not None:
                job.set_next_start(deadline)
            job.run_now()


def deadline_after(schedule: Schedule, grace: float, signal: Signal) -> datetime | None:
    """Until when there has to be another signal. A run that has started has to end within the grace.

    None: it says nothing about that.
    """
    at = datetime.fromtimestamp(signal.at, UTC)
    match signal.said:
        case Said.LOG:
            return None
        case Said.START:
            return at + timedelta(seconds=grace)
        case Said.SUCCESS | Said.FAIL:
            return first_deadline(schedule, grace, at)


def first_deadline(schedule: Schedule, grace: float, now: datetime) -> datetime | None:
    """Until when a signal has to come that nobody has waited for before `now`. None: its schedule is over."""
    interval = getattr(schedule, "interval", None)
    expected = now + interval if isinstance(interval, timedelta) else schedule.next(now)
    return None if expected is None else expected + timedelta(seconds=grace)


def _digest(token: str) -> bytes:
    return sha256(token.encode()).digest()

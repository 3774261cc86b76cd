"""Signals find their targets, by tokens, and move deadlines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final

from schedule import Schedule
from scheduler import AlreadyStopped, JobNotFound, Scheduler

from ..checks import PushCheck, Said, Signal
from ..config import Target

MOST_STRANGERS: Final = 20
"""Unknown tokens that are told of; what comes after them is not."""


class Signals:
    """All targets that report to us. A token is looked up by its hash: no comparison tells how much of it is right.

    `say` is told of the first signals with a token that no target has: who sent them hears nothing of that.
    """

    def __init__(self, scheduler: Scheduler, say: Callable[[str], None]) -> None:
        self._scheduler = scheduler
        self._say = say
        self._targets: dict[bytes, Target] = {}
        self._strangers: set[bytes] = set()

    def follow(self, targets: Iterable[Target]) -> None:
        """Know these targets from now on, and no others. One that is as before keeps its inbox, as its check does."""
        before = {each.name: each for each in self._targets.values()}
        self._targets = {
            _digest(each.check.token): before[each.name] if before.get(each.name) == each else each
            for each in targets
            if each.is_enabled and isinstance(each.check, PushCheck)
        }

    def take(self, token: str, signal: Signal) -> None:
        """Take a signal: its target is judged now, and at its next deadline. A token of nobody changes nothing."""
        digest = _digest(token)
        target = self._targets.get(digest)
        if target is None or not isinstance(target.check, PushCheck):
            self._tell_of(digest)
            return
        signal = target.check.inbox.put(signal)
        with suppress(JobNotFound, AlreadyStopped):
            job = self._scheduler.get(target.name)
            deadline = deadline_after(target.schedule, target.check.grace, signal)
            if deadline is not None:
                job.set_next_start(deadline)
            job.run_now()

    def _tell_of(self, digest: bytes) -> None:
        if digest not in self._strangers and len(self._strangers) < MOST_STRANGERS:
            self._strangers.add(digest)
            self._say("a signal has come with a token that no push check has: nothing is made of it")


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

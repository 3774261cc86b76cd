"""Signals find their targets by tokens, move deadlines, and are judged and stored before anybody hears of success."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final

import anyio

from schedule import Schedule
from scheduler import (
    AlreadyStopped,
    JobNotFound,
    LifecycleError,
    MissedReason,
    RunEnded,
    RunMissed,
    Scheduler,
    StoreError,
)

from ..checks import PushCheck, Said, Signal
from ..config import Target
from .server import NotKept

MOST_STRANGERS: Final = 20
"""Unknown tokens that are told of; what comes after them is not."""


class Signals:
    """All targets that report to us. A token is looked up by its hash: no comparison tells how much of it is right.

    `say` is told of the first signals with a token that no target has: who sent them hears nothing of that. `now`: UTC
    seconds since 1970.
    """

    def __init__(self, scheduler: Scheduler, say: Callable[[str], None], *, now: Callable[[], float]) -> None:
        self._scheduler = scheduler
        self._now = now
        self._say = say
        self._targets: dict[bytes, Target] = {}
        self._strangers: set[bytes] = set()
        self._turns: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)

    def follow(self, targets: Iterable[Target]) -> None:
        """Know these targets from now on, and no others. One that is as before keeps its inbox, as its check does."""
        before = {each.name: each for each in self._targets.values()}
        self._targets = {
            _digest(each.check.token): before[each.name] if before.get(each.name) == each else each
            for each in targets
            if each.is_enabled and isinstance(each.check, PushCheck)
        }

    def plan(self) -> None:
        """Give each target its first deadline that has none yet. The scheduler has read its store."""
        now = datetime.fromtimestamp(self._now(), UTC)
        for target in self._targets.values():
            with suppress(JobNotFound):  # its schedule has ended
                if self._scheduler.get(target.name).next_start == target.schedule.bind(target.name).next(now):
                    self._wait_for(target, now)

    def listen(self, event: RunMissed) -> None:
        """Take the deadline of a target that passed while nobody could report: it has until the next one."""
        target = next((each for each in self._targets.values() if each.name == event.job_id), None)
        if event.reason is MissedReason.LATE and target is not None:
            self._wait_for(target, datetime.fromtimestamp(self._now(), UTC))

    def _wait_for(self, target: Target, now: datetime) -> None:
        """Let a target have until its first deadline after `now`."""
        assert isinstance(target.check, PushCheck)
        deadline = first_deadline(target.schedule, target.check.grace, now)
        if deadline is not None:
            with suppress(JobNotFound, AlreadyStopped):
                self._scheduler.get(target.name).set_next_start(deadline)

    async def take(self, token: str, signal: Signal) -> None:
        """Take a signal: its target is judged now, and at its next deadline. Return once both are stored.

        A token of nobody changes nothing. Raises NotKept if the agent stops, or its store refuses.
        """
        digest = _digest(token)
        target = self._targets.get(digest)
        try:
            if target is None or not isinstance(target.check, PushCheck):
                self._tell_of(digest)
            else:
                await self._judge(target, target.check, signal)
            await self._scheduler.flush()
        except (AlreadyStopped, LifecycleError, StoreError) as exc:
            raise NotKept(str(exc)) from exc
        except JobNotFound:  # the configuration has changed just now
            return

    async def _judge(self, target: Target, check: PushCheck, signal: Signal) -> None:
        """Move the deadline, and have the target judged; by a run that waits for its turn, others being under way."""
        job = self._scheduler.get(target.name)
        if not job.is_ours:
            msg = f"another agent has its target: {job.agent or 'nobody knows which'}"
            raise NotKept(msg)
        signal = check.inbox.put(signal)
        deadline = deadline_after(target.schedule, check.grace, signal)
        if deadline is not None:
            job.set_next_start(deadline)
        async with self._turns[target.name]:
            if check.inbox.holds(signal) and not isinstance(await job.run_now(), RunEnded):
                raise NotKept("its target has not been judged")

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

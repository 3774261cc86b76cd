"""Signals find their targets, move deadlines, and are judged and stored before OK.

While the store fails the sender gets 503. The signal counts all the same, and is stored later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final

import anyio
from attrs import frozen

from schedule import Schedule
from scheduler import (
    AlreadyStopped,
    AskedRun,
    JobNotFound,
    JobState,
    LifecycleError,
    MissedReason,
    Outcome,
    RunEnded,
    RunMissed,
    Scheduler,
    StoreDown,
    StoreError,
    StoreUp,
)
from timerqueue import Clock

from ..checks import Inbox, PushCheck, Said, Signal
from ..config import Target
from ..instants import microseconds
from ..standing import Skipped
from ..web import HttpServer, Peers, plain
from .handing import Handing
from .requests import NotKept, PushRequests, Take

MOST_STRANGERS: Final = 20
"""Unknown tokens that are reported."""

AT_ONCE_S: Final = 0.25
"""Then a store is asked whether it is there."""

ANSWER_S: Final = 0.25
"""Then the store counts as away."""

STORED_WITHIN_S: Final = 2.0
"""Then the sender must repeat the signal."""

NO_STORE: Final = "not stored yet, because the store of this agent does not work"


@frozen
class _Heard:
    name: str
    inbox: Inbox
    signal: Signal


class Signals:
    """All push targets. Tokens are looked up by hash: no comparison tells how much is right.

    `say` hears of unknown tokens. `now`: UTC seconds since 1970. `peers` says whether signals may be lost.
    """

    def __init__(
        self, scheduler: Scheduler, say: Callable[[str], None], *, now: Callable[[], float], peers: Peers
    ) -> None:
        self._scheduler = scheduler
        self._now = now
        self._say = say
        self._peers = peers
        self._targets: dict[bytes, Target] = {}
        self._by_name: dict[str, tuple[Target, PushCheck]] = {}
        self._asked: dict[str, AskedRun] = {}
        """Runs that empty targets' inboxes."""
        self._strangers: set[bytes] = set()
        self._is_store_down = False
        self._waiting = set[anyio.CancelScope]()
        self._is_store_silent = False
        """Then the store is not asked until it stores something."""
        self._handing = Handing(scheduler, self._take_handed, now)

    def follow(self, targets: Iterable[Target]) -> None:
        """Know these targets alone. Unchanged ones keep their inboxes."""
        before, self._targets, self._by_name = self._by_name, {}, {}
        for each in targets:
            if each.is_enabled and isinstance(each.check, PushCheck):
                kept = before.get(each.name)
                target, check = kept if kept is not None and kept[0] == each else (each, each.check)
                check.inbox.hear_by(self._peers)
                self._targets[_digest(check.token)] = target
                self._by_name[each.name] = (target, check)
        self._asked = {name: asked for name, asked in self._asked.items() if name in self._by_name}

    def server(self, clock: Clock, *, takes_get: bool) -> HttpServer:
        """Make the push port's server."""
        return push_server(clock, self.take, self._peers, self._say, takes_get=takes_get)

    def plan(self) -> None:
        """Set our targets' first deadlines, once the store was read.

        Other nodes' deadlines are unknown here.
        """
        now = datetime.fromtimestamp(self._now(), UTC)
        for name, (target, check) in self._by_name.items():
            with suppress(JobNotFound):  # its schedule has ended
                job = self._scheduler.get(name)
                if job.is_ours and job.next_start == target.schedule.bind(name).next(now):
                    self._wait_for(target, check, now)

    def listen(self, event: RunMissed | RunEnded | StoreDown | StoreUp) -> None:
        """Take a missed deadline, a run's end, or the store's state.

        A deadline that passed during a pause, or while no signals could come in, is no silence.
        """
        if isinstance(event, (StoreDown, StoreUp)):
            self._is_store_down = isinstance(event, StoreDown)
            for scope in self._waiting if self._is_store_down else ():
                scope.cancel()
            return
        target, check = self._by_name.get(event.job_id, (None, None))
        if target is None or check is None:
            return
        now = datetime.fromtimestamp(self._now(), UTC)
        if isinstance(event, RunEnded):
            self._run_ended(event, check.inbox)
            if check.inbox.is_given_time():
                self._wait_for(target, check, now)
        elif event.reason in {MissedReason.LATE, MissedReason.PAUSED}:
            self._wait_for(target, check, now)

    def _run_ended(self, run: RunEnded, inbox: Inbox) -> None:
        asked = self._asked.get(run.job_id)
        if asked is not None and asked.due_us == microseconds(run.due.timestamp()):
            del self._asked[run.job_id]
        if any(isinstance(each, Skipped) for each in run.results):
            inbox.take()  # what comes during maintenance says nothing later
        elif inbox.is_filled and run.outcome is Outcome.SUCCEEDED:
            with suppress(AlreadyStopped, JobNotFound):
                self._ask(run.job_id)

    def _wait_for(self, target: Target, check: PushCheck, now: datetime) -> None:
        deadline = first_deadline(target.schedule, check.grace, now)
        if deadline is not None:
            with suppress(JobNotFound, AlreadyStopped):
                self._scheduler.get(target.name).set_next_start(deadline)
                check.inbox.expect(deadline)

    async def take(self, token: str, signal: Signal, peer: str) -> bool:
        """Return once a signal is judged and stored. False: unknown token.

        Raises NotKept if the agent stops or its store is late; the signal counts nevertheless.
        """
        digest = _digest(token)
        target = self._targets.get(digest)
        heard: _Heard | None = None
        try:
            if target is None:
                self._tell_of(digest)
            else:
                self._peers.know(peer)
                heard = self._hear(target.name, signal, peer)
            if await self._is_stored(heard):
                return target is not None
        except (AlreadyStopped, LifecycleError) as exc:
            raise NotKept("not stored, because this agent is about to stop") from exc
        except StoreError as exc:
            raise NotKept(NO_STORE) from exc
        except JobNotFound:  # the configuration has changed just now
            return True
        raise NotKept(NO_STORE)

    async def _is_stored(self, heard: _Heard | None) -> bool:
        """A slow store gets more time than an absent one."""
        if await self._is_stored_within(heard, AT_ONCE_S):
            return True
        return await self._has_store() and await self._is_stored_within(heard, STORED_WITHIN_S - AT_ONCE_S)

    async def _is_stored_within(self, heard: _Heard | None, seconds: float) -> bool:
        if self._is_store_down:
            return False
        with anyio.move_on_after(seconds) as scope:
            self._waiting.add(scope)
            try:
                await self._judged(heard)
                await self._scheduler.flush()
                self._is_store_silent = False
                return True
            finally:
                self._waiting.discard(scope)
        return False

    async def _has_store(self) -> bool:
        if self._is_store_down or self._is_store_silent:
            return False
        with anyio.move_on_after(ANSWER_S):
            await self._scheduler.history(limit=1)
            return True
        self._is_store_silent = True
        return False

    async def _take_handed(self, name: str, signal: Signal, peer: str) -> None:
        """Raises NotKept if the target is not ours now."""
        if name not in self._by_name:  # the configuration has changed
            return
        if not self._scheduler.get(name).is_ours:
            raise NotKept("another agent has its target by now")
        self._peers.know(peer)
        await self._judged(self._hear(name, signal, peer))

    def _hear(self, name: str, signal: Signal, peer: str) -> _Heard | None:
        """None: another node gets the signal, or its target is paused."""
        target, check = self._by_name[name]
        job = self._scheduler.get(name)
        if not job.is_ours:
            self._handing.hand_on(name, signal, peer)
            return None
        deadline = deadline_after(target.schedule, check.grace, signal)
        if deadline is not None:
            job.set_next_start(deadline)
            check.inbox.expect(deadline)
        if job.state is JobState.DISABLED:
            return None
        signal = check.inbox.put(signal, peer)
        if check.inbox.holds(signal):
            self._ask(name)
        return _Heard(name, check.inbox, signal)

    async def _judged(self, heard: _Heard | None) -> None:
        """Raises NotKept if the target is not checked."""
        for _ in range(2):  # a run that goes on may have emptied the inbox before; the next one has not
            if heard is not None and heard.inbox.holds(heard.signal):
                answer = await self._ask(heard.name)
                if isinstance(answer, RunMissed) and answer.reason is MissedReason.PAUSED:
                    heard.inbox.take()  # as if it had come a moment later
                elif not isinstance(answer, RunEnded):
                    raise NotKept("not stored, because its target is not checked now")

    def _ask(self, name: str) -> AskedRun:
        """A second run would find nothing."""
        asked = self._asked.get(name)
        if asked is None or asked.is_done:
            asked = self._asked[name] = self._scheduler.get(name).run_now()
        return asked

    def _tell_of(self, digest: bytes) -> None:
        if digest not in self._strangers and len(self._strangers) < MOST_STRANGERS:
            self._strangers.add(digest)
            self._say("a signal has come with a token that no push check has: nothing is made of it")


def deadline_after(schedule: Schedule, grace: float, signal: Signal) -> datetime | None:
    """The next signal's deadline, if it changes. `grace`: seconds."""
    at = datetime.fromtimestamp(signal.at, UTC)
    match signal.said:
        case Said.LOG:
            return None
        case Said.START:
            return at + timedelta(seconds=grace)
        case Said.SUCCESS | Said.FAIL:
            return first_deadline(schedule, grace, at)


def first_deadline(schedule: Schedule, grace: float, now: datetime) -> datetime | None:
    """The first deadline after `now`. None: the schedule is over."""
    interval = getattr(schedule, "interval", None)
    expected = now + interval if isinstance(interval, timedelta) else schedule.next(now)
    return None if expected is None else expected + timedelta(seconds=grace)


def _digest(token: str) -> bytes:
    return sha256(token.encode()).digest()


def push_server(
    clock: Clock, take: Take, peers: Peers, say: Callable[[str], None], *, takes_get: bool = False
) -> HttpServer:
    """Make the push port's server. `say` hears when signals may be lost."""
    requests = PushRequests(clock, take, takes_get=takes_get)
    return HttpServer(clock, plain(requests.answer), peers, say, what="signals of push targets", port="the push port")

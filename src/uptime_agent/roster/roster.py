"""The roster: which targets are checked by now, and what becomes of them when the configuration changes.

A target of the configuration is four things here: how it stands, how it is asked, its job, and a line on the board.
The roster alone adds them and takes them away, all four together, at the start and while the agent runs. What a new
configuration says of a target as the old one did is not touched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from math import inf
from typing import Final

from anyio import move_on_after
from anyio.lowlevel import checkpoint
from attrs import evolve, field, frozen

from schedule import Every, Missed
from scheduler import AlreadyStopped, Job, JobNotFound, Scheduler, StoreError
from timerqueue import Clock

from ..checks import (
    Holdups,
    PushCheck,
    Resolver,
    Status,
    StepsRun,
    TargetCheck,
    prepared,
)
from ..config import Network, Target
from ..quorum import Poll
from ..relations import Elsewhere, Groups, Parents, SharedGroups
from ..targets import TASK, Board, CheckTask, Gate, Maintenance, Probe, Recall, TargetStatus
from ..text import Redactor
from .jobs import VOTE, add_job, add_vote, grace_of, holds, patience_of

MORE_AT_FIRST: Final = 0.15
"""The share by which there are more checks than ever after while those are made good for that a start found due."""

LONGEST_GAP: Final = 0.1
"""Seconds between two of those, at the most."""

ROUNDING: Final = timedelta(milliseconds=1)
"""By so much a start in a store may differ from the grid that it lies on."""

PATIENCE: Final = 4.0
"""Seconds in which the store says how targets stand that other agents have."""

TOGETHER: Final = 50
"""Targets that are changed before the loop has a turn."""


@frozen
class Ways:
    """How targets are asked: what their checks share."""

    resolver: Resolver
    clock: Clock
    redactor: Redactor
    holdups: Holdups


@frozen
class Changes:
    """The targets that a new configuration has added, removed, and changed, by name."""

    added: tuple[str, ...] = field(default=())
    removed: tuple[str, ...] = field(default=())
    changed: tuple[str, ...] = field(default=())

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


class Roster:
    """The targets that are checked. `is_once`: each is checked one time, whatever its schedule says.

    `statuses`: by name. `listed`: the same in the order of the configuration; the list stays the same object.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        ways: Ways,
        network: Network,
        *,
        is_once: bool = False,
        poll: Poll | None = None,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self.statuses: dict[str, TargetStatus] = {}
        self.listed: list[TargetStatus] = []
        self._scheduler = scheduler
        self._ways = ways
        self._is_once = is_once
        self._targets: dict[str, Target] = {}
        self._checks: dict[str, TargetCheck | StepsRun] = {}
        self._patient: set[str] = set()
        self._here: set[str] = set()
        """Targets of which it is known that no other agent has them. It is found out when they are checked."""
        clean = ways.redactor.clean
        self.board = Board((), clean)
        self.groups: Groups | SharedGroups = (
            Groups(
                self.statuses,
                lambda name: self.recall.has(name),  # noqa: PLW0108 - it is there by the time that somebody asks
                self.board.tell,
            )
            if elsewhere is None
            else SharedGroups(
                scheduler, self.statuses, elsewhere, self.board.tell, is_here=self.is_here, now=ways.clock.wall
            )
        )
        self._elsewhere = elsewhere
        self._parents = Parents(self.statuses, self.groups, self._known)
        self.recall = Recall(
            scheduler,
            self.statuses,
            self.board.remembered,
            ways.clock,
            clean,
            above=self._parents.above if elsewhere is None else _nobody,
            is_new=self._is_new,
            is_ours=self._is_ours,
        )
        self._is_shared = poll is not None
        self._undecided: dict[str, float] = {}
        """When the first check of a target began that waits for those above it."""
        self._longest_doubt = network.longest
        probes = [Probe(each.name, _check_of(each, ways)) for each in network.probes]
        gate = Gate(ways.clock, probes, network.every)
        self.maintenance = Maintenance()
        task = CheckTask(
            self._checks,
            self.statuses,
            self._recall,
            ways.clock,
            gate=gate,
            maintenance=self.maintenance,
            cause=self._parents.cause,
            asks=_nobody if is_once else self._unchecked,
            look=self._look_above,
            poll=poll,
        )
        self._vote = None if poll is None or is_once else task.vote
        scheduler.register(TASK, task.run, without_store=True)

    def begin(self, targets: Iterable[Target]) -> None:
        """Take in the targets that there are at the start. Raises InvalidJob for a schedule that is over."""
        enabled = [target for target in targets if target.is_enabled]
        for target in enabled:
            self._know(target)
        for target in enabled:  # last: what is due before the scheduler has started would start together
            self._add(target)
        self._list(targets)

    async def follow(self, targets: Iterable[Target]) -> Changes:
        """Check these from now on, and no others. The loop has its turns meanwhile.

        What is removed or disabled stops at once, and its history stays. A target with another interval keeps its
        place in it. Raises InvalidJob for a schedule that is over; then nothing has changed that comes after it.
        """
        wanted = {each.name: each for each in targets if each.is_enabled}
        removed = [name for name in self._targets if name not in wanted]
        added = [name for name in wanted if name not in self._targets]
        changed = [name for name, each in wanted.items() if self._targets.get(name, each) != each]
        for number, name in enumerate((*removed, *added, *changed)):
            if name in wanted:
                self._set(wanted[name])
            else:
                self._drop(name)
            if not (number + 1) % TOGETHER:
                await checkpoint()
        self._list(wanted.values())
        return Changes(tuple(added), tuple(removed), tuple(changed))

    def remove_others(self) -> list[str]:
        """Remove jobs that an earlier agent has left behind and whose targets are gone. Their names."""
        gone = [job for job in self._scheduler.jobs() if TASK in job.tags and job.id not in self.statuses]
        for job in gone:
            job.remove()
        return [job.id for job in gone]

    def begin_evenly(self) -> None:
        """Let the checks that fell due while nobody could begin them start one after another, and not all at once.

        Call it once the store has been read. What is no regular start is left as it is: the next attempt above all, on
        which a verdict depends.
        """
        now = self._ways.clock.wall()
        lengths = Counter(map(_interval_of, self._targets.values()))
        before: Counter[float] = Counter()
        for job in self._scheduler.jobs():
            target = self._targets.get(job.id)
            interval = 0.0 if target is None else _interval_of(target)
            if target is not None and interval and job.is_ours and _is_overdue(job, now, grace_of(target)):
                gap = min(interval / (MORE_AT_FIRST * lengths[interval]), LONGEST_GAP)
                with suppress(AlreadyStopped):  # nothing can be shown, so it has stopped at once
                    job.set_next_start(datetime.fromtimestamp(now + before[interval] * gap, UTC))
                before[interval] += 1

    async def _recall(self, name: str) -> None:
        """Find out how a target stood, and anew if another agent has had it meanwhile."""
        if name not in self._here:
            self._here.add(name)
            self._leave(name)
        await self.recall.recall(name)

    def look_around(self) -> None:
        """Forget how those targets stand that other agents have by now, if any share the store."""
        for name in [name for name in self._here if not self._is_ours(name)]:
            self._here.discard(name)
            self._leave(name)

    def _leave(self, name: str) -> None:
        if self._is_shared:
            self.recall.forget(name)
            self.statuses[name].leave()

    def _is_ours(self, name: str) -> bool:
        with suppress(JobNotFound):  # its schedule has ended
            return self._scheduler.get(name).is_ours
        return True

    def let_wait(self, name: str) -> None:
        """Let the checks of a target wait for room, however late they are: it might be left out every time."""
        if name in self.statuses and name not in self._patient:
            self._patient.add(name)
            with suppress(JobNotFound):  # its schedule has ended
                self._scheduler.get(name).update(missed=Missed.LATEST)

    def _set(self, target: Target) -> None:
        """Let a target be checked as the configuration says by now. What is known of it stays."""
        self._add(target)
        self._know(target)

    def _add(self, target: Target) -> None:
        start = None if self._is_once else target.start
        if self._vote is None:  # there are no others
            target = evolve(target, quorum=None)
        add_job(self._scheduler, target, start, self._longest_doubt, is_patient=target.name in self._patient)
        if target.quorum is None:
            self._forget_vote(target.name)
        elif self._vote is not None:
            add_vote(self._scheduler, self._vote, target, self._longest_doubt)

    def _forget_vote(self, name: str) -> None:
        with suppress(JobNotFound):  # it is not voted on
            self._scheduler.remove(VOTE + name)

    def has_instants(self, name: str) -> bool:
        """Whether a target is checked at its own instants only: agents vote on it."""
        status = self.statuses.get(name)
        return status is not None and status.quorum is not None

    def _unchecked(self, name: str, began: float) -> Sequence[str]:
        """The targets above one that have not been checked since its check began. Of those that have their own instants
        the first of its checks that was left undecided counts: nothing else makes them answer, and they may not know.
        """
        status = self.statuses[name]
        if not status.waits:
            return self._parents.unchecked(name, began)
        is_waiting = status.tried > 0 and status.last is not None and bool(status.last.asks)
        since = self._undecided.get(name, began) if is_waiting else began
        self._undecided[name] = since
        silent = [each for each in self._parents.unchecked(name, inf) if self._is_silent(each, since)]
        return silent if is_waiting else tuple(dict.fromkeys((*self._parents.unchecked(name, began), *silent)))

    def _is_silent(self, name: str, since: float) -> bool:
        """Whether agents vote on a target, and have not found out since that instant how it stands."""
        found = self._known(name)
        if found is None or not self.has_instants(name):
            return False
        run, last = found.last_run, found.last
        return run is None or run.started.timestamp() < since or last is None or last.status is Status.UNKNOWN

    def is_here(self, name: str) -> bool:
        """Whether we know how a target stands without asking the store: nobody else has had it since we checked it."""
        return self._elsewhere is None or (name in self._here and self.recall.has(name) and self._is_ours(name))

    def _known(self, name: str) -> TargetStatus | None:
        status = self.statuses.get(name)
        if status is None or self._elsewhere is None or self.is_here(name):
            return status
        return self._elsewhere.of(name)

    async def _look_above(self, name: str) -> str | None:
        """Find out how those above a target stand that other agents have. Why that cannot be known; None: it is."""
        away = [each for each in self._parents.above(name) if not self.is_here(each)]
        if not away or self._elsewhere is None:
            return None
        said = f"no answer within {PATIENCE:g} s"
        with move_on_after(PATIENCE):
            try:
                await self._elsewhere.read(away)
                return None
            except StoreError as exc:
                said = str(exc)
        return f"nobody knows how the targets above it stand: {said}"

    def _know(self, target: Target) -> None:
        status = self.statuses.get(target.name)
        if status is None:
            status = self.statuses[target.name] = TargetStatus(target.name, "", "")
            self.board.targets[target.name] = status
        status.url, status.kind = str(target.check.url), target.kind
        is_push = isinstance(target.check, PushCheck)  # nobody can be asked again
        status.max_attempts, status.is_verified = 1 if is_push else target.max_attempts, not target.is_unverified
        status.grace = grace_of(target)
        status.holds = partial(holds, target, self._longest_doubt)
        status.retry_interval = 0.0 if self._is_once else target.retry_interval
        status.failing_interval = target.failing_interval
        status.need = target.need
        status.quorum = None if self._vote is None else target.quorum
        status.patience = patience_of(target, self._longest_doubt)
        check = _check_of(self._asked(target), self._ways, status.attempts)
        self._checks[target.name] = prepared(evolve(check, before=status.last_detail))
        self._targets[target.name] = target

    def _asked(self, target: Target) -> Target:
        """The target as it is asked: with `is_once` nobody listens to one that reports by itself."""
        if not self._is_once or not isinstance(target.check, PushCheck):
            return target
        return evolve(target, check=evolve(target.check, is_heard=False))

    def _is_new(self, name: str) -> bool:
        """Whether a target's job has not ended a run so far: its history, if there is one, is of a job before it."""
        try:
            found = self._scheduler.get(name).statistics()
        except JobNotFound:  # its schedule has ended
            return False
        return found.runs - found.running <= 0

    def _drop(self, name: str) -> None:
        with suppress(JobNotFound):  # its schedule has ended
            self._scheduler.remove(name)
        self._forget_vote(name)
        self.recall.forget(name)
        self.board.forget(name, self._ways.clock.wall())
        self._patient.discard(name)
        self._here.discard(name)
        for known in (self.statuses, self._checks, self._targets):
            known.pop(name, None)
        self._undecided.pop(name, None)

    def _list(self, targets: Iterable[Target]) -> None:
        self.listed[:] = [self.statuses[each.name] for each in targets if each.is_enabled]
        self._parents.follow({name: each.depends_on for name, each in self._targets.items()})
        for name, each in self._targets.items():
            above = self._parents.above(name) if each.depends_on and self._vote is not None else ()
            self.statuses[name].waits = any(map(self.has_instants, above))
        self.recall.look_again()


def _interval_of(target: Target) -> float:
    """Seconds between checks that are spread by the targets' names. 0: they are not."""
    if (
        not isinstance(target.schedule, Every)
        or target.start not in (None, "phase")
        or isinstance(target.check, PushCheck)
        or target.quorum is not None
    ):
        return 0.0
    return target.schedule.interval.total_seconds()


def _is_overdue(job: Job, now: float, grace: float) -> bool:
    """Whether a regular start of a job has passed so lately that it would be made good for."""
    due = job.next_start
    if due is None or not now - grace <= due.timestamp() <= now:
        return False
    slot = job.schedule.bind(job.id).next(due - ROUNDING)
    return slot is not None and slot <= due + ROUNDING


def _nobody(_name: str, _began: float = 0.0) -> tuple[str, ...]:
    return ()


def _check_of(target: Target, ways: Ways, attempts: Callable[[], int] = lambda: 1) -> TargetCheck:
    return TargetCheck(
        check=target.check,
        needs=target.needs,
        timeout=target.timeout,
        mode=target.mode,
        family=target.family,
        degraded_above=target.degraded_above,
        resolver=ways.resolver,
        clock=ways.clock,
        redactor=ways.redactor,
        needs_at=target.needs_at,
        is_resolved=target.is_resolved,
        holdups=ways.holdups,
        attempts=attempts,
    )

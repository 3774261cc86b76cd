"""Adds and removes targets: status, check and job together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from anyio.lowlevel import checkpoint
from attrs import evolve, field, frozen

from schedule import Every, Missed
from scheduler import AlreadyStopped, Job, JobNotFound, Scheduler
from timerqueue import Clock

from ..acts import ActsOf, no_acts
from ..checks import Holdups, PushCheck, Resolver, StepsRun, TargetCheck, prepared
from ..config import FILE_OWNER, Target
from ..relations import Above
from ..standing import TASK, Board, TargetStatus
from ..text import Redactor
from .jobs import VOTE, Vote, add_job, add_vote, grace_of, holds, patience_of

MORE_AT_FIRST: Final = 0.15
"""Share of additional checks while overdue checks are spread."""

LONGEST_GAP: Final = 0.1
"""Seconds between overdue checks."""

ROUNDING: Final = timedelta(milliseconds=1)
"""Deviation of a stored start from its grid."""

TOGETHER: Final = 50
"""Targets changed in one turn."""


@frozen
class CheckDeps:
    """Parts that the checks of all targets share."""

    resolver: Resolver
    clock: Clock
    redactor: Redactor
    holdups: Holdups


@frozen
class TargetChanges:
    """Names of targets that a configuration changed."""

    added: tuple[str, ...] = field(default=())
    removed: tuple[str, ...] = field(default=())
    changed: tuple[str, ...] = field(default=())

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


class Targets:
    """The checked targets. `is_once`: one check each, whatever the schedule.

    `owner`: the file that names them. `longest_doubt`: the `gate` of `add_job`. `vote`: None without other nodes.
    `listed`: always the same list. `acts_of`: what people did to targets.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        ways: CheckDeps,
        board: Board,
        checks: dict[str, TargetCheck | StepsRun],
        above: Above,
        *,
        longest_doubt: float = 0.0,
        vote: Vote | None = None,
        is_once: bool = False,
        owner: str | None = None,
        acts_of: ActsOf = no_acts,
    ) -> None:
        self.listed: list[TargetStatus] = []
        self._scheduler = scheduler
        self._ways = ways
        self._board = board
        self._statuses = board.targets
        self._checks = checks
        self._above = above
        self._longest_doubt = longest_doubt
        self._vote = vote
        self._is_once = is_once
        self._owner = owner
        self._acts_of = acts_of
        self._targets: dict[str, Target] = {}
        self._patient: set[str] = set()

    def begin(self, targets: Iterable[Target]) -> None:
        """Add the first targets. Raises InvalidJob if a schedule is over."""
        enabled = [target for target in targets if target.is_enabled]
        for target in enabled:
            self._know(target)
        for target in enabled:  # last: jobs due before the scheduler starts would start together
            self._add(target)
        self._list(enabled)

    async def follow(self, targets: Iterable[Target]) -> TargetChanges:
        """Check these targets and no others, with turns for other tasks. History stays.

        Raises InvalidJob if a schedule is over, and then leaves out later changes.
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
        return TargetChanges(tuple(added), tuple(removed), tuple(changed))

    def remove_others(self) -> list[str]:
        """Remove stored jobs without a target. Returns their names. Jobs of other owners stay."""
        jobs = [job for job in self._scheduler.jobs() if TASK in job.tags and job.id not in self._statuses]
        gone = [job for job in jobs if (job.owner or FILE_OWNER).startswith(FILE_OWNER)]
        for job in gone:
            job.remove()
        return [job.id for job in gone]

    def begin_evenly(self) -> None:
        """Spread overdue checks, once the store was read. Other starts stay, as verdicts depend on them."""
        now = self._ways.clock.wall()
        lengths = Counter(map(_interval_of, self._targets.values()))
        before: Counter[float] = Counter()
        for job in self._scheduler.jobs():
            target = self._targets.get(job.id)
            interval = 0.0 if target is None else _interval_of(target)
            if target is not None and interval and job.is_ours and _is_overdue(job, now, grace_of(target)):
                gap = min(interval / (MORE_AT_FIRST * lengths[interval]), LONGEST_GAP)
                with suppress(AlreadyStopped):  # it stopped at once, as nothing can be shown
                    job.set_next_start(datetime.fromtimestamp(now + before[interval] * gap, UTC))
                before[interval] += 1

    def let_wait(self, name: str) -> None:
        """Let late checks wait for room. Otherwise they might never run."""
        if name in self._statuses and name not in self._patient:
            self._patient.add(name)
            with suppress(JobNotFound):  # its schedule has ended
                self._scheduler.get(name).update(missed=Missed.LATEST)

    def _set(self, target: Target) -> None:
        self._add(target)
        self._know(target)

    def _add(self, target: Target) -> None:
        start = None if self._is_once else target.start
        if self._vote is None:  # there are no other nodes
            target = evolve(target, quorum=None)
        is_patient = target.name in self._patient
        add_job(self._scheduler, target, start, self._longest_doubt, is_patient=is_patient, owner=self._owner)
        if target.quorum is None:
            self._forget_vote(target.name)
        elif self._vote is not None:
            add_vote(self._scheduler, self._vote, target, self._longest_doubt)

    def _forget_vote(self, name: str) -> None:
        with suppress(JobNotFound):  # it is not voted on
            self._scheduler.remove(VOTE + name)

    def _know(self, target: Target) -> None:
        status = self._statuses.get(target.name)
        if status is None:
            status = self._statuses[target.name] = TargetStatus(target.name, "", "")
        status.url, status.kind = str(target.check.url), target.kind
        is_push = isinstance(target.check, PushCheck)  # a push target cannot be asked again
        status.max_attempts, status.is_verified = 1 if is_push else target.max_attempts, not target.is_unverified
        status.grace, status.acts = grace_of(target), self._acts_of
        status.holds = partial(holds, target, self._longest_doubt)
        status.retry_interval = 0.0 if self._is_once else target.retry_interval
        status.failing_interval = target.failing_interval
        status.need = target.need
        status.quorum = None if self._vote is None else target.quorum
        status.patience = patience_of(target, self._longest_doubt)
        check = check_of(self._asked(target), self._ways, status.attempts)
        self._checks[target.name] = prepared(evolve(check, before=status.last_detail))
        self._targets[target.name] = target

    def _asked(self, target: Target) -> Target:
        if not self._is_once or not isinstance(target.check, PushCheck):
            return target
        return evolve(target, check=evolve(target.check, is_heard=False))

    def _drop(self, name: str) -> None:
        with suppress(JobNotFound):  # its schedule has ended
            self._scheduler.remove(name)
        self._forget_vote(name)
        self._above.forget(name)
        self._board.forget(name, self._ways.clock.wall())
        self._patient.discard(name)
        del self._checks[name], self._targets[name]

    def _list(self, enabled: Iterable[Target]) -> None:
        self.listed[:] = [self._statuses[each.name] for each in enabled]
        self._above.follow({name: each.depends_on for name, each in self._targets.items()})


def _interval_of(target: Target) -> float:
    """Seconds between checks that are spread by name, else 0."""
    if (
        not isinstance(target.schedule, Every)
        or target.start not in (None, "phase")
        or isinstance(target.check, PushCheck)
        or target.quorum is not None
    ):
        return 0.0
    return target.schedule.interval.total_seconds()


def _is_overdue(job: Job, now: float, grace: float) -> bool:
    due = job.next_start
    if due is None or not now - grace <= due.timestamp() <= now:
        return False
    slot = job.schedule.bind(job.id).next(due - ROUNDING)
    return slot is not None and slot <= due + ROUNDING


def check_of(target: Target, ways: CheckDeps, attempts: Callable[[], int] = lambda: 1) -> TargetCheck:
    """Make a target's check. `attempts`: of its next run."""
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

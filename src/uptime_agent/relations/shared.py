"""Groups whose members are on several nodes of a shared store.

Each group is a job, on the node that also sends its messages:

    a member changes -> its node sets the job's next start, in one commit with the member's report
    the job runs     -> the members' last reports are read
    the run ends     -> the group's state goes into the job, in one commit with the messages

So a crash loses nothing. It also runs hourly, and after moves. On the event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from schedule import Every, Missed
from scheduler import AlreadyStopped, Job, JobNotFound, Outcome, Overlap, Retry, RunEnded, Scheduler

from ..checks import Status
from ..standing import Checked, Closed, GroupRecalled, Incident, News, Opened, Remembered, TargetStatus, is_down
from .elsewhere import Elsewhere, unmarked
from .groups import GroupPlan, GroupState, forget, told_last
from .judging import judged, member_of, state_of, was_down

TASK: Final = "group"
"""Also the tag of its jobs."""

GROUP: Final = "group:"
"""Prefix of job ids."""

LIMIT: Final = "groups"
"""One group is judged at a time, so that checks do not wait."""

REFRESH_S: Final = 3_600.0
PRIORITY: Final = 6
RETRY: Final = Retry.exponential("1s", cap="1m", max_retries=None)


class _Judged(dict[str, Any]):
    """`state` and `before` end with the process."""

    def __init__(self, state: GroupState, before: GroupState) -> None:
        incident = state.incident
        super().__init__(status=(Status.UP if incident is None else Status.DOWN).value, attempt=1)
        if incident is not None:
            self["error"] = incident.error
        self.state, self.before = state, before


class SharedGroups:
    """All groups on a shared store. `is_here`: whether this node knows a target. `now`: UTC seconds."""

    def __init__(
        self,
        scheduler: Scheduler,
        targets: Mapping[str, TargetStatus],
        elsewhere: Elsewhere,
        tell: Callable[[News], None],
        *,
        is_here: Callable[[str], bool],
        now: Callable[[], float],
    ) -> None:
        self._scheduler = scheduler
        self._targets = targets
        self._elsewhere = elsewhere
        self._tell = tell
        self._is_here = is_here
        self._now = now
        self._plans: dict[str, GroupPlan] = {}
        self._of: dict[str, list[str]] = {}
        self._stood: dict[str, bool | None] = {}
        self._ours: set[str] = set()
        self._has_begun = False
        scheduler.register(TASK, self.run)

    def follow(self, plans: Iterable[GroupPlan], now: float) -> None:
        """See `Groups.follow`."""
        before, self._plans = self._plans, {plan.name: plan for plan in plans}
        self._of = {}
        for plan in self._plans.values():
            for member in plan.members:
                self._of.setdefault(member, []).append(plan.name)
        for name, target in self._targets.items():
            target.marks = unmarked if name in self._of else None
        self._stood = {name: stood for name, stood in self._stood.items() if name in self._targets}
        if self._has_begun:
            self._remove([name for name in before if name not in self._plans], now)
            self._add([name for name, plan in self._plans.items() if before.get(name) != plan])

    def begin(self) -> None:
        """Match jobs to groups, once the store was read."""
        self._has_begun = True
        jobs = [job.id.removeprefix(GROUP) for job in self._scheduler.jobs() if TASK in job.tags]
        self._remove([name for name in jobs if name not in self._plans], self._now())
        self._add([name for name in self._plans if name not in jobs])
        self.look_around()

    def look_around(self) -> None:
        """Judge groups that moved here: their last node may have told nothing."""
        jobs = {name: self._job(name) for name in self._plans}
        before, self._ours = self._ours, {name for name, job in jobs.items() if job is not None and job.is_ours}
        for name in self._ours - before:
            self._start(name)

    def tell(self) -> None:
        """See `Groups.tell`."""
        for name in self._ours:
            self._start(name)

    def hear(self, news: News) -> None:
        """Judge the groups of a checked target that changed."""
        if not isinstance(news, (Checked, Remembered)) or news.target.name not in self._of:
            return
        name = news.target.name
        stands = news.target.is_excused if is_down(news.target.state) else None
        before, self._stood[name] = self._stood.get(name), stands
        if isinstance(news, Checked) and stands is not before:
            for group in self._of[name]:
                self._start(group)

    # -- what is asked of groups that others depend on -----------------------------------------------------------------

    def members(self, name: str) -> tuple[str, ...]:
        """See `Groups.members`."""
        plan = self._plans.get(name)
        return () if plan is None else plan.members

    def incident(self, name: str) -> Incident | None:
        """See `Groups.incident`. Any node knows it."""
        job = self._job(name)
        return None if job is None else _state(job, name).incident

    def was_down(self, name: str, began: float) -> bool:
        """See `Groups.was_down`."""
        members = self._standing(name)
        return bool(members) and self._needs(name, members) <= sum(was_down(each, began) for each in members)

    def is_blamed(self, name: str) -> bool:
        """See `Groups.is_blamed`."""
        return not all(each.is_excused for each in self._standing(name) if is_down(each.state))

    def _standing(self, name: str) -> list[TargetStatus]:
        there = [each for each in self.members(name) if each in self._targets]
        return [self._targets[each] if self._is_here(each) else self._elsewhere.of(each) for each in there]

    def _needs(self, name: str, members: list[TargetStatus]) -> int:
        at_least = self._plans[name].at_least
        return len(members) if at_least is None else at_least

    # -- the job of a group --------------------------------------------------------------------------------------------

    async def run(self, name: str, _values: object = None) -> _Judged | None:
        """Judge a group; None if it is gone. Raises StoreError."""
        read: set[str] = set()
        while away := {each for each in self.members(name) if each in self._targets and not self._is_here(each)} - read:
            await self._elsewhere.read(away)
            read |= away
        job = self._job(name)
        if name not in self._plans or job is None:
            return None
        members = [
            self._elsewhere.of(each) if each in read else self._targets[each]
            for each in self.members(name)
            if each in self._targets
        ]
        plan, before = self._plans[name], _state(job, name)
        if before == GroupState():  # an agent that did not share the store may have told it
            before = told_last(plan, {each.name: each.recalled for each in members if each.recalled}, len(members))
        return _Judged(judged(plan, before, list(map(member_of, members)), self._now()), before)

    def listen(self, run: RunEnded) -> None:
        """Store and tell the result of an ended run."""
        result = next((each for each in run.results if isinstance(each, _Judged)), None)
        name = run.job_id.removeprefix(GROUP)
        job = self._job(name)
        if result is None or job is None or run.outcome is not Outcome.SUCCEEDED:
            return
        before, found = result.before, result.state
        if found != _state(job, name):
            job.update(args=(name, found.values()))
        if before.incident is not None and found.incident is None:
            self._tell(Closed(before.incident, found.changed))
        elif before.incident is None and found.incident is not None:
            self._tell(Opened(found.incident))
        else:
            self._tell(GroupRecalled(name, found.incident, found.changed or self._now()))

    def _job(self, name: str) -> Job | None:
        with suppress(JobNotFound):
            return self._scheduler.get(GROUP + name)
        return None

    def _start(self, name: str) -> None:
        job = self._job(name)
        if job is not None:
            with suppress(JobNotFound, AlreadyStopped):
                job.set_next_start(datetime.fromtimestamp(self._now(), UTC))

    def _add(self, names: Iterable[str]) -> None:
        for name in names:
            self._add_job(name)
            self._start(name)

    def _add_job(self, name: str) -> None:
        self._scheduler.add(
            TASK,
            Every(REFRESH_S),
            id=GROUP + name,
            args=(name, {}),
            needs=LIMIT,
            priority=PRIORITY,
            retry=RETRY,
            overlap=Overlap.QUEUE,
            missed=Missed.LATEST,
            delivery="at_least_once",
            place=name,
            tags=(TASK,),
            on_conflict="keep",
        )

    def _remove(self, names: Iterable[str], now: float) -> None:
        for name in names:
            forget(name, self._targets)
            job = self._job(name)
            if job is None:
                continue
            incident = _state(job, name).incident
            job.remove()
            if incident is not None:
                self._tell(Closed(incident, now, is_gone=True))


def _state(job: Job, name: str) -> GroupState:
    values = job.args[1] if len(job.args) > 1 else None
    return state_of(name, values) if isinstance(values, Mapping) else GroupState()

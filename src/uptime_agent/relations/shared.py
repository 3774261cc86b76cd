"""Groups of nodes that share a store, whose members are on several of them.

Each group is a job of its own, at the place of its messages, so one node has both and all know which. A member that
changes its status starts it, in the commit of that member's report:

    a member changes -> its node sets the next start of the group's job, on whatever node that is
    the job runs     -> the last reports of all members are read, those of other nodes from the store
    its end is told  -> the group's state goes into the job, in one commit with the messages about it

So after any crash the next node that has the job starts it, or tries it again. It also runs once an hour, and whenever
it has come to another node. Lives on the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from schedule import Every, Missed
from scheduler import AlreadyStopped, Job, JobNotFound, Outcome, Overlap, Retry, RunEnded, Scheduler

from ..checks import Status
from ..targets import Checked, Closed, GroupRecalled, News, Opened, Remembered, TargetStatus, is_down
from .elsewhere import Elsewhere, unmarked
from .groups import GroupPlan, GroupState, forget, told_last
from .judging import judged, member_of, state_of, was_down

TASK: Final = "group"
"""The name of the task that judges groups, and the tag of its jobs."""

GROUP: Final = "group:"
"""The beginning of the ids of groups' jobs. No target has such a name."""

LIMIT: Final = "groups"
"""The limit of all groups' jobs: one is judged at a time, so that no check waits."""

EVERY: Final = 3_600.0
PRIORITY: Final = 6
RETRY: Final = Retry.exponential("1s", cap="1m", max_retries=None)


class _Judged(dict[str, Any]):
    """The record of a run for history. It also has the group's state now and `before`, which end with the process."""

    def __init__(self, state: GroupState, before: GroupState) -> None:
        incident = state.incident
        super().__init__(status=(Status.UP if incident is None else Status.DOWN).value, attempt=1)
        if incident is not None:
            self["error"] = incident.error
        self.state, self.before = state, before


class SharedGroups:
    """All groups, of which this node judges some. `targets`: the existing ones. `is_here`: whether a target's state is
    known here; otherwise `elsewhere` is asked. `now`: UTC seconds.
    """

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
        """The last state of each member checked here: down, and whether excused. None: not down."""
        self._ours: set[str] = set()
        self._has_begun = False
        scheduler.register(TASK, self.run)

    def follow(self, plans: Iterable[GroupPlan], now: float) -> None:
        """Have these groups. A removed group is no longer down, at `now` in UTC seconds."""
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
        """Take up the existing jobs, after the store was read. Jobs of removed groups go."""
        self._has_begun = True
        jobs = [job.id.removeprefix(GROUP) for job in self._scheduler.jobs() if TASK in job.tags]
        self._remove([name for name in jobs if name not in self._plans], self._now())
        self._add([name for name in self._plans if name not in jobs])
        self.look_around()

    def look_around(self) -> None:
        """Judge the groups that are ours now and were not: their last node may have told nothing."""
        jobs = {name: self._job(name) for name in self._plans}
        before, self._ours = self._ours, {name for name, job in jobs.items() if job is not None and job.is_ours}
        for name in self._ours - before:
            self._start(name)

    def tell(self) -> None:
        """Tell the state of our groups, to listeners that may have missed it."""
        for name in self._ours:
            self._start(name)

    def hear(self, news: News) -> None:
        """Have the groups of a target judged if it has changed. Called with the end of a check."""
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
        """The members of that group; empty: there is no such group."""
        plan = self._plans.get(name)
        return () if plan is None else plan.members

    def was_down(self, name: str, began: float) -> bool:
        """Whether enough members of that group are down, or were when a check began at `began` in UTC seconds."""
        members = self._standing(name)
        return bool(members) and self._needs(name, members) <= sum(was_down(each, began) for each in members)

    def is_blamed(self, name: str) -> bool:
        """Whether that group itself is at fault, not only the parents of its members."""
        return not all(each.is_excused for each in self._standing(name) if is_down(each.state))

    def _standing(self, name: str) -> list[TargetStatus]:
        """The members of a group; other nodes' ones as last read."""
        there = [each for each in self.members(name) if each in self._targets]
        return [self._targets[each] if self._is_here(each) else self._elsewhere.of(each) for each in there]

    def _needs(self, name: str, members: list[TargetStatus]) -> int:
        at_least = self._plans[name].at_least
        return len(members) if at_least is None else at_least

    # -- the job of a group --------------------------------------------------------------------------------------------

    async def run(self, name: str, _values: object = None) -> _Judged | None:
        """Judge that group. None: it no longer exists. Raises StoreError."""
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
        if before == GroupState():  # it may have been told of by an agent that had the store for itself
            before = told_last(plan, {each.name: each.recalled for each in members if each.recalled}, len(members))
        return _Judged(judged(plan, before, list(map(member_of, members)), self._now()), before)

    def listen(self, run: RunEnded) -> None:
        """Take the end of a run, which tells the group's state."""
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
        """Have a group judged now, by the node that has it."""
        job = self._job(name)
        if job is not None:
            with suppress(JobNotFound, AlreadyStopped):
                job.set_next_start(datetime.fromtimestamp(self._now(), UTC))

    def _add(self, names: Iterable[str]) -> None:
        for name in names:
            self._add_job(name)
            self._start(name)

    def _add_job(self, name: str) -> None:
        """Make the job of a group, unless there is one."""
        self._scheduler.add(
            TASK,
            Every(EVERY),
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
    """The last told state of a group, from its job."""
    values = job.args[1] if len(job.args) > 1 else None
    return state_of(name, values) if isinstance(values, Mapping) else GroupState()

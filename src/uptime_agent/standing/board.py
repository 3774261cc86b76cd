"""The board keeps targets' status by the scheduler's events, and tells subscribers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, assert_never

from attrs import evolve, frozen

from scheduler import (
    AgentJoined,
    AgentLost,
    AuditEnded,
    AuditStarted,
    ClockJumped,
    Event,
    JobAdded,
    JobChanged,
    JobFinished,
    JobParked,
    JobRemoved,
    JobState,
    LoopBlocked,
    MissedReason,
    RunAbandoned,
    RunEnded,
    RunMissed,
    RunNotLaunched,
    RunStarted,
    SchedulerStarted,
    SchedulerStopped,
    ScopePaused,
    ScopeResumed,
    ShardsMoved,
    SkewEnded,
    SkewTooLarge,
    StoreDown,
    StoreUp,
)

from ..checks import Status
from .incidents import Closed, Incident, news_of
from .news import Checked, CheckedAgain, ChecksLeftOut, LeftOutBefore, News, NotChecked, Remembered
from .report import Skipped, verdict_of
from .status import TargetStatus

_KEEPS_A_PAUSE: Final = {"updated", "next start set"}


@frozen(kw_only=True)
class Summary:
    """A run of the agent. Seconds."""

    seconds: float
    checks: int
    targets: dict[Status | None, int]
    missed: int
    lateness_max: float
    cut_off: int
    missed_is_exact: bool = True


class Board:
    """All targets' status. On the scheduler's loop. `clean` masks secrets."""

    def __init__(self, targets: Iterable[TargetStatus], clean: Callable[[str], str] = str) -> None:
        self.targets = {target.name: target for target in targets}
        self._clean = clean
        self._subscribers: list[Callable[[News], None]] = []
        self._left_out: Counter[str] = Counter()
        self._left_out_is_exact = True
        self._not_checked: set[str] = set()
        self._in_maintenance: set[str] = set()
        self._began: float | None = None
        self._ended = 0.0
        self._cut_off: tuple[str, ...] = ()

    def subscribe(self, hear: Callable[[News], None]) -> None:
        """Call `hear` with news, on the loop."""
        self._subscribers.append(hear)

    def listen(self, event: Event) -> None:
        """Take an event of the scheduler."""
        match event:
            case RunEnded():
                self._run_ended(event)
            case RunMissed():
                self._run_missed(event)
            case SchedulerStarted():
                self._began = event.at.timestamp()
            case SchedulerStopped():
                self._ended, self._cut_off = event.at.timestamp(), event.cut_off
            case JobChanged():
                self._job_changed(event)
            case RunStarted() | JobAdded() | JobRemoved() | ShardsMoved() | AuditStarted() | AuditEnded():
                pass
            case JobFinished() if event.job_id not in self.targets:
                pass  # a message's job ends once it is sent
            case ClockJumped() | LoopBlocked() | RunAbandoned() | RunNotLaunched() | JobParked() | JobFinished():
                self._tell(event)
            case (
                ScopePaused()
                | ScopeResumed()
                | StoreDown()
                | StoreUp()
                | AgentJoined()
                | AgentLost()
                | SkewTooLarge()
                | SkewEnded()
            ):
                self._tell(event)
            case _:
                assert_never(event)

    def forget(self, name: str, now: float) -> None:
        """Forget a removed target; end its incident at `now` (UTC seconds)."""
        target = self.targets.pop(name, None)
        self._left_out.pop(name, None)
        self._not_checked.discard(name)
        self._in_maintenance.discard(name)
        if target is not None and target.incident is not None:
            self._tell(Closed(target.incident, now, is_gone=True))

    def tell(self, news: News) -> None:
        """Tell news, on the loop."""
        self._tell(news)

    def remembered(self, target: TargetStatus) -> None:
        """Tell a status of an earlier process."""
        self._tell(Remembered(target))

    def tell_downtime(self) -> None:
        """Tell, as one sum, what was due before this process."""
        left_out, self._left_out = self._left_out, Counter()
        if left_out:
            self._tell(LeftOutBefore(left_out.total(), len(left_out), self._left_out_is_exact))

    @property
    def incidents(self) -> list[Incident]:
        """Open incidents of recalled targets."""
        return [target.incident for target in self.targets.values() if target.incident is not None]

    def summary(self) -> Summary:
        """Sum up the ended run."""
        targets = self.targets.values()
        return Summary(
            seconds=0.0 if self._began is None else max(self._ended - self._began, 0.0),
            checks=sum(target.checks_now for target in targets),
            targets=dict(Counter(target.status for target in targets)),
            missed=sum(target.missed for target in targets),
            missed_is_exact=all(target.missed_is_exact for target in targets),
            lateness_max=max((target.lateness_max for target in targets), default=0.0),
            cut_off=len(self._cut_off),
        )

    def _tell(self, news: News) -> None:
        for hear in self._subscribers:
            hear(news)

    def _run_ended(self, run: RunEnded) -> None:
        verdict = verdict_of(run, self._clean)
        target = self.targets.get(run.job_id)
        if target is None:
            return
        if verdict is None:
            self._skipped(run)
            return
        if run.job_id in self._in_maintenance:
            self._in_maintenance.discard(run.job_id)
            self._tell(CheckedAgain(run.job_id))
        before, ended = target.incident, run.ended.timestamp()
        is_change = target.record(verdict, evolve(run, results=()), self._began)
        self._tell(Checked(target, is_change=is_change))
        for news in news_of(before, target.incident, ended, verdict.error):
            self._tell(news)

    def _skipped(self, run: RunEnded) -> None:
        window = next((each.window for each in run.results if isinstance(each, Skipped)), None)
        if window is not None and run.job_id not in self._in_maintenance:
            self._in_maintenance.add(run.job_id)
            self._tell(NotChecked(run.job_id, f"maintenance: {window}"))

    def _job_changed(self, event: JobChanged) -> None:
        """An update leaves a pause as it is."""
        if event.state is JobState.DISABLED:
            if event.reason not in _KEEPS_A_PAUSE:
                self._not_checked.add(event.job_id)
                self._tell(NotChecked(event.job_id, event.reason))
        elif event.job_id in self._not_checked:
            self._not_checked.discard(event.job_id)
            self._tell(CheckedAgain(event.job_id))

    def _run_missed(self, event: RunMissed) -> None:
        target = self.targets.get(event.job_id)
        if target is None:
            return
        if event.reason is MissedReason.LATE and (self._began is None or event.last_due.timestamp() < self._began):
            self._left_out[event.job_id] += event.count
            self._left_out_is_exact &= event.is_exact
            return
        target.missed += event.count
        target.missed_is_exact &= event.is_exact
        if event.reason is not MissedReason.STOPPED:  # checks missed by a stop are counted, not told
            self._tell(ChecksLeftOut(target, event))

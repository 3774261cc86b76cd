"""Hears what the scheduler does, keeps how the targets stand, and has it shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, assert_never

from scheduler import (
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
    StoreDown,
    StoreUp,
)

from ..targets import TargetStatus, verdict_of
from ..text import wording
from .display import Display, NotShown, Summary, View

EVERYTHING: Final = "*"
"""The scope of a pause of all jobs."""

_KEEPS_A_PAUSE: Final = {"updated", "next start set"}
"""In these words the scheduler tells of changes that say nothing about a pause."""


Told = ClockJumped | LoopBlocked | RunAbandoned | RunNotLaunched | JobParked | JobFinished
"""Events that concern the agent itself."""

Outage = ScopePaused | ScopeResumed | StoreDown | StoreUp


class Monitor:
    """A listener. `on_gone` is called once nobody can see the display any more. `clean` masks secrets in notices.

    `trouble`: why what happens can be shown no more; None: it can, or nobody wants to see it.
    """

    def __init__(
        self,
        targets: Iterable[TargetStatus],
        display: Display,
        on_gone: Callable[[], None],
        clean: Callable[[str], str] = str,
    ) -> None:
        self.targets = {target.name: target for target in targets}
        self.trouble: NotShown | None = None
        self._clean = clean
        self._waiting: list[Callable[[Display], None]] | None = None
        self._left_out: Counter[str] = Counter()
        self._left_out_is_exact = True
        self._display: Display | None = display
        self._on_gone = on_gone
        self._began: float | None = None
        self._paused: set[str] = set()
        """Jobs of which it has been told that they are not checked."""
        self._cut_off: tuple[str, ...] = ()
        self._ended = 0.0

    @property
    def refresh_every(self) -> float | None:
        """Seconds between redraws; None: none are wanted."""
        return None if self._display is None else self._display.refresh_every

    def notice(self, text: str) -> None:
        """Show a sentence about the agent itself."""
        self.show(lambda display: display.notice(self._clean(text)))

    def hold(self) -> None:
        """Show nothing before `begin`."""
        self._waiting = []

    def begin(self, view: View) -> None:
        """Show the view, and then what has waited for it."""
        waiting, self._waiting = self._waiting or [], None
        self.show(lambda display: display.started(view))
        for action in waiting:
            self.show(action)

    def remembered(self, target: TargetStatus) -> None:
        """A target stands as it did when an earlier process last checked it."""
        self.show(lambda display: display.remembered(target))

    def tell_downtime(self) -> None:
        """Show how much was left out before this process began, if that is news."""
        left_out, self._left_out = self._left_out, Counter()
        if left_out:
            checks = wording.count(left_out.total(), "check")
            targets = wording.count(len(left_out), "target")
            least = "" if self._left_out_is_exact else "at least "
            self.notice(f"left out while no agent ran: {least}{checks} of {targets}")

    def listen(self, event: Event) -> None:
        """Take an event of the scheduler."""
        match event:
            case RunEnded():
                self._run_ended(event)
            case RunMissed():
                self._run_missed(event)
            case SchedulerStarted():
                self._began = event.at
            case SchedulerStopped():
                self._ended, self._cut_off = event.at, event.cut_off
            case JobChanged():
                self._job_changed(event)
            case RunStarted() | JobAdded() | JobRemoved():
                pass
            case ClockJumped() | LoopBlocked() | RunAbandoned() | RunNotLaunched() | JobParked() | JobFinished():
                self.notice(describe(event))
            case ScopePaused() | ScopeResumed() | StoreDown() | StoreUp():
                self.notice(describe_outage(event))
            case _:
                assert_never(event)

    def show(self, action: Callable[[Display], None]) -> None:
        """Let the display do something, unless it is gone."""
        if self._waiting is not None:
            self._waiting.append(action)
            return
        if self._display is None:
            return
        try:
            action(self._display)
        except OSError as exc:
            self._display = None
            if not isinstance(exc, BrokenPipeError):  # as with `| head`: whoever has read enough leaves
                self.trouble = NotShown((exc.strerror or str(exc)).lower())
            self._on_gone()

    def summary(self) -> Summary:
        """All in all. Call it after the end."""
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

    def _run_ended(self, run: RunEnded) -> None:
        verdict = verdict_of(run, self._clean)
        target = self.targets.get(run.job_id)
        if verdict is None or target is None:
            return
        is_change = target.record(verdict, run, self._began)
        self.show(lambda display: display.checked(target, is_change=is_change))

    def _job_changed(self, event: JobChanged) -> None:
        """Tell that it is checked no more, or again. What is updated while it is paused is paused as before."""
        if event.state is JobState.DISABLED:
            if event.reason not in _KEEPS_A_PAUSE:
                self._paused.add(event.job_id)
                self.notice(f"{event.job_id} is not checked: {event.reason}")
        elif event.job_id in self._paused:
            self._paused.discard(event.job_id)
            self.notice(f"{event.job_id} is checked again")

    def _run_missed(self, event: RunMissed) -> None:
        target = self.targets.get(event.job_id)
        if target is None:
            return
        if event.reason is MissedReason.LATE and (self._began is None or event.last_due < self._began):
            self._left_out[event.job_id] += event.count
            self._left_out_is_exact &= event.is_exact
            return
        target.missed += event.count
        target.missed_is_exact &= event.is_exact
        if event.reason is not MissedReason.STOPPED:  # what an end leaves out is counted, and is no news
            self.show(lambda display: display.missed(target, event))


def describe(event: Told) -> str:
    """A sentence about an event that concerns the agent."""
    match event:
        case ClockJumped():
            way = "forward" if event.seconds > 0 else "back"
            return f"the clock of this machine was set {way} by {wording.latency(abs(event.seconds))}"
        case LoopBlocked():
            culprit = f" by the check {event.job_id}" if event.job_id else ""
            return f"everything stood still for {wording.latency(event.seconds)}{culprit}: this machine is overloaded"
        case RunAbandoned():
            after = wording.latency(event.seconds)
            return f"{event.job_id}: a check went on {after} after it was cancelled, and was given up"
        case RunNotLaunched():
            return f"{event.job_id}: a check could not be launched {wording.count(event.count, 'time')}: {event.error}"
        case JobParked():
            return f"{event.job_id} is not checked: {event.error}"
        case JobFinished():
            return f"{event.job_id}: its schedule has ended"
        case _:
            assert_never(event)


def describe_outage(event: Outage) -> str:
    """A sentence about why nothing, or not everything, is checked, and about the end of that."""
    match event:
        case ScopePaused():
            whom = "everything" if event.scope == EVERYTHING else f"what has the {event.scope.replace(':', ' ')}"
            return f"paused: {whom}: {event.reason}"
        case ScopeResumed():
            return f"no longer paused: {'everything' if event.scope == EVERYTHING else event.scope}"
        case StoreDown(is_taken_over=True):
            return f"stopping, because the store is another agent's now: {event.error}"
        case StoreDown():
            return f"checks wait, because nothing can be stored: {event.error}"
        case StoreUp():
            return f"the store works again, after {wording.span(event.seconds)}: nothing is lost, and checks go on"
        case _:
            assert_never(event)

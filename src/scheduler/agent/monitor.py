"""Hears what the scheduler does, keeps how the targets stand, and has it shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import assert_never

from scheduler import (
    ClockJumped,
    Event,
    JobAdded,
    JobChanged,
    JobFinished,
    JobParked,
    JobRemoved,
    LoopBlocked,
    MissedReason,
    RunAbandoned,
    RunEnded,
    RunMissed,
    RunStarted,
    SchedulerStarted,
    SchedulerStopped,
)

from . import wording
from .display import Display, DisplayGone, Summary
from .status import TargetStatus, verdict_of


class Monitor:
    """A listener. `on_gone` is called once nobody can see the display any more."""

    def __init__(self, targets: Iterable[TargetStatus], display: Display, on_gone: Callable[[], None]) -> None:
        self.targets = {target.name: target for target in targets}
        self._display: Display | None = display
        self._on_gone = on_gone
        self._began: float | None = None
        self._cut_off: tuple[str, ...] = ()
        self._ended = 0.0

    @property
    def refresh_every(self) -> float | None:
        """Seconds between redraws; None: none are wanted."""
        return None if self._display is None else self._display.refresh_every

    def notice(self, text: str) -> None:
        """Show a sentence about the agent itself."""
        self.show(lambda display: display.notice(text))

    def listen(self, event: Event) -> None:
        """Take an event of the scheduler."""
        match event:
            case RunEnded():
                self._run_ended(event)
            case RunMissed():
                target = self.targets[event.job_id]
                target.missed += event.count
                if event.reason is not MissedReason.STOPPED:  # what an end leaves out is counted, and is no news
                    self.show(lambda display: display.missed(target, event))
            case SchedulerStarted():
                self._began = event.at
            case SchedulerStopped():
                self._ended, self._cut_off = event.at, event.cut_off
            case ClockJumped() | LoopBlocked() | RunAbandoned() | JobParked() | JobFinished():
                self.notice(describe(event))
            case RunStarted() | JobAdded() | JobRemoved() | JobChanged():
                pass
            case _:
                assert_never(event)

    def show(self, action: Callable[[Display], None]) -> None:
        """Let the display do something, unless it is gone."""
        if self._display is None:
            return
        try:
            action(self._display)
        except DisplayGone:
            self._display = None
            self._on_gone()

    def summary(self) -> Summary:
        """All in all. Call it after the end."""
        targets = self.targets.values()
        return Summary(
            seconds=0.0 if self._began is None else max(self._ended - self._began, 0.0),
            checks=sum(target.checks for target in targets),
            targets=dict(Counter(target.status for target in targets)),
            missed=sum(target.missed for target in targets),
            lateness_max=max((target.lateness_max for target in targets), default=0.0),
            cut_off=len(self._cut_off),
        )

    def _run_ended(self, run: RunEnded) -> None:
        verdict = verdict_of(run)
        if verdict is None:
            return
        target = self.targets[run.job_id]
        is_change = target.record(verdict, run)
        self.show(lambda display: display.checked(target, is_change=is_change))


def describe(event: ClockJumped | LoopBlocked | RunAbandoned | JobParked | JobFinished) -> str:
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
        case JobParked():
            return f"{event.job_id}: its schedule failed and it is checked no more: {event.error}"
        case JobFinished():
            return f"{event.job_id}: its schedule has ended"
        case _:
            assert_never(event)

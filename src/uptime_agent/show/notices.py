"""Sentences about the agent itself."""

from __future__ import annotations

from typing import Final, assert_never

from scheduler import (
    AgentJoined,
    AgentLost,
    ClockJumped,
    JobFinished,
    JobParked,
    LoopBlocked,
    MissedReason,
    RunAbandoned,
    RunMissed,
    RunNotLaunched,
    ScopePaused,
    ScopeResumed,
    SkewEnded,
    SkewTooLarge,
    StoreDown,
    StoreUp,
)
from scheduler.stores import EVERYTHING

from ..standing import CheckedAgain, Closed, LeftOutBefore, NotChecked, Opened, Outage, Trouble
from ..text import wording

SAID_EVERY: Final = 60.0
"""Seconds between sentences on a late store."""


def describe(news: Trouble) -> str:
    """Describe trouble with time or a check's job."""
    match news:
        case ClockJumped():
            way = "forward" if news.seconds > 0 else "back"
            return f"the clock of this machine was set {way} by {wording.latency(abs(news.seconds))}"
        case LoopBlocked():
            culprit = f" by the check {news.job_id}" if news.job_id else ""
            return f"everything stood still for {wording.latency(news.seconds)}{culprit}: this machine is overloaded"
        case RunAbandoned():
            after = wording.latency(news.seconds)
            return f"{news.job_id}: a check went on {after} after it was cancelled, and was given up"
        case RunNotLaunched():
            return f"{news.job_id}: a check could not be launched {wording.count(news.count, 'time')}: {news.error}"
        case JobParked():
            return f"{news.job_id} is not checked: {news.error}"
        case JobFinished():
            return f"{news.job_id}: its schedule has ended"
        case _:
            assert_never(news)


def describe_outage(news: Outage) -> str:
    """Describe why not everything is checked."""
    match news:
        case ScopePaused():
            whom = "everything" if news.scope == EVERYTHING else f"what has the {news.scope.replace(':', ' ')}"
            return f"paused: {whom}: {news.reason}"
        case ScopeResumed():
            return f"no longer paused: {'everything' if news.scope == EVERYTHING else news.scope}"
        case StoreDown(is_taken_over=True):
            return f"stopping, because the store is another agent's now: {news.error}"
        case StoreDown():
            return f"nothing can be stored: {news.error}"
        case StoreUp():
            return f"the store works again, after {wording.span(news.seconds)}: what was kept is stored"
        case AgentJoined() | AgentLost() | SkewTooLarge() | SkewEnded():
            return _describe_fleet(news)
        case _:
            assert_never(news)


def _describe_fleet(news: AgentJoined | AgentLost | SkewTooLarge | SkewEnded) -> str:
    match news:
        case AgentJoined(is_us=True):
            return f"this agent shares the store, as {news.agent}"
        case AgentJoined():
            return f"{news.agent} has come: it gets a part of the checks"
        case AgentLost(is_us=True):
            return f"other agents have the checks of this one, until it has joined again: {news.reason}"
        case AgentLost():
            return f"{news.agent} is gone ({news.reason}): others have its checks"
        case SkewTooLarge():
            way = "ahead" if news.seconds > 0 else "behind"
            off = f"{wording.latency(abs(news.seconds))} {way}, and may be {wording.latency(news.max_skew)}"
            return f"the clock of this machine is {off}: other agents get its checks until it is right"
        case SkewEnded():
            return "the clock of this machine is right again: this agent gets its part of the checks"
        case _:
            assert_never(news)


def describe_pause(news: NotChecked | CheckedAgain) -> str:
    """Say whether a target is checked."""
    match news:
        case NotChecked(reason=None):
            return f"{news.name} is not checked"
        case NotChecked():
            return f"{news.name} is not checked: {news.reason}"
        case CheckedAgain():
            return f"{news.name} is checked again"
        case _:
            assert_never(news)


def describe_downtime(news: LeftOutBefore) -> str:
    """Describe checks due while no agent ran."""
    checks, targets = wording.count(news.checks, "check"), wording.count(news.targets, "target")
    return f"left out while no agent ran: {'' if news.is_exact else 'at least '}{checks} of {targets}"


def describe_group(news: Opened | Closed) -> str:
    """Say whether a group is down."""
    name = news.incident.target
    if isinstance(news, Opened):
        return f"the group {name} is down: {news.incident.error}"
    after = wording.span(news.ended - news.incident.began)
    if news.is_gone:
        return f"the group {name} is not watched any more, and was down for {after}"
    return f"the group {name} is up again after {after}{'' if news.error is None else f': {news.error}'}"


class LeftOutWords:
    """Words for missed checks."""

    def __init__(self) -> None:
        self._said = -SAID_EVERY
        self._checks = 0
        self._targets: set[str] = set()

    def of(self, name: str, event: RunMissed) -> tuple[str, str] | None:
        """Say which checks were missed, and why. None: said recently of the store."""
        if event.reason is not MissedReason.STORE:
            return wording.printable(name), missed_text(event)
        self._checks += event.count
        self._targets.add(name)
        due = event.last_due.timestamp()
        if due < self._said + SAID_EVERY:
            return None
        what = f"{wording.count(self._checks, 'check')} of {wording.count(len(self._targets), 'target')}"
        self._said, self._checks, self._targets = due, 0, set()
        return what, f"left out: {reason_text(event.reason)}"


def missed_text(event: RunMissed) -> str:
    """Describe missed checks."""
    least = "" if event.is_exact else "at least "
    left_out = f"{least}{wording.count(event.count, 'check')} due from {wording.stamp(event.first_due.timestamp())}"
    return f"{left_out} left out: {reason_text(event.reason)}"


def reason_text(reason: MissedReason) -> str:
    """Say why a check was missed."""
    return "the store did not record their starts in time" if reason is MissedReason.STORE else reason.value

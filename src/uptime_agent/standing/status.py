"""Results become a verdict, verdicts a target's state over time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, assert_never

from attrs import define, evolve, field, frozen

from scheduler import Outcome, RunEnded

from ..acts import ActsOf, no_acts
from ..checks import CheckResult, Detail, Status
from ..quorum import Quorum, decide
from ..text import wording
from ..uptime import Past, past_after
from .flapping import Result, TargetStanding, TargetState, after
from .incidents import FLAPPING, Incident, incident_after

MOST_WAITED: Final = 5
"""Undecided checks that wait for parents."""


@frozen(kw_only=True)
class Verdict:
    """A run's verdict. `latency`: seconds of its slowest address. `attempt`: the last for all addresses.

    `earlier`: attempts in earlier runs. Not `is_final`: the next attempt decides, after the parents in `asks`. `cause`:
    the parent that is down.
    """

    status: Status
    error: str | None = None
    latency: float | None = None
    results: tuple[CheckResult, ...] = ()
    attempt: int = 1
    earlier: int = 0
    is_final: bool = True
    cause: str | None = None
    asks: tuple[str, ...] = ()

    @property
    def is_up(self) -> bool:
        """Whether it answered as expected, even if slowly."""
        return self.status in (Status.UP, Status.DEGRADED)


def verdict_without_results(outcome: Outcome, error: str | None) -> Verdict | None:
    """The verdict of a run without results; None: it says nothing."""
    match outcome:
        case Outcome.SUCCEEDED | Outcome.CANCELLED | Outcome.MISSED | Outcome.CRASHED:
            return None
        case Outcome.TIMED_OUT:
            return Verdict(status=Status.UNKNOWN, error="the check did not end in time and was cut off")
        case Outcome.FAILED:
            return Verdict(status=Status.UNKNOWN, error=f"the check itself failed: {wording.printable(error or '')}")
        case _:
            assert_never(outcome)


def fold(results: Sequence[CheckResult], need: int | None = 1) -> Verdict:
    """Fold results: all up, up; fewer than `need` (None: all), down; else degraded.

    Unknown addresses count only if they could decide: then it is unknown.
    """
    known = [each for each in results if each.status is not Status.UNKNOWN]
    attempt = min((each.attempt for each in known or results), default=1)
    if not known:
        error = next((each.error for each in results), "the check gave no result")
        return Verdict(status=Status.UNKNOWN, error=error, results=tuple(results), attempt=attempt)
    status, lacks = _status(known, len(results), need)
    return Verdict(
        status=status,
        error=_error(results, status) if lacks is None else lacks,
        latency=max((each.latency for each in known if each.latency is not None), default=None),
        results=tuple(results),
        attempt=attempt,
    )


def _status(known: Sequence[CheckResult], addresses: int, need: int | None) -> tuple[Status, str | None]:
    statuses = {each.status for each in known}
    well = sum(each.status is not Status.DOWN for each in known)
    if well == 0 or well >= (len(known) if need is None else need):
        return statuses.pop() if len(statuses) == 1 else Status.DEGRADED, None
    bad = next((f": {each.error}" for each in known if each.status is Status.DOWN), "")
    text = f"{well} of {addresses} addresses up, needs {'all' if need is None else need}{bad}"
    return Status.DOWN if bad or len(known) == addresses else Status.UNKNOWN, text


def counted(votes: Sequence[CheckResult], quorum: Quorum) -> Verdict:
    """The verdict of votes. Nodes' names stand for addresses."""
    status, error = decide(votes, quorum)
    latency = max((each.latency for each in votes if each.latency is not None), default=None)
    return Verdict(status=status, error=error, latency=latency, results=tuple(votes))


def in_doubt(verdict: Verdict, why: str) -> Verdict:
    """The verdict of a run that says nothing."""
    found = verdict.status.value if verdict.error is None else verdict.error
    return evolve(verdict, status=Status.UNKNOWN, error=f"{why}; found: {found}", attempt=1)


def unreachable(verdict: Verdict, cause: str) -> Verdict:
    """The verdict if a parent is down."""
    return evolve(verdict, cause=cause, error=f"unreachable by {cause}: {verdict.error or verdict.status.value}")


def _error(results: Sequence[CheckResult], status: Status) -> str | None:
    if status is Status.UP:
        return None
    bad = [each for each in results if each.status is not Status.UP]
    if len(results) == 1:
        return bad[0].error
    return f"{len(bad)} of {len(results)} addresses: {bad[0].error}"


Marks = Mapping[str, tuple[int, float | None] | None]
"""By a group's short name: outages, and when the present one began. None: unknown."""


@frozen
class Stood:
    """A state after a check that ended `at` (UTC seconds)."""

    at: float
    is_down: bool
    is_excused: bool = False


@frozen
class Marked:
    """A group's `Marks`, by a check that ended `at` (UTC seconds)."""

    at: float
    number: int
    began: float | None


@frozen
class Recalled:
    """A target's past for its groups. `stood`: latest first."""

    stood: tuple[Stood, ...]
    marks: Mapping[str, Marked]

    def without(self, group: str) -> Recalled:
        """Drop a removed group."""
        return evolve(self, marks={key: mark for key, mark in self.marks.items() if key != group})

    def stood_at(self, instant: float) -> Stood:
        """The state then, as far as reports go back."""
        return next((each for each in self.stood if each.at <= instant), self.stood[-1])


@define(eq=False)
class TargetStatus:
    """A target over time. Instants in UTC seconds; `status` is None until the first verdict.

    `missed`, `lateness_max`: of this process. `below`: counts targets that an incident covers. `is_excused`: a parent
    is the cause. `is_verified`: False if its certificate is ignored. `marks`: None if it is in no group. `grace`:
    seconds that a check may be late. `retry_interval`: seconds between attempts; 0: all in one run. `failing_interval`:
    seconds between checks while not well; None: as scheduled. `tried`: attempts since the last final one. `need`:
    addresses that must be up; None: all. `quorum`: how nodes decide; None: one node does. `patience`: seconds after the
    due instant until all have voted. `waits`: for parents with votes. `holds`: seconds for which a check is valid.
    `acts`: what people did to it.
    """

    name: str
    url: str
    kind: str
    max_attempts: int = 1
    state: TargetState | None = None
    incident: Incident | None = None
    below: Callable[[str], int] = lambda _name: 0
    is_excused: bool = False
    status: Status | None = None
    previous: Status | None = None
    since: float | None = None
    last: Verdict | None = None
    last_run: RunEnded | None = None
    counts: Counter[Status] = field(factory=Counter)
    changes: int = 0
    remembered: int = 0
    missed: int = 0
    missed_is_exact: bool = True
    lateness_max: float = 0.0
    is_verified: bool = True
    grace: float = math.inf
    retry_interval: float = 0.0
    failing_interval: float | None = None
    need: int | None = 1
    quorum: Quorum | None = None
    waits: bool = False
    patience: float = math.inf
    tried: int = 0
    past: Past | None = None
    marks: Callable[[str], Marks] | None = None
    recalled: Recalled | None = None
    holds: Callable[[float], float] = lambda _ended: math.inf
    acts: ActsOf = no_acts

    @property
    def checks(self) -> int:
        """Verdicts of all processes."""
        return self.counts.total()

    @property
    def checks_now(self) -> int:
        """Verdicts of this process."""
        return self.checks - self.remembered

    @property
    def is_well(self) -> bool:
        """Whether it is up, as far as known."""
        return self.state is None or self.state.status is TargetStanding.UP

    @property
    def is_flapping(self) -> bool:
        """Whether its incident includes a recovery and another outage."""
        return self.incident is not None and self.incident.status == FLAPPING

    @property
    def state_since(self) -> float | None:
        """When its state began, in UTC seconds."""
        return None if self.state is None else self.state.started_at

    def begin_anew(self) -> None:
        """Reset the status. Counts stay."""
        self.state = self.incident = self.status = self.previous = self.since = self.recalled = None
        self.tried, self.is_excused = 0, False

    def leave(self) -> None:
        """Reset: another node has it."""
        self.begin_anew()
        self.last = self.last_run = self.past = None
        self.counts, self.changes, self.remembered, self.lateness_max = Counter(), 0, 0, 0.0

    def last_detail(self) -> Detail:
        """The last result's detail."""
        return {} if self.last is None or not self.last.results else self.last.results[0].detail

    def attempts(self) -> int:
        """Attempts of the next run."""
        return self.max_attempts if self.is_well and not self.retry_interval and not self.tried else 1

    def as_attempt(self, verdict: Verdict, asks: Sequence[str] = ()) -> Verdict:
        """Number a verdict among attempts in runs of their own.

        If it would be down, one more attempt follows the unchecked parents in `asks`.
        """
        is_down = verdict.status is Status.DOWN
        if verdict.status is Status.UNKNOWN or not (self.tried or self.retry_interval or (asks and is_down)):
            return verdict
        number = self.tried + 1 if self.tried or self.retry_interval else self.max_attempts
        may_go_on = is_down and (self.tried > 0 or self.is_well)
        if may_go_on and number < self.max_attempts:
            return evolve(verdict, attempt=number, earlier=self.tried, is_final=False)
        most = self.max_attempts + (MOST_WAITED if self.waits else 0)
        if may_go_on and self.max_attempts <= number <= most and asks and verdict.cause is None:
            return evolve(verdict, attempt=number, earlier=self.tried, is_final=False, asks=tuple(asks))
        if not (self.tried or self.retry_interval):
            return verdict
        earlier = min(self.tried, self.max_attempts - 1)
        return evolve(verdict, attempt=earlier + 1, earlier=earlier)

    def record(self, verdict: Verdict, run: RunEnded, began: float | None = None) -> bool:
        """Take in a verdict. Returns whether the status changed.

        `began`: when this process began. Lateness counts from then.
        """
        self.last, self.last_run = verdict, run
        self.counts[verdict.status] += 1
        lateness = run.lateness if began is None else min(run.lateness, max(run.started.timestamp() - began, 0.0))
        self.lateness_max = max(self.lateness_max, lateness)
        ended = run.ended.timestamp()
        self._move(verdict, ended)
        stands = verdict.status if verdict.is_final else self.status or Status.UNKNOWN
        self.past = past_after(self.past, stands, ended, self.holds(ended))
        self.previous = self.status
        if verdict.status is self.status or not verdict.is_final:
            return False
        self.changes += self.status is not None
        self.status, self.since = verdict.status, ended
        return True

    def _move(self, verdict: Verdict, now: float) -> None:
        """Attempts before the last were down, or there would be no other."""
        for _ in range(verdict.attempt - verdict.earlier - verdict.is_final):
            self.state = after(self.state, TargetStanding.DOWN, now, name=self.name, is_final=False)
        result = _result_of(verdict.status)
        if result is None:
            return
        self.tried = 0 if verdict.is_final else verdict.attempt
        if not verdict.is_final:
            return
        self.state = after(self.state, result, now, name=self.name)
        self.is_excused = verdict.cause is not None
        before, self.incident = (
            self.incident,
            incident_after(
                self.incident,
                self.state,
                result,
                target=self.name,
                now=now,
                error=verdict.error,
                is_excused=self.is_excused,
            ),
        )
        if self.incident is not None and before is None:  # only once per incident: there may be thousands below
            self.incident = evolve(self.incident, members=self.below(self.name))


def has_instants(targets: Mapping[str, TargetStatus], name: str) -> bool:
    """Whether nodes vote on a target, so that it has its own instants."""
    target = targets.get(name)
    return target is not None and target.quorum is not None


def _result_of(status: Status) -> Result | None:
    match status:
        case Status.UP | Status.DEGRADED:
            return TargetStanding.UP
        case Status.DOWN:
            return TargetStanding.DOWN
        case Status.UNKNOWN:
            return None
        case _:
            assert_never(status)

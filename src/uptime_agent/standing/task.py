"""The task of the agent's jobs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

from attrs import frozen

from scheduler import Subtask, current_run
from timerqueue import Clock

from ..checks import CheckResult, Status, StepsRun, TargetCheck
from ..quorum import Poll
from ..text import wording
from .gate import Gate
from .maintenance import Maintenance
from .report import Report, Skipped, report_of
from .status import TargetStatus, fold, in_doubt

Cause = Callable[[str, float], str | None]
"""Returns the parent that is down, or was since an instant (UTC seconds)."""

Asks = Callable[[str, float], Sequence[str]]
"""Returns the parents not checked since an instant (UTC seconds)."""

Look = Callable[[str], Awaitable[str | None]]
"""Reads parents. Returns why that failed."""

TASK: Final = "check"
"""Also the tag of its jobs."""


@frozen
class _About:
    clock: Clock
    gate: Gate
    maintenance: Maintenance
    cause: Cause
    asks: Asks
    look: Look


async def _see(_name: str) -> None: ...


class CheckTask:
    """Checks a target by name. `recall`: awaited first, for its past. `gate`: None if we are online.

    `look`: awaited before `cause` and `asks`, if the target is down. `maintenance`: a check that ends in a window is
    not counted either. `poll`: None without other nodes.
    """

    def __init__(
        self,
        checks: Mapping[str, TargetCheck | StepsRun],
        targets: Mapping[str, TargetStatus],
        recall: Callable[[str], Awaitable[None]],
        clock: Clock,
        *,
        gate: Gate | None = None,
        maintenance: Maintenance | None = None,
        cause: Cause = lambda _name, _began: None,
        asks: Asks = lambda _name, _began: (),
        look: Look = _see,
        poll: Poll | None = None,
    ) -> None:
        self._checks = checks
        self._targets = targets
        self._recall = recall
        self._poll = poll
        gate = Gate(clock) if gate is None else gate
        self._about = _About(clock, gate, Maintenance() if maintenance is None else maintenance, cause, asks, look)

    async def run(self, name: str) -> Report | Skipped | list[Subtask] | None:
        """Check a target. None: it is gone."""
        check = self._checks.get(name)
        if check is None:
            return None
        target = self._targets[name]
        ending = _Ending(target, self._about)
        await self._recall(name)
        if (skipped := ending.skipped()) is not None:
            return skipped
        if target.quorum is not None and self._poll is not None:
            return await ending.counted(await self._poll.results(name, target.quorum, target.patience))
        return await _checked(check, ending)

    async def vote(self, name: str) -> Report | Skipped | list[Subtask] | None:
        """Check a target and vote, if asked."""
        target = self._targets.get(name)
        if (
            target is None
            or target.quorum is None
            or self._poll is None
            or not self._poll.is_asked(name, target.quorum)
        ):
            return None
        return await _checked(self._checks[name], _Voting(target, self._about, self._poll))


async def _checked(check: TargetCheck | StepsRun, ending: _Reports) -> Report | Skipped | list[Subtask] | None:
    found = await check.run()
    if isinstance(found, CheckResult):
        return await ending.report([found])
    return _Together(ending, len(found)).wrapped(found)


class _Began:
    def __init__(self, target: TargetStatus, about: _About) -> None:
        self._target = target
        self._about = about
        self._began, self._began_at = about.clock.monotonic(), about.clock.wall()
        lateness = self._began_at - current_run().due.timestamp()
        self._late = f"began {wording.latency(lateness)} late" if lateness > target.grace else None

    async def _doubt(self, results: Sequence[CheckResult]) -> str | None:
        """Why results say nothing."""
        if self._late is None and any(each.status is Status.DOWN for each in results):
            return await self._about.gate.why_offline(self._began)
        return self._late


class _Ending(_Began):
    def skipped(self) -> Skipped | None:
        window = self._about.maintenance.window_at(self._target.name, self._about.clock.wall())
        return None if window is None else Skipped(window, self._target)

    async def report(self, results: Sequence[CheckResult]) -> Report | Skipped:
        doubt = await self._doubt(results)
        return self.skipped() or self._report(results, doubt or await self._look(results))

    async def counted(self, votes: Sequence[CheckResult]) -> Report | Skipped:
        """Each voter has said itself whether it was late, or offline."""
        return self.skipped() or self._report(votes, await self._look(votes))

    async def _look(self, results: Sequence[CheckResult]) -> str | None:
        if any(each.status is Status.DOWN for each in results):
            return await self._about.look(self._target.name)
        return None

    def _report(self, results: Sequence[CheckResult], doubt: str | None) -> Report:
        name, began, about = self._target.name, self._began_at, self._about
        now = about.clock.wall()  # a target in maintenance is not checked in any case
        asks = [each for each in about.asks(name, began) if about.maintenance.window_at(each, now) is None]
        return report_of(results, self._target, doubt, about.cause(name, began), asks)


class _Voting(_Began):
    def __init__(self, target: TargetStatus, about: _About, poll: Poll) -> None:
        super().__init__(target, about)
        self._poll = poll

    async def report(self, results: Sequence[CheckResult]) -> None:
        found, doubt = fold(results, self._target.need), await self._doubt(results)
        if doubt is not None:
            found = in_doubt(found, doubt)
        self._poll.cast(self._target.name, CheckResult(status=found.status, latency=found.latency, error=found.error))


class _Reports(Protocol):
    async def report(self, results: Sequence[CheckResult]) -> Report | Skipped | None: ...


class _Together:
    """The last result makes the report."""

    def __init__(self, ending: _Reports, count: int) -> None:
        self._ending = ending
        self._missing = count
        self._results: list[CheckResult] = []

    def wrapped(self, subtasks: Iterable[Subtask]) -> list[Subtask]:
        return [Subtask(self._run, each, needs=dict(each.needs)) for each in subtasks]

    async def _run(self, subtask: Subtask) -> Report | Skipped | list[Subtask] | None:
        found: CheckResult | list[Subtask] = await subtask.func(*subtask.args)
        if not isinstance(found, CheckResult):
            self._missing += len(found) - 1
            return self.wrapped(found)
        self._results.append(found)
        self._missing -= 1
        return None if self._missing else await self._ending.report(self._results)

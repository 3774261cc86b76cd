"""The one task that all jobs of the agent run: check the target of that name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final

from attrs import frozen

from scheduler import Subtask, current_run
from timerqueue import Clock

from ..checks import CheckResult, Status, StepsRun, TargetCheck
from ..text import wording
from .gate import Gate
from .maintenance import Maintenance
from .report import Report, Skipped, report_of
from .status import TargetStatus

Cause = Callable[[str, float], str | None]
"""Which target above the one of that name is down, or was since that instant in UTC seconds."""

Asks = Callable[[str, float], Sequence[str]]
"""Which targets above the one of that name have not been checked since that instant in UTC seconds."""

TASK: Final = "check"
"""The name of the task, and the tag of the agent's jobs."""


@frozen
class _About:
    """Knowledge that the runs of a task share, beside their targets."""

    clock: Clock
    gate: Gate
    maintenance: Maintenance
    cause: Cause
    asks: Asks


class CheckTask:
    """The task: it finds a target's check by its name, and makes a report for history of what that finds.

    `recall`: awaited before a target is checked, so that it is known how it stood. `gate`: None: we are online.
    `cause`, `asks`: answer which targets above one are down, or may be. `maintenance`: None: there is none. What began
    before a window and ends in it is not counted either.
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
    ) -> None:
        self._checks = checks
        self._targets = targets
        self._recall = recall
        gate = Gate(clock) if gate is None else gate
        self._about = _About(clock, gate, Maintenance() if maintenance is None else maintenance, cause, asks)

    async def run(self, name: str) -> Report | Skipped | list[Subtask] | None:
        """Check the target of that name. None: there is no such target any more."""
        check = self._checks.get(name)
        if check is None:
            return None
        ending = _Ending(self._targets[name], self._about)
        await self._recall(name)
        if (skipped := ending.skipped()) is not None:
            return skipped
        found = await check.run()
        if isinstance(found, CheckResult):
            return await ending.report([found])
        together = _Together(ending, len(found))
        return together.wrapped(found)


class _Ending:
    """A run that has begun now, and its report once its results are there."""

    def __init__(self, target: TargetStatus, about: _About) -> None:
        self._target = target
        self._about = about
        self._began, self._began_at = about.clock.monotonic(), about.clock.wall()
        lateness = self._began_at - current_run().due.timestamp()
        self._late = f"began {wording.latency(lateness)} late" if lateness > target.grace else None

    def skipped(self) -> Skipped | None:
        """The record of the run if there is maintenance now. None: there is none."""
        window = self._about.maintenance.window_at(self._target.name, self._about.clock.wall())
        return None if window is None else Skipped(window, self._target)

    async def report(self, results: Sequence[CheckResult]) -> Report | Skipped:
        """Report these results. What began too late, or failed while we are offline, says nothing."""
        if (skipped := self.skipped()) is not None:
            return skipped
        doubt = self._late
        if doubt is None and any(each.status is Status.DOWN for each in results):
            doubt = await self._about.gate.why_offline(self._began)
        name, began, about = self._target.name, self._began_at, self._about
        now = about.clock.wall()  # whoever is in maintenance will not be checked however it is asked
        asks = [each for each in about.asks(name, began) if about.maintenance.window_at(each, now) is None]
        return report_of(results, self._target, doubt, about.cause(name, began), asks)


class _Together:
    """The results of all addresses of a target, wherever they lead. The last one that comes makes the report."""

    def __init__(self, ending: _Ending, count: int) -> None:
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

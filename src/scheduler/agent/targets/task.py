"""The one task that all jobs of the agent run: check the target of that name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from scheduler import Subtask

from ..checks import CheckResult, TargetCheck
from .report import Report, report_of
from .status import TargetStatus

TASK: Final = "check"
"""The name of the task, and the tag of the agent's jobs."""


class CheckTask:
    """The task: it finds a target's check by its name, and makes a report for history of what that finds.

    `recall`: awaited before a target is checked, so that it is known how it stood.
    """

    def __init__(
        self,
        checks: Mapping[str, TargetCheck],
        targets: Mapping[str, TargetStatus],
        recall: Callable[[str], Awaitable[None]],
    ) -> None:
        self._checks = checks
        self._targets = targets
        self._recall = recall

    async def run(self, name: str) -> Report | list[Subtask] | None:
        """Check the target of that name. None: there is no such target any more."""
        check = self._checks.get(name)
        if check is None:
            return None
        await self._recall(name)
        found = await check.run()
        if isinstance(found, CheckResult):
            return report_of([found], self._targets[name])
        together = _Together(self._targets[name], len(found))
        return together.wrapped(found)


class _Together:
    """The results of all addresses of a target, wherever they lead. The last one that comes makes the report."""

    def __init__(self, target: TargetStatus, count: int) -> None:
        self._target = target
        self._missing = count
        self._results: list[CheckResult] = []

    def wrapped(self, subtasks: Iterable[Subtask]) -> list[Subtask]:
        return [Subtask(self._run, each, needs=dict(each.needs)) for each in subtasks]

    async def _run(self, subtask: Subtask) -> Report | list[Subtask] | None:
        found: CheckResult | list[Subtask] = await subtask.func(*subtask.args)
        if not isinstance(found, CheckResult):
            self._missing += len(found) - 1
            return self.wrapped(found)
        self._results.append(found)
        self._missing -= 1
        return None if self._missing else report_of(self._results, self._target)

"""A run of steps: until one fails, and then the steps that always run.

A subtask takes another host's units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from attrs import evolve, field, frozen

from scheduler import Subtask

from ...text import Redactor, wording
from ..contract import Check, CheckFailed, CheckResult, Detail, Status
from ..target_check import Mode, TargetCheck
from .step import Step, StepsCheck

TIMEOUT_OF_ALWAYS: Final = 5.0
"""Seconds, in addition to all other steps' time."""


@frozen(kw_only=True)
class _Progress:
    """`left`: seconds for later steps."""

    left: float
    number: int = 1
    position: int = 0
    elapsed: float = 0.0
    values: Mapping[str, str] = field(factory=dict, repr=False)
    phases: Mapping[str, float] = field(factory=dict)
    detail: Mapping[str, str | int | float] = field(factory=dict)
    address: str | None = None
    worst: CheckResult | None = None

    @property
    def has_failed(self) -> bool:
        return self.worst is not None and self.worst.status is not Status.DEGRADED


@frozen(kw_only=True)
class StepsRun:
    """A target with steps. `around`: how each is asked, with one timeout for all."""

    check: StepsCheck
    around: TargetCheck
    before: Callable[[], Detail] = dict

    async def run(self) -> CheckResult | list[Subtask]:
        """Return the result, or a subtask at some host."""
        return await self._go(_Progress(left=self.around.timeout), None)

    async def _go(self, progress: _Progress, held: str | None) -> CheckResult | list[Subtask]:
        while True:
            step = _next(self.check.steps, progress)
            if step is None:
                result = self._result(progress)
                if result.status is not Status.DOWN or progress.number >= self.around.attempts():
                    return result
                progress = _Progress(left=self.around.timeout, number=progress.number + 1)
                continue
            try:
                check = step.filled(progress.values)
            except CheckFailed as exc:
                progress = _after(progress, step, CheckResult(status=Status.DOWN, error=str(exc), latency=0.0))
                continue
            if check.url.host != held:
                host = check.url.host
                return [Subtask(self._go, progress, host, needs=self.around.needs_at(host))]
            found = await self._asked(step, check, progress).run()
            if not isinstance(found, CheckResult):
                return self._through(found[0], progress, step)
            progress = _after(progress, step, found)

    def _through(self, subtask: Subtask, progress: _Progress, step: Step) -> list[Subtask]:
        return [Subtask(self._redirected, subtask, progress, step, needs=dict(subtask.needs))]

    async def _redirected(self, subtask: Subtask, progress: _Progress, step: Step) -> CheckResult | list[Subtask]:
        found: CheckResult | list[Subtask] = await subtask.func(*subtask.args)
        if not isinstance(found, CheckResult):
            return self._through(found[0], progress, step)
        return await self._go(_after(progress, step, found), None)

    def _asked(self, step: Step, check: Check, progress: _Progress) -> TargetCheck:
        """Masks texts that were handed on."""
        own = math.inf if step.timeout is None else step.timeout
        if step.is_always:
            within = min(self.around.timeout, TIMEOUT_OF_ALWAYS) if step.timeout is None else own
        else:
            within = min(own, max(progress.left, 0.0))
        return evolve(
            self.around,
            check=check,
            needs=self.around.needs_at(check.url.host),
            timeout=within,
            mode=Mode.ANY,
            degraded_above=None,
            redactor=_Also(self.around.redactor, progress.values.values()),
            attempts=lambda: 1,
            is_resolved=True,
            before=dict,
        )

    def _result(self, progress: _Progress) -> CheckResult:
        worst, above = progress.worst, self.around.degraded_above
        status = Status.UP if worst is None else worst.status
        error = None if worst is None else worst.error
        if status is Status.UP and above is not None and progress.elapsed > above:
            status = Status.DEGRADED
            error = f"took {wording.latency(progress.elapsed)}, more than {wording.latency(above)}"
        return CheckResult(
            status=status,
            address=progress.address,
            latency=progress.elapsed,
            phases=progress.phases,
            error=None if error is None else wording.printable(error),
            detail=progress.detail,
            attempt=progress.number,
        )


def prepared(check: TargetCheck) -> TargetCheck | StepsRun:
    """Make a check with steps run step by step."""
    if not isinstance(check.check, StepsCheck):
        return check
    return StepsRun(check=check.check, around=check, before=check.before)


class _Also(Redactor):
    def __init__(self, other: Redactor, secrets: object) -> None:
        super().__init__(secrets)  # type: ignore[arg-type] # texts
        self._other = other

    def clean(self, text: str) -> str:
        return self._other.clean(super().clean(text))


def _next(steps: tuple[Step, ...], progress: _Progress) -> Step | None:
    """A step that always runs is left out if it lacks a text."""
    for step in steps[progress.position :]:
        if not step.is_always and not progress.has_failed:
            return step
        if step.is_always and step.needs <= progress.values.keys():
            return step
    return None


def _after(progress: _Progress, step: Step, found: CheckResult) -> _Progress:
    detail = dict(progress.detail)
    worst = progress.worst
    if found.status is not Status.UP and (worst is None or (not progress.has_failed and _is_worse(found, worst))):
        worst = evolve(found, error=f"step {step.name}: {found.error}")
        detail |= {**found.detail, "step": step.name}
    elif worst is None:
        detail |= found.detail
    return evolve(
        progress,
        left=progress.left if step.is_always else progress.left - (found.latency or 0.0),
        position=step.position + 1,
        elapsed=progress.elapsed + (found.latency or 0.0),
        values={**progress.values, **(found.handed_on or {})},
        phases={**progress.phases, **{f"{step.name} {name}": each for name, each in found.phases.items()}},
        detail=detail,
        address=progress.address or found.address,
        worst=worst,
    )


def _is_worse(found: CheckResult, worst: CheckResult) -> bool:
    return worst.status is Status.DEGRADED and found.status is not Status.DEGRADED

"""What the scheduler runs: one check of a target, at the first address that answers or at each of them."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Final, assert_never

import anyio
from attrs import evolve, frozen

from scheduler import Subtask
from timerqueue import Clock

from . import wording
from .checks import Attempt, Check
from .redact import Redactor
from .resolve import Family, Resolver, Unresolved
from .result import CheckResult, Finding, Status
from .stopwatch import Stopwatch
from .trouble import judge
from .url import is_address

MOST_ADDRESSES: Final = 16
"""Of one name in one run."""


class Mode(enum.Enum):
    """Which addresses of a name are checked."""

    ANY = "any"
    """One: the first that answers."""
    ALL = "all"


@frozen(kw_only=True)
class Probe:
    """Checks one target. Its `run` returns results or raises nothing but defects of checks.

    `timeout`: seconds for the lookup and all addresses together (ANY), or for the lookup and for each address (ALL); of
    each attempt. `attempts`: how many there may be in a run; only what is down is tried again, at once.
    """

    check: Check
    needs: tuple[str, ...]
    timeout: float
    mode: Mode
    family: Family
    degraded_above: float | None
    resolver: Resolver
    clock: Clock
    redactor: Redactor
    attempts: Callable[[], int] = lambda: 1

    async def run(self) -> CheckResult | list[Subtask]:
        """The result of the last attempt, or a subtask for each address."""
        number = 1
        while True:
            found = await self._run_once(number)
            if not isinstance(found, CheckResult):
                return found
            if self._is_final(found, number):
                return evolve(found, attempt=number)
            number += 1

    async def _run_once(self, number: int) -> CheckResult | list[Subtask]:
        watch = Stopwatch(self.clock)
        with anyio.move_on_after(self.timeout) as scope:
            try:
                addresses = await self._addresses(watch)
            except Unresolved as exc:
                return self._result(Finding(status=exc.status, error=str(exc)), watch, None)
        if scope.cancelled_caught:
            late = Finding(status=Status.UNKNOWN, error=f"cannot look up {self.check.url.host} in {self.timeout:g} s")
            return self._result(late, watch, None)
        match self.mode:
            case Mode.ANY:
                return await self._first_that_answers(addresses, watch)
            case Mode.ALL:
                return self._each(addresses, watch, number)
            case _:
                assert_never(self.mode)

    async def attempt(self, address: str, watch: Stopwatch, within: float, connect_within: float) -> CheckResult:
        """Check one address within so many seconds."""
        peer = evolve(self.check.url, host=address, has_default_port=False).authority
        with anyio.move_on_after(within) as scope:
            try:
                finding = await self.check.attempt(Attempt(address, watch, connect_within, self.resolver))
            except Unresolved as exc:
                finding = Finding(status=exc.status, error=str(exc))
            except Exception as exc:
                trouble = judge(exc, peer)
                if trouble is None:
                    raise
                finding = Finding(status=trouble.status, error=trouble.text)
        if scope.cancelled_caught:
            doing = f" ({watch.phase.replace('_', ' ')})" if watch.phase else ""
            finding = Finding(status=Status.DOWN, error=f"no answer from {peer} within {self.timeout:g} s{doing}")
        return self._result(finding, watch, address)

    def _is_final(self, result: CheckResult, number: int) -> bool:
        return result.status is not Status.DOWN or number >= self.attempts()

    async def _addresses(self, watch: Stopwatch) -> list[str]:
        host = self.check.url.host
        if is_address(host):
            return await self.resolver.addresses(host, self.family)
        with watch.measure("dns"):
            return await self.resolver.addresses(host, self.family)

    async def _first_that_answers(self, addresses: list[str], lookup: Stopwatch) -> CheckResult:
        """Connecting to one address may take its share of the time that is left; the last has all of it."""
        end = self.clock.monotonic() + self.timeout - lookup.elapsed
        results: list[CheckResult] = []
        for tried, address in enumerate(addresses[:MOST_ADDRESSES]):
            left = max(end - self.clock.monotonic(), 0.0)
            share = left / (min(len(addresses), MOST_ADDRESSES) - tried)
            result = await self.attempt(address, Stopwatch(self.clock, lookup.phases), left, share)
            results.append(result)
            if result.is_connected:
                return result
        return next((each for each in results if each.status is Status.DOWN), results[-1])

    def _each(self, addresses: list[str], lookup: Stopwatch, number: int) -> list[Subtask]:
        checked = addresses[:MOST_ADDRESSES]
        left_out = len(addresses) - len(checked)
        return [
            Subtask(self._one_of_all, each, dict(lookup.phases), left_out, number, needs=self.needs) for each in checked
        ]

    async def _one_of_all(self, address: str, before: dict[str, float], left_out: int, number: int) -> CheckResult:
        """Attempts go on from the one whose lookup it was."""
        while True:
            result = await self.attempt(address, Stopwatch(self.clock, before), self.timeout, self.timeout)
            if self._is_final(result, number):
                break
            number += 1
        result = evolve(result, attempt=number)
        return evolve(result, detail={**result.detail, "addresses_left_out": left_out}) if left_out else result

    def _result(self, finding: Finding, watch: Stopwatch, address: str | None) -> CheckResult:
        status, error, elapsed = finding.status, finding.error, watch.elapsed
        if status is Status.UP and self.degraded_above is not None and elapsed > self.degraded_above:
            status = Status.DEGRADED
            error = f"took {wording.latency(elapsed)}, more than {wording.latency(self.degraded_above)}"
        return CheckResult(
            status=status,
            address=address,
            latency=elapsed,
            phases=watch.phases,
            error=None if error is None else wording.printable(self.redactor.clean(error)),
            detail=finding.detail,
        )

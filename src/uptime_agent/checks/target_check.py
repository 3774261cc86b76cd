"""One check of a target: at the first address that answers, or each."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Final, assert_never

import anyio
from attrs import Factory, evolve, field, frozen

from scheduler import Subtask
from timerqueue import Clock

from ..text import Redactor, is_address, wording
from .contract import Attempt, Check, CheckResult, Detail, Finding, Hop, Status, Stopwatch, judge
from .holdups import Holdups
from .net import Family, Resolver, Unresolved

MOST_ADDRESSES: Final = 16

TOLERATED: Final = 0.1
"""Share of an answer's time for which we may be held up, and the target is still to blame."""

LEAST_TOLERATED: Final = 0.025
"""Seconds."""


class Mode(enum.Enum):
    """Which addresses of a name are checked."""

    ANY = "any"
    """The first that answers."""
    ALL = "all"


@frozen(kw_only=True)
class _Course:
    """One attempt. `before`: phases of a shared lookup."""

    number: int = 1
    only: str | None = None
    before: Mapping[str, float] = field(factory=dict)
    left_out: int = 0


@frozen
class _Way:
    hop: Hop
    address: str
    phases: Mapping[str, float]
    left: float

    @property
    def host(self) -> str:
        return self.hop.check.url.host


@frozen(kw_only=True)
class _Trouble(Finding): ...


@frozen(kw_only=True)
class TargetCheck:
    """The check of one target.

    - `timeout`: seconds of each attempt, redirects included: for all addresses together (ANY) or for each (ALL), with
      the lookup.
    - `attempts`: the most in a run. Only a target that is down is tried again, at once.
    - `needs_at`: a host's limits. A redirect gives back its units and takes those of the new host.
    - `is_resolved`: the host is looked up. If not, the address is "" and ANY the only mode.
    - `before`: the last result's detail.
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
    needs_at: Callable[[str], tuple[str, ...]] = lambda _: ()
    is_resolved: bool = True
    before: Callable[[], Detail] = dict
    holdups: Holdups = field(default=Factory(lambda self: Holdups(self.clock), takes_self=True))

    async def run(self) -> CheckResult | list[Subtask]:
        """Return the last result, or subtasks: for each address, or at another host.

        Raises only for defects of checks.
        """
        match self.mode:
            case Mode.ANY:
                return await self._drive(_Course())
            case Mode.ALL:
                return await self._each()
            case _:
                assert_never(self.mode)

    async def _drive(self, course: _Course, way: _Way | None = None) -> CheckResult | list[Subtask]:
        with self.holdups.needed():
            held = self._host(way)
            while self._host(way) == held:
                found = await (self._start(course) if way is None else self._follow(way))
                if isinstance(found, _Way):
                    way = found
                elif self._is_final(found, course.number):
                    return self._numbered(found, course)
                else:
                    course, way = evolve(course, number=course.number + 1), None
            needs = self.needs if way is None else self.needs_at(way.host)
            return [Subtask(self._drive, course, way, needs=needs)]

    def _host(self, way: _Way | None) -> str | None:
        if way is not None:
            return way.host
        return self.check.url.host if self.is_resolved else None

    async def _start(self, course: _Course) -> CheckResult | _Way:
        watch = Stopwatch(self.clock, course.before)
        if course.only is not None or not self.is_resolved:
            return await self._first_that_answers(self.check, [course.only or ""], watch, self.timeout)
        addresses = await self._look_up(self.check.url.host, watch, self.timeout)
        if isinstance(addresses, Finding):
            return self._result(addresses, watch, None)
        return await self._first_that_answers(self.check, addresses, watch, self.timeout - watch.elapsed)

    async def _follow(self, way: _Way) -> CheckResult | _Way:
        watch = Stopwatch(self.clock, way.phases)
        began = watch.elapsed
        found = await self._look_up(way.host, watch, way.left)
        permitted = [] if isinstance(found, Finding) else [each for each in found if way.hop.permits(each)]
        if isinstance(found, Finding):
            finding = found
        elif not permitted:
            status = Status.DOWN if way.hop.is_redirect else Status.UNKNOWN
            return self._result(Finding(status=status, error=way.hop.refusal(found[0])), watch, way.address)
        else:
            left = way.left - (watch.elapsed - began)
            return await self._first_that_answers(way.hop.check, permitted, watch, left, way)
        return self._result(_on_the_way(finding, way.hop), watch, way.address)

    async def _each(self) -> CheckResult | list[Subtask]:
        """A failed lookup is tried again like an attempt."""
        number = 1
        while True:
            watch = Stopwatch(self.clock)
            found = await self._look_up(self.check.url.host, watch, self.timeout)
            if not isinstance(found, Finding):
                break
            result = self._result(found, watch, None)
            if self._is_final(result, number):
                return evolve(result, attempt=number)
            number += 1
        course = _Course(number=number, before=watch.phases, left_out=max(len(found) - MOST_ADDRESSES, 0))
        return [Subtask(self._drive, evolve(course, only=each), needs=self.needs) for each in found[:MOST_ADDRESSES]]

    async def _look_up(self, host: str, watch: Stopwatch, within: float) -> list[str] | Finding:
        try:
            if (known := self.resolver.known(host, self.family)) is not None:
                if not is_address(host):
                    watch.note("dns")
                return known
            with anyio.move_on_after(within), watch.measure("dns"):
                try:
                    return await self.resolver.addresses(host, self.family)
                finally:
                    why = self.resolver.why_late(host)
        except Unresolved as exc:
            return _Trouble(status=exc.status, error=str(exc))
        return _Trouble(status=Status.UNKNOWN, error=f"cannot look up {host} in {self.timeout:g} s{why}")

    async def _first_that_answers(
        self, check: Check, addresses: list[str], lookup: Stopwatch, left: float, way: _Way | None = None
    ) -> CheckResult | _Way:
        """Each has its share of the time to connect; the last has all."""
        end = self.clock.monotonic() + left
        results: list[CheckResult] = []
        for tried, address in enumerate(addresses[:MOST_ADDRESSES]):
            left = max(end - self.clock.monotonic(), 0.0)
            share = left / (min(len(addresses), MOST_ADDRESSES) - tried)
            watch = Stopwatch(self.clock, lookup.phases)
            held_up = self.holdups.seconds
            found = await self._attempt(check, address, watch, left, share)
            first = address if way is None else way.address
            if isinstance(found, Hop):
                return _Way(found, first, dict(watch.phases), max(end - self.clock.monotonic(), 0.0))
            found = found if way is None else _on_the_way(found, way.hop)
            results.append(self._result(found, watch, first, self.holdups.seconds - held_up))
            if "connect" in watch.completed:
                break
        is_connected = "connect" in watch.completed
        return (
            results[-1] if is_connected else next((each for each in results if each.status is Status.DOWN), results[-1])
        )

    async def _attempt(
        self, check: Check, address: str, watch: Stopwatch, within: float, connect_within: float
    ) -> Finding | Hop:
        held_up = self.holdups.seconds
        with anyio.move_on_after(within) as scope:
            try:
                is_last = connect_within >= within
                return await check.attempt(Attempt(address, watch, connect_within, is_last, self.before()))
            except Exception as exc:
                trouble = judge(exc, _peer(check, address))
                if trouble is None:
                    raise
                if not trouble.is_late:
                    return _Trouble(status=trouble.status, error=trouble.text)
                text, allowed = trouble.text, connect_within
        if scope.cancelled_caught:
            text, allowed = self._no_answer(_peer(check, address), watch), within
        lost = self.holdups.seconds - held_up
        if watch.doubt is not None:
            return _Trouble(status=Status.UNKNOWN, error=f"{text}, but {watch.doubt}")
        if lost <= max(TOLERATED * allowed, LEAST_TOLERATED):
            return _Trouble(status=Status.DOWN, error=text)
        return _Trouble(status=Status.UNKNOWN, error=f"{text}, but {_held_up(lost)}")

    def _no_answer(self, peer: str, watch: Stopwatch) -> str:
        if "first_byte" in watch.completed:
            return f"the answer of {peer} did not end within {self.timeout:g} s"
        doing = f" ({watch.phase.replace('_', ' ')})" if watch.phase else ""
        said = f"no answer from {peer}" if watch.heard is None else f"{watch.heard} from {peer}"
        return f"{said} within {self.timeout:g} s{doing}"

    def _is_final(self, result: CheckResult, number: int) -> bool:
        return result.status is not Status.DOWN or number >= self.attempts()

    def _numbered(self, result: CheckResult, course: _Course) -> CheckResult:
        if course.left_out:
            result = evolve(result, detail={**result.detail, "addresses_left_out": course.left_out})
        return result if course.number == result.attempt else evolve(result, attempt=course.number)

    def _result(self, finding: Finding, watch: Stopwatch, address: str | None, lost: float = 0.0) -> CheckResult:
        status, error, elapsed = finding.status, finding.error, watch.elapsed
        if status is Status.UP and self.degraded_above is not None and elapsed > self.degraded_above:
            status = Status.DEGRADED
            error = f"took {wording.latency(elapsed)}, more than {wording.latency(self.degraded_above)}"
            if elapsed - lost <= self.degraded_above:
                status, error = Status.UNKNOWN, f"{error}, but {_held_up(lost)}"
        return CheckResult(
            status=status,
            address=address or None,
            latency=elapsed,
            phases=watch.phases,
            error=None if error is None else wording.printable(self.redactor.clean(error)),
            detail=self._cleaned(finding.detail),
            handed_on=finding.handed_on,
        )

    def _cleaned(self, detail: Detail) -> Detail:
        """Targets repeat what they are sent, such as in DNS records."""
        if not any(isinstance(value, str) for value in detail.values()):
            return detail
        clean = self.redactor.clean
        return {name: clean(value) if isinstance(value, str) else value for name, value in detail.items()}


def _peer(check: Check, address: str) -> str:
    return evolve(check.url, host=address, has_default_port=False).authority if address else check.url.authority


def _on_the_way(finding: Finding, hop: Hop) -> Finding:
    """A third party's trouble leaves the target unknown."""
    if hop.is_redirect:
        words = None if finding.error is None else f"redirected to {hop.check.url.authority}: {finding.error}"
        return evolve(finding, error=words)
    if not isinstance(finding, _Trouble):
        return finding
    return evolve(finding, status=Status.UNKNOWN, error=f"cannot ask {hop.check.url.authority}: {finding.error}")


def _held_up(seconds: float) -> str:
    return f"this machine was itself held up for {wording.latency(seconds)} meanwhile"

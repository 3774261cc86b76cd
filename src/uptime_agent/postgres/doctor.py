"""The doctor runs each probe once, and says what it lacks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import anyio
from attrs import frozen

from timerqueue import Clock

from ..checks import Resolver
from .contract import Column, Failure, OutcomeKind, Probe, Scope, Type, Variant
from .databases import Databases
from .reach import Breaker, Connections, Dialler, ProbeRequest, Result, ServerReach
from .target import PostgresTarget

LEAVE_WITHIN: Final = 5.0


@frozen
class Diagnosis:
    """Whether a probe works, and what is missing."""

    probe: str
    is_well: bool
    text: str
    is_on: bool = True

    def __str__(self) -> str:
        return f"{self.probe}: {self.text}{'' if self.is_on else ' (off)'}"


async def examine(target: PostgresTarget, probes: Iterable[Probe], resolver: Resolver, clock: Clock) -> list[Diagnosis]:
    """Run each probe once, on the server or a database."""
    async with anyio.create_task_group() as group:
        connections = Connections(Dialler(target.server, resolver, clock), target.limit, group.start_soon, clock)
        reach = ServerReach(connections, Breaker(), group.start_soon, clock)
        databases = await Databases(target, reach, clock).all()
        first = None if isinstance(databases, Result) or not databases else databases[0]
        found = [await _diagnosis(target, reach, each, first, clock) for each in probes]
        reach.close()
        with anyio.move_on_after(LEAVE_WITHIN):
            while not reach.is_idle:
                await clock.sleep(0.01)
        group.cancel_scope.cancel()
    return found


async def _diagnosis(
    target: PostgresTarget, reach: ServerReach, probe: Probe, database: str | None, clock: Clock
) -> Diagnosis:
    where = database if probe.scope is Scope.DATABASE else None
    result = await _asked(target, reach, probe, where, clock)
    plan = target.plan(probe)
    is_on, every = plan.is_enabled, plan.every
    if result.kind in {OutcomeKind.STORED, OutcomeKind.PARTIAL}:
        off = await _is_off(target, reach, probe, where, clock)
        return Diagnosis(probe.name, not off, _works(result, every) + off, is_on)
    is_for_others = str(result.reason).startswith("role:")
    return Diagnosis(probe.name, is_for_others, _lacks(probe, result), is_on)


def _works(result: Result, every: float) -> str:
    words = [f"works: {len(result.rows):,} rows, {result.cost * 1000:.1f} ms every {every:g} s"]
    words += [result.reason] if result.reason else []
    words += ["unproven: no test of ours has run it on this version"] if result.is_unproven else []
    return "; ".join(words)


def _lacks(probe: Probe, result: Result) -> str:
    words = [f"{result.failure.value}: {result.reason}" if result.failure else str(result.reason)]
    if result.failure is Failure.PERMISSION and probe.grants:
        words.append(f"it needs {probe.grants}")
    if str(result.reason).startswith("missing extension"):
        words.append(f"CREATE EXTENSION {probe.extension}")
    return "; ".join(words)


async def _is_off(target: PostgresTarget, reach: ServerReach, probe: Probe, where: str | None, clock: Clock) -> str:
    if probe.setting is None:
        return ""
    name, _, wanted = probe.setting.partition(" = ")
    sql = f"/* timerqueue:doctor */ SELECT current_setting('{name}', true)"
    asking = Probe(
        name="setting",
        purpose="whether a setting is on",
        scope=probe.scope,
        every=1.0,
        columns=(Column("value", Type.TEXT),),
        variants=(Variant(sql),),
    )
    result = await _asked(target, reach, asking, where, clock)
    value = result.rows[0][0] if result.rows else None
    if value is None or _is_set(str(value), wanted):  # without the right to read it, nothing is known
        return ""
    remedy = f": it needs {probe.setting}" if wanted else ""
    return f"; but {name} is {value or 'empty'}, so there is little to see{remedy}"


def _is_set(value: str, wanted: str) -> bool:
    """`wanted`: words of which the value has one, such as "pl or all". None: it is on."""
    if not wanted:
        return value not in {"off", "none"}
    words = {each.strip(' "').rpartition("/")[2] for each in value.split(",")}
    return not words.isdisjoint(wanted.split(" or "))


async def _asked(target: PostgresTarget, reach: ServerReach, probe: Probe, where: str | None, clock: Clock) -> Result:
    done = anyio.Event()
    now = clock.monotonic()
    request = ProbeRequest(probe, where, now, now + target.wait, lambda _: done.set())
    reach.ask(request)
    await done.wait()
    assert request.result is not None
    return request.result

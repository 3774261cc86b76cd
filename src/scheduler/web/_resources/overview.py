"""All jobs in figures, the limits, and whether the scheduler lives."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from http import HTTPStatus
from itertools import islice
from typing import Any, Final

import anyio
from anyio.lowlevel import checkpoint
from attrs import frozen

from schedule import shown

from ..._fleet import Fleet, Rate, fleet, rate
from ..._jobs import Handle as Job
from ..._running import SchedulerState
from ..._scheduler import Scheduler
from ..._shape import to_json
from ..._values import InvalidJob, JobState
from .._protocol import CODE, JSON, Answer, Ask, Nothing, invalid, unavailable
from .writes import durable, refuse_unless_running

LONGEST_NAME: Final = 200
"""Characters in the name of a limit."""

TURN_WITHIN_S: Final = 5.0
"""Seconds in which a healthy loop makes a turn."""

TROUBLE: Final = 'there is trouble; callers with the scope "operate" see which'

PIECE: Final = 1_000
"""Jobs that are counted between two turns of the event loop."""


@frozen
class NewSizes:
    """Sizes of the limit of all tasks, and of named limits."""

    limit: float | None
    limits: Mapping[str, float | Fleet | Rate]


async def summary(ask: Ask[Nothing, None]) -> Answer:
    """Count all jobs by state and owner, and runs, missed ticks and waiting tasks."""
    states, owners = await _counted(ask.s.jobs())
    found = to_json(ask.s.statistics())
    found.pop("limits")
    if not ask.may("operate"):
        found = _without_troubles(found)
    by_state = {state.value: states[state] for state in JobState if state is not JobState.GONE}
    return Answer(HTTPStatus.OK, {**found, "states": by_state, "owners": dict(sorted(owners.items()))})


def _without_troubles(found: JSON) -> JSON:
    """Tell whether there is trouble, and not which: it has paths and texts of drivers."""
    if isinstance(found, dict):
        return {
            name: TROUBLE if name == "trouble" and value is not None else _without_troubles(value)
            for name, value in found.items()
        }
    return [*map(_without_troubles, found)] if isinstance(found, list) else found


async def _counted(jobs: list[Job]) -> tuple[Counter[JobState], Counter[str]]:
    states: Counter[JobState] = Counter()
    owners: Counter[str] = Counter()
    rest = iter(jobs)
    while piece := list(islice(rest, PIECE)):
        states.update(job.state for job in piece)
        owners.update(job.owner or CODE for job in piece)
        await checkpoint()
    return states, owners


async def get_limits(ask: Ask[Nothing, None]) -> Answer:
    """Return each limit: its size, the units in use, and the tasks that wait. A size of null: no limit."""
    return Answer(HTTPStatus.OK, {"limits": to_json(ask.s.statistics().limits)})


async def patch_limits(ask: Ask[Nothing, NewSizes]) -> Answer:
    """Change sizes of limits, or add limits. Runs go on: a smaller limit drains. A restart forgets it."""
    refuse_unless_running(ask.s)
    try:
        ask.s.resize(ask.body.limit, ask.body.limits or None)
    except InvalidJob as exc:
        named = [f"limits.{name}" for name in ask.body.limits if str(exc).startswith(f"limit {name!r} ")]
        raise invalid(str(exc), [*named, "limit"][0]) from None
    await durable(ask)
    return await get_limits(ask)  # type: ignore[arg-type] # which does not look at the body


def read_sizes(body: JSON) -> NewSizes:
    """Read {"limit": 500, "limits": {"http": 200, "pace": {"units": 10, "window": "1s"}}}. Raises Problem."""
    if not isinstance(body, dict) or not set(body) <= {"limit", "limits"}:
        raise invalid(f'the body must be an object with "limit" and "limits", not {shown(body)}')
    limit, limits = body.get("limit", 0), body.get("limits", {})
    if not isinstance(limits, dict):
        raise invalid(f"limits must be an object from names to sizes, not {shown(limits)}", "limits")
    for name in limits:
        _check_name(name)
    sizes = {name: _size_of(f"limits.{name}", size) for name, size in limits.items()}
    return NewSizes(None if "limit" not in body else _size_of("limit", limit, is_plain=True), sizes)


def _check_name(name: str) -> None:
    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
        detail = f"limits: a limit has a name of 1 to {LONGEST_NAME} printable characters, not {name[:100]!r}"
        raise invalid(detail, "limits")


def _size_of(key: str, size: JSON, *, is_plain: bool = False) -> Any:
    """Read 5, null for no limit, or {"units": 5, "window": "1s", "fleet": true}."""
    if size is None:
        return math.inf
    if not isinstance(size, dict) or is_plain:
        return size
    if not set(size) <= {"units", "window", "fleet"} or "units" not in size:
        such_as = '{"units": 10, "window": "1s", "fleet": true}'
        raise invalid(f"{key} must be a number or an object such as {such_as}, not {shown(size)}", key)
    if not isinstance(size.get("fleet", False), bool):
        raise invalid(f"{key}.fleet must be true or false, not {shown(size['fleet'])}", f"{key}.fleet")
    try:
        found = rate(size["units"], size["window"]) if "window" in size else size["units"]
        return fleet(found) if size.get("fleet") else found
    except InvalidJob as exc:
        raise invalid(f"{key}: {exc}", key) from None


# -- without access ----------------------------------------------------------------------------------------------------


async def healthz(ask: Ask[Nothing, None]) -> Answer:
    """Tell whether the scheduler's event loop turns."""
    await _turn(ask.s)
    return Answer(HTTPStatus.OK, {"status": "ok"})


async def readyz(ask: Ask[Nothing, None]) -> Answer:
    """Tell whether jobs run and the store works."""
    await _turn(ask.s)
    store = ask.s.statistics().store
    if store is not None and store.trouble is not None:
        raise unavailable("the store does not work")
    return Answer(HTTPStatus.OK, {"status": "ok"})


async def _turn(s: Scheduler) -> None:
    if s.state is not SchedulerState.RUNNING:
        raise unavailable(f"this scheduler is {s.state.value}")
    try:
        with anyio.fail_after(TURN_WITHIN_S):
            await s.turn()
    except TimeoutError:
        raise unavailable(f"the event loop of the scheduler has not turned for {TURN_WITHIN_S:g} s") from None


_SIZE: Final[JSON] = {
    "anyOf": [
        {"type": "integer", "minimum": 1},
        {"type": "null", "description": "no limit"},
        {
            "type": "object",
            "properties": {
                "units": {"type": "integer", "minimum": 1},
                "window": {"type": ["number", "string"], "description": "of a rate, such as 1s"},
                "fleet": {"type": "boolean", "description": "for all nodes of a store together"},
            },
            "required": ["units"],
            "additionalProperties": False,
        },
    ]
}
SIZES: Final[JSON] = {
    "type": "object",
    "properties": {
        "limit": {"type": ["integer", "null"], "minimum": 1},
        "limits": {"type": "object", "additionalProperties": _SIZE},
    },
    "additionalProperties": False,
}

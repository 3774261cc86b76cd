"""States: stretches in which a target was up, down, or flapping."""

from __future__ import annotations

import enum
import re
from typing import Final, Literal

from attrs import evolve, frozen

from ..instants import microseconds

THRESHOLD: Final = 3
"""Equal results that end a flapping, or make a state firm."""

_NOT_PLAIN: Final = re.compile(r"[^A-Za-z0-9_]+")


class TargetStanding(enum.Enum):
    """A target's status during a state."""

    UP = "up"
    DOWN = "down"
    FLAPPING = "flapping"
    """Results change before enough agree."""


Result = Literal[TargetStanding.UP, TargetStanding.DOWN]


@frozen(kw_only=True)
class TargetState:
    """One state. `started_at`: UTC seconds. `up`, `down`: attempts. `ends`: the previous state.

    `flap_history`: results that decide a flapping's end.
    """

    id: str
    number: int
    started_at: float
    status: TargetStanding
    up: int = 0
    down: int = 0
    flap_history: tuple[Result, ...] = ()
    ends: TargetState | None = None

    @property
    def checks(self) -> int:
        """Attempts."""
        return self.up + self.down

    def duration(self, now: float) -> float:
        """Seconds so far."""
        return now - self.started_at


def is_down(state: TargetState | None) -> bool:
    """Whether a state is down, not flapping."""
    return state is not None and state.status is TargetStanding.DOWN


def state_id(name: str, started_at: float, number: int) -> str:
    """The id of a target's state."""
    milliseconds = microseconds(started_at) // 1000  # history keeps whole microseconds
    return f"{_NOT_PLAIN.sub('_', name)}-{milliseconds}-{number}"


def after(
    state: TargetState | None,
    status: Result,
    now: float,
    *,
    name: str,
    threshold: int = THRESHOLD,
    is_final: bool = True,
) -> TargetState:
    """The state after a result. Attempts that are not final are only counted.

    With a `threshold` below 2, nothing flaps.
    """
    if state is None:
        return _opened(None, status, now, name)
    if not is_final:
        return _counted(state, status)
    if state.status is TargetStanding.FLAPPING:
        return _flapped(state, status, now, name, max(threshold - 1, 0))
    if status is state.status:
        return _counted(state, status)
    if state.checks < threshold:
        return evolve(_counted(state, status), status=TargetStanding.FLAPPING, flap_history=(status,))
    return _opened(state, status, now, name)


def _flapped(state: TargetState, status: Result, now: float, name: str, before: int) -> TargetState:
    """The last `before` results must agree with the new one to end it."""
    history = (*state.flap_history, status)
    if len(history) > before and set(history[-before - 1 :]) == {status}:
        return _opened(state, status, now, name)
    return evolve(_counted(state, status), flap_history=history[-before:])


def _opened(ended: TargetState | None, status: Result, now: float, name: str) -> TargetState:
    number = 0 if ended is None else ended.number + 1
    opened = TargetState(
        id=state_id(name, now, number),
        number=number,
        started_at=now,
        status=status,
        ends=None if ended is None else evolve(ended, ends=None),
    )
    return _counted(opened, status)


def _counted(state: TargetState, status: Result) -> TargetState:
    is_up = status is TargetStanding.UP
    return evolve(state, up=state.up + is_up, down=state.down + (not is_up))

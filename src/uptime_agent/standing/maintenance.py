"""Maintenance: windows without checks and messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from attrs import define, field, frozen

from schedule import Window

_EVER = datetime.max.replace(tzinfo=UTC)


@frozen
class PlannedMaintenance:
    """A window for some targets."""

    name: str
    window: Window
    targets: frozenset[str]


@define
class _Watched:
    planned: PlannedMaintenance
    is_open: bool = False
    since: datetime = _EVER
    until: datetime = _EVER

    def is_open_at(self, instant: datetime) -> bool:
        if not self.since <= instant < self.until:
            window = self.planned.window
            end = window.end(instant)
            self.since, self.is_open = instant, end is not None
            self.until = end if end is not None else (window.starts.next(instant) or _EVER)
        return self.is_open


@define
class Maintenance:
    """All windows. `by_hand`: who has a target in maintenance at an instant (UTC seconds), and why; or None."""

    planned: tuple[PlannedMaintenance, ...] = field(default=(), converter=tuple)
    by_hand: Callable[[str, float], str | None] = lambda _target, _instant: None
    _of: dict[str, list[_Watched]] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        self.plan(self.planned)

    def plan(self, windows: Iterable[PlannedMaintenance]) -> None:
        """Replace the windows."""
        self.planned = tuple(windows)
        self._of.clear()
        for planned in self.planned:
            watched = _Watched(planned)
            for name in planned.targets:
                self._of.setdefault(name, []).append(watched)

    def window_at(self, target: str, instant: float) -> str | None:
        """Who or which window has a target in maintenance at `instant` (UTC seconds), or None."""
        if (by_hand := self.by_hand(target, instant)) is not None:
            return by_hand
        windows = self._of.get(target)
        if windows is None:
            return None
        at = datetime.fromtimestamp(instant, UTC)
        return next((each.planned.name for each in windows if each.is_open_at(at)), None)

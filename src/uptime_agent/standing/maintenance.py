"""Maintenance: windows without checks and messages."""

from __future__ import annotations

from collections.abc import Iterable
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
    """All windows."""

    planned: tuple[PlannedMaintenance, ...] = field(default=(), converter=tuple)
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
        """The first window open at `instant` (UTC seconds), or None."""
        windows = self._of.get(target)
        if windows is None:
            return None
        at = datetime.fromtimestamp(instant, UTC)
        return next((each.planned.name for each in windows if each.is_open_at(at)), None)

from __future__ import annotations

from datetime import datetime, timedelta

from attrs import field, frozen

from ._common import MICROSECOND, Schedule, duration_text, instant, micros, positive


@frozen
class After(Schedule):
    """One slot, `interval` after the time asked about. A scheduler asks about the end of a run."""

    interval: timedelta = field(converter=positive)

    def __str__(self) -> str:
        return f"@after {duration_text(self.interval)}"

    def next(self, after: datetime) -> datetime | None:
        return instant(micros(after) + self.interval // MICROSECOND)

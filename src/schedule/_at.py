from __future__ import annotations

from datetime import datetime

from attrs import field, frozen

from ._common import Schedule, utc


@frozen
class At(Schedule):
    """One slot, at the instant `when`."""

    when: datetime = field(converter=utc)

    def __str__(self) -> str:
        return f"@at {self.when.isoformat()}"

    def next(self, after: datetime) -> datetime | None:
        return self.when if utc(after) < self.when else None

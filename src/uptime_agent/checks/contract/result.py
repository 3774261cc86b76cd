"""The findings of a check."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from attrs import field, frozen

MOST_ATTEMPTS: Final = 10

Detail = Mapping[str, str | int | float]


class Status(enum.Enum):
    """A target's status."""

    UP = "up"
    DEGRADED = "degraded"
    """It answers slowly, or not at every address."""
    DOWN = "down"
    UNKNOWN = "unknown"
    """The trouble is ours: no network, no file descriptors, a defect."""


@frozen(kw_only=True)
class Finding:
    """An answer, judged. `handed_on`: texts for the next step, never shown."""

    status: Status = Status.UP
    error: str | None = None
    detail: Detail = field(factory=dict)
    handed_on: Mapping[str, str] | None = field(default=None, repr=False)


@frozen(kw_only=True)
class CheckResult:
    """One check of one address. Seconds: `latency`, from the lookup to the end; `phases`, of completed parts.

    `attempt`: from 1; earlier attempts found the target down.
    """

    status: Status
    address: str | None = None
    latency: float | None = None
    phases: Mapping[str, float] = field(factory=dict)
    error: str | None = None
    detail: Detail = field(factory=dict)
    attempt: int = 1
    handed_on: Mapping[str, str] | None = field(default=None, repr=False, eq=False)

    @property
    def is_connected(self) -> bool:
        """Whether the address answered at all."""
        return "connect" in self.phases

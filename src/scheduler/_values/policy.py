from __future__ import annotations

import enum
from typing import Final

from attrs import field, fields, frozen

from schedule import Missed
from timerqueue import Needs

from .._placement import is_part
from .retry import Retry


class Overlap(enum.Enum):
    """The rule for a tick while an earlier run of its job goes on."""

    SKIP = "skip"
    """The tick is missed."""
    QUEUE = "queue"
    """The newest tick waits for the run's end. Earlier waiting ticks are missed."""
    ALLOW = "allow"
    """The tick runs too, up to `max_running` runs at a time."""
    REPLACE = "replace"
    """The run is cancelled, and the tick starts once it has ended."""


class Delivery(enum.Enum):
    """The rule for a tick whose process died during its run."""

    AT_MOST_ONCE = "at_most_once"
    """It is recorded as crashed, and does not run again."""
    AT_LEAST_ONCE = "at_least_once"
    """It is tried again."""


@frozen(kw_only=True, cache_hash=True)  # many jobs have the same one
class Policy:
    """The options of `Scheduler.add`, checked. Durations in seconds."""

    needs: Needs = ()
    priority: float = 0
    timeout: float | None = None
    retry: Retry | None = None
    overlap: Overlap = Overlap.SKIP
    max_running: int = 1
    missed: Missed = Missed.LATEST
    grace: float = 1.0
    """For Missed.SKIP: a tick that cannot begin within it is missed."""
    catch_up: int = 100
    """For Missed.ALL: the most ticks made up for; older ticks are missed."""
    delivery: Delivery = Delivery.AT_MOST_ONCE
    place: str | None = None
    """Jobs of one place share a node of the fleet. None: the job's own place."""
    where: str | None = None
    """Labels that its node must have: "region=eu". None: any node. A part has the text of a part."""
    agents: int | str | None = None
    """How many nodes run the job, or "all": then its parts are jobs, and only they run. None: one node."""
    apart: str | None = None
    """The label in which these nodes should differ. None unless `agents` is a number."""
    owner: str | None = None
    """The file or set that the job came from. None: code."""
    is_part: bool = field(init=False, eq=False, repr=False)

    @is_part.default
    def _is_part(self) -> bool:
        return self.place is not None and is_part(self.where)

    is_plain: bool = field(init=False, eq=False, repr=False)
    """A run begins without checks."""

    @is_plain.default
    def _is_plain(self) -> bool:
        is_alone = self.overlap is not Overlap.ALLOW and self.missed is not Missed.SKIP
        return is_alone and not self.needs and self.timeout is None

    kind: str = field(init=False, eq=False, repr=False)
    """The key by which lateness is summed: a need outside families, else its first family, else "default"."""

    @kind.default
    def _kind(self) -> str:
        names = [name for name, _ in self.needs]
        return next((name for name in names if ":" not in name), names[0].partition(":")[0] if names else "default")

    def key_of(self, id: str) -> str:
        """Return the key that places a job in its interval: a part has the whole job's."""
        return self.place if self.is_part and self.place is not None else id


OPTIONS: Final = tuple(attribute.name for attribute in fields(Policy) if attribute.init)
"""The options of a job, without derived fields."""

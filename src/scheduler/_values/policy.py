"""How a job runs, apart from what and when. Jobs with the same options share one value."""

from __future__ import annotations

import enum
from typing import Final

from attrs import field, fields, frozen

from schedule import Missed
from timerqueue import Needs

from .._placement import is_part
from .retry import Retry


class Overlap(enum.Enum):
    """The rule for a tick that comes while an earlier run of its job has not ended."""

    SKIP = "skip"
    """The tick is missed."""
    QUEUE = "queue"
    """The newest tick waits for the end of the run. Earlier ticks that came meanwhile are missed."""
    ALLOW = "allow"
    """The tick runs next to earlier runs, up to `max_running` at a time."""
    REPLACE = "replace"
    """The run is cancelled, and the tick starts once that run has ended."""


class Delivery(enum.Enum):
    """The rule for a tick whose process died during its run."""

    AT_MOST_ONCE = "at_most_once"
    """The tick is recorded as crashed, and does not run again."""
    AT_LEAST_ONCE = "at_least_once"
    """The tick is tried again."""


@frozen(kw_only=True, cache_hash=True)  # many jobs have the same one
class Policy:
    """The options of `Scheduler.add` in checked form. Durations in seconds."""

    needs: Needs = ()
    priority: float = 0
    timeout: float | None = None
    retry: Retry | None = None
    overlap: Overlap = Overlap.SKIP
    max_running: int = 1
    missed: Missed = Missed.LATEST
    grace: float = 1.0
    """Only for Missed.SKIP: a tick that could not begin within this time is missed."""
    catch_up: int = 100
    """Only for Missed.ALL: the most ticks that may wait to be made up for; older ones are missed."""
    delivery: Delivery = Delivery.AT_MOST_ONCE
    place: str | None = None
    """Jobs of one place are always on one node of a fleet. None: the job is a place of its own."""
    where: str | None = None
    """Labels that the job's node must have, in a fleet: "region=eu". None: any node may run it.

    A part of a job that several nodes run has the text of a part.
    """
    agents: int | str | None = None
    """How many nodes of a fleet run the job, or "all". The job then has parts, which are jobs, and does nothing itself.

    None: it is one job on one node.
    """
    apart: str | None = None
    """The label in which these nodes should differ, as far as there is a choice. None: `agents` is no number."""
    is_part: bool = field(init=False, eq=False, repr=False)
    """The job is a part of the job whose id is `place`."""

    @is_part.default
    def _is_part(self) -> bool:
        return self.place is not None and is_part(self.where)

    is_plain: bool = field(init=False, eq=False, repr=False)
    """A run has nothing to check as it begins: no limit, no timeout, no grace, no other run."""

    @is_plain.default
    def _is_plain(self) -> bool:
        is_alone = self.overlap is not Overlap.ALLOW and self.missed is not Missed.SKIP
        return is_alone and not self.needs and self.timeout is None

    kind: str = field(init=False, eq=False, repr=False)
    """The key by which lateness is summed: a need outside the families, else its first family, else "default"."""

    @kind.default
    def _kind(self) -> str:
        names = [name for name, _ in self.needs]
        return next((name for name in names if ":" not in name), names[0].partition(":")[0] if names else "default")

    def key_of(self, id: str) -> str:
        """Return the key that places a job in its interval. A part has the place of the whole."""
        return self.place if self.is_part and self.place is not None else id


OPTIONS: Final = tuple(attribute.name for attribute in fields(Policy) if attribute.init)
"""The options of a job; fields derived from them are left out."""

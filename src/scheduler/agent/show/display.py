"""What the agent tells, and the seam between it and the ways of showing it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from attrs import frozen

from scheduler import RunMissed, Scheduler

from ..targets import Summary, TargetStatus


@frozen(kw_only=True)
class View:
    """What there is to see while it runs. `now`: UTC seconds since 1970. `store`: where history is kept, if it is."""

    targets: Sequence[TargetStatus]
    scheduler: Scheduler
    now: Callable[[], float]
    store: str | None = None


class Display(Protocol):
    """Shows what happens. Called on the event loop; must not block for long.

    What raises OSError is not called again: nobody reads it any more (BrokenPipeError), or it cannot be written.
    """

    @property
    def refresh_every(self) -> float | None:
        """Seconds between calls of `refresh`. None: it needs none."""

    def started(self, view: View) -> None:
        """The first call."""

    def remembered(self, target: TargetStatus) -> None:
        """A target stands as it did when an earlier process last checked it: `target.last`."""

    def checked(self, target: TargetStatus, *, is_change: bool) -> None:
        """A target has a new verdict, `target.last`."""

    def missed(self, target: TargetStatus, event: RunMissed) -> None:
        """Checks of it did not take place."""

    def notice(self, text: str) -> None:
        """Something that concerns the agent itself."""

    def refresh(self) -> None:
        """Time has passed."""

    def stopped(self, summary: Summary) -> None:
        """The last call."""


class NotShown(Exception):
    """What happened could not be written to the end. The text says why."""

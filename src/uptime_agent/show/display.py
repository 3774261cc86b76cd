"""Displays: the seam between the agent and the ways of showing what it tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from attrs import frozen

from scheduler import RunMissed, Scheduler

from ..targets import Summary, TargetStatus


@frozen(kw_only=True)
class View:
    """All that there is to see. `now`: UTC seconds since 1970. `store`: where history is kept, if it is."""

    targets: Sequence[TargetStatus]
    scheduler: Scheduler
    now: Callable[[], float]
    store: str | None = None


class Display(Protocol):
    """A way of showing what happens. Called on the event loop; must not block for long.

    What raises OSError is not called again: nobody reads it any more (BrokenPipeError), or it cannot be written.
    """

    @property
    def refresh_every(self) -> float | None:
        """Seconds between calls of `refresh`. None: it needs none."""

    def started(self, view: View) -> None:
        """Show the first view: this is the first call."""

    def remembered(self, target: TargetStatus) -> None:
        """Show that a target stands as it did when an earlier process last checked it: `target.last`."""

    def checked(self, target: TargetStatus, *, is_change: bool) -> None:
        """Show a target's new verdict, `target.last`."""

    def missed(self, target: TargetStatus, event: RunMissed) -> None:
        """Show that checks of a target did not take place."""

    def notice(self, text: str) -> None:
        """Show a sentence about the agent itself."""

    def refresh(self) -> None:
        """Show what has changed with time."""

    def stopped(self, summary: Summary) -> None:
        """Show the summary: this is the last call."""


class NotShown(Exception):
    """The output could not be written to the end. The text says why."""

"""Displays: the interface between the agent and the ways of showing its events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from attrs import frozen

from scheduler import RunMissed, Scheduler

from ..targets import Summary, TargetStatus


@frozen(kw_only=True)
class View:
    """Everything to be shown. `now`: UTC seconds since 1970. `store`: the place of history, if any."""

    targets: Sequence[TargetStatus]
    scheduler: Scheduler
    now: Callable[[], float]
    store: str | None = None


class Display(Protocol):
    """A way of showing events. Called on the event loop; must not block for long.

    After an OSError it is not called again: the reader is gone (BrokenPipeError), or it cannot be written.
    """

    @property
    def refresh_every(self) -> float | None:
        """Seconds between calls of `refresh`. None: not needed."""

    def started(self, view: View) -> None:
        """Show the first view: this is the first call."""

    def remembered(self, target: TargetStatus) -> None:
        """Show a target's status as of an earlier process: `target.last`."""

    def checked(self, target: TargetStatus, *, is_change: bool) -> None:
        """Show a target's new verdict, `target.last`."""

    def missed(self, target: TargetStatus, event: RunMissed) -> None:
        """Show that checks of a target were missed."""

    def notice(self, text: str) -> None:
        """Show a sentence about the agent itself."""

    def refresh(self) -> None:
        """Show what has changed with time."""

    def stopped(self, summary: Summary) -> None:
        """Show the summary: this is the last call."""


class NotShown(Exception):
    """The output could not be written to the end. The text says why."""

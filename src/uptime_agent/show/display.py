"""The interface of displays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from attrs import frozen

from scheduler import RunMissed, Scheduler

from ..acts import Acts
from ..standing import Summary, TargetStatus


@frozen(kw_only=True)
class Screen:
    """Everything to be shown. `now`: UTC seconds. `acts`: the verbs of people who watch."""

    targets: Sequence[TargetStatus]
    scheduler: Scheduler
    now: Callable[[], float]
    store: str | None = None
    acts: Acts | None = None


class Display(Protocol):
    """A way to show events, on the event loop. It must not block for long.

    After an OSError it is not called again. BrokenPipeError: the reader has left.
    """

    @property
    def refresh_every(self) -> float | None:
        """Seconds between refreshes, or None."""

    def started(self, view: Screen) -> None:
        """First call: show the view."""

    def remembered(self, target: TargetStatus) -> None:
        """Show `target.last`, of an earlier process."""

    def checked(self, target: TargetStatus, *, is_change: bool) -> None:
        """Show the new verdict, `target.last`."""

    def missed(self, target: TargetStatus, event: RunMissed) -> None:
        """Show missed checks."""

    def notice(self, text: str) -> None:
        """Show a sentence about the agent."""

    def refresh(self) -> None:
        """Show what time has changed."""

    def stopped(self, summary: Summary) -> None:
        """Last call: show the summary."""


class NotShown(Exception):
    """The output failed. The text says why."""

"""Ownership says which stored jobs are ours. Any part that deals with jobs asks it, from any thread.

    Alone           all of them: no other scheduler has the store
    stores.Shares   those of our shards, where several schedulers share the store
    Held            those that have come out of a queue

The part that made the object changes it, on the loop. A job without a row in a store is ours, and this is not asked.
"""

from __future__ import annotations

from typing import Protocol

from ..stores import View


class Ownership(Protocol):
    """The ownership of stored jobs. `place` and `where` are those of the job's policy."""

    @property
    def is_shared(self) -> bool:
        """Whether others have the store too: they add jobs, and continue the jobs that we leave."""

    @property
    def are_asked(self) -> bool:
        """Whether the owners of other jobs may get requests for them."""

    @property
    def know_labels(self) -> bool:
        """Whether the labels that a job asks for decide who has it."""

    @property
    def know_parts(self) -> bool:
        """Whether a job that several nodes run has a part on each."""

    @property
    def view(self) -> View | None:
        """The nodes that share the store, as they were seen last. None: they were not seen."""

    def holds(self, id: str, place: str | None = None, where: str | None = None) -> bool:
        """Return whether the job of that id is ours."""

    def begin(self, id: str, place: str | None = None, where: str | None = None, *, at_once: bool) -> bool:
        """Return whether a job that is added here is ours from now on. `at_once`: it has a start now."""

    def agent_of(self, id: str, place: str | None = None, where: str | None = None) -> str | None:
        """Return the last known owner of the job of that id, by name.

        None: no other could have it, or no node has it.
        """


class Alone:
    """The ownership of a scheduler that shares no store: every job is its own."""

    is_shared = False
    are_asked = False
    know_labels = False
    know_parts = False
    view: View | None = None

    def holds(self, id: str, place: str | None = None, where: str | None = None) -> bool:  # noqa: ARG002 - all are
        """Return True."""
        return True

    def begin(self, id: str, place: str | None = None, where: str | None = None, *, at_once: bool) -> bool:  # noqa: ARG002 - all are
        """Return True."""
        return True

    def agent_of(self, id: str, place: str | None = None, where: str | None = None) -> str | None:  # noqa: ARG002 - there is no other node
        """Return None: no other could have it."""
        return None

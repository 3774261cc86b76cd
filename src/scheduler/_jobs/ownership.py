"""Ownership: which stored jobs are ours. Asked by all who deal with jobs, from any thread, and never None.

    Alone           all of them: nobody else has the store
    stores.Shares   those of our shards, where several schedulers share the store
    Held            those that have come out of a queue

What is ours changes on the loop, by whoever has made the object. A job without a row in a store is ours, and not asked
for here.
"""

from __future__ import annotations

from typing import Protocol

from ..stores import View


class Ownership(Protocol):
    """The ownership of stored jobs. `place` and `where` are those of the job's policy."""

    @property
    def is_shared(self) -> bool:
        """Whether others have the store too: they add jobs, and go on with what we leave."""

    @property
    def are_asked(self) -> bool:
        """Whether those that have the other jobs may be asked for what concerns these."""

    @property
    def know_labels(self) -> bool:
        """Whether the labels that a job asks for decide who has it."""

    @property
    def know_parts(self) -> bool:
        """Whether a job that several run has its parts at each."""

    @property
    def view(self) -> View | None:
        """The nodes that share the store, as they were seen last. None: not at all."""

    def holds(self, id: str, place: str | None = None, where: str | None = None) -> bool:
        """Whether the job of that id is ours."""

    def begin(self, id: str, place: str | None = None, where: str | None = None, *, at_once: bool) -> bool:
        """Whether a job of that id, which is added here, is ours from now on. `at_once`: it has a start now."""

    def agent_of(self, id: str, place: str | None = None, where: str | None = None) -> str | None:
        """The name of whoever has the job of that id, as far as is known; None: no other could have it, or nobody has
        it.
        """


class Alone:
    """The ownership of a scheduler that has its store for itself, or has none: every job is its own."""

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

    def agent_of(self, id: str, place: str | None = None, where: str | None = None) -> str | None:  # noqa: ARG002 - nobody else is there
        """Return None: no other could have it."""
        return None

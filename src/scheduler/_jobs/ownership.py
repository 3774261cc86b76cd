"""Which stored jobs are ours. Ask from any thread; only its maker changes it, on the loop.

- Alone: all, because no other scheduler has the store.
- stores.Shares: the jobs of our shards, where nodes share the store.
- Held: jobs that came out of a queue.
"""

from __future__ import annotations

from typing import Protocol

from ..stores import View


class Ownership(Protocol):
    """Which stored jobs are ours. `place` and `where` are the policy's."""

    @property
    def is_shared(self) -> bool:
        """Whether other nodes add jobs, and continue ours."""

    @property
    def are_asked(self) -> bool:
        """Whether owners of other jobs get requests."""

    @property
    def know_labels(self) -> bool:
        """Whether labels decide which node has a job."""

    @property
    def know_parts(self) -> bool:
        """Whether a job on several nodes has a part on each."""

    @property
    def view(self) -> View | None:
        """The nodes as last seen."""

    def holds(self, id: str, place: str | None = None, where: str | None = None) -> bool: ...

    def begin(self, id: str, place: str | None = None, where: str | None = None, *, at_once: bool) -> bool:
        """Like `holds`, for a new job. `at_once`: it has a start now."""

    def agent_of(self, id: str, place: str | None = None, where: str | None = None) -> str | None:
        """The last known owner's name. None: no other could have it, or no node has it."""


class Alone:
    is_shared = False
    are_asked = False
    know_labels = False
    know_parts = False
    view: View | None = None

    def holds(self, id: str, place: str | None = None, where: str | None = None) -> bool:  # noqa: ARG002 - all are
        return True

    def begin(self, id: str, place: str | None = None, where: str | None = None, *, at_once: bool) -> bool:  # noqa: ARG002 - all are
        return True

    def agent_of(self, id: str, place: str | None = None, where: str | None = None) -> str | None:  # noqa: ARG002 - there is no other node
        return None

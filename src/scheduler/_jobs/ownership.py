"""Which stored jobs are ours: all (Alone), our shards' (stores.OwnedShards), or jobs out of a queue (Claims).

Ask from any thread; only its maker changes it, on the loop.
"""

from __future__ import annotations

from typing import Protocol

from ..stores import View


class Ownership(Protocol):
    """`place` and `where` are the policy's."""

    @property
    def is_shared(self) -> bool:
        """Whether other nodes add jobs, and continue ours."""

    @property
    def are_asked(self) -> bool:
        """Whether owners of other jobs get requests."""

    @property
    def know_labels(self) -> bool: ...

    @property
    def know_parts(self) -> bool:
        """Whether a job on several nodes has a part on each."""

    @property
    def view(self) -> View | None: ...

    def holds(self, id: str, place: str | None = None, where: str | None = None) -> bool: ...

    def begin(self, id: str, place: str | None = None, where: str | None = None, *, at_once: bool) -> bool:
        """Like `holds`, for a new job. `at_once`: it has a start now."""

    def agent_of(self, id: str, place: str | None = None, where: str | None = None) -> str | None:
        """None: no other node could have the job, or none has it."""


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

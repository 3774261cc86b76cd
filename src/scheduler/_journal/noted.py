"""Noted: what is known here better than by who is reading rows of the store just now."""

from __future__ import annotations

from attrs import Factory, define

from ..stores import StoredState


@define(eq=False)
class Noted:
    """Rows that were on their way to the store when the reading began, or that are put or removed here before it ends.

    Some of them may be durable before it ends and not be among what it finds.
    """

    ids: set[str]
    states: dict[str, StoredState]
    """Where those of them stand that are new, and that other agents have, or nobody has yet."""
    scopes: set[str] = Factory(set)
    """Pauses of all jobs, or of a tag, of which the same is true."""

    def put(self, id: str, state: StoredState | None = None) -> None:
        """Know the row better from now on, and where a new job stands."""
        self.ids.add(id)
        if state is not None:
            self.states[id] = state

    def remove(self, id: str) -> None:
        """Know that the job is gone. Another one may take its place."""
        self.ids.add(id)
        self.states.pop(id, None)

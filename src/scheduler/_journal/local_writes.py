"""Notes about rows that change while the store is being read."""

from __future__ import annotations

from attrs import Factory, define

from ..stores import StoredState


@define(eq=False)
class LocalWrites:
    """Rows that were on their way to the store when a reading began, or that change here before it ends.

    Some of them may be durable before it ends, and still be missing in its result.
    """

    ids: set[str]
    states: dict[str, StoredState]
    """The states of new rows that no node has, or another node."""
    scopes: set[str] = Factory(set)
    """Pauses of all jobs, or of a tag, that change in the same way."""

    def put(self, id: str, state: StoredState | None = None) -> None:
        """Note a row that is known better here, and the state of a new job."""
        self.ids.add(id)
        if state is not None:
            self.states[id] = state

    def remove(self, id: str) -> None:
        """Note that the job is gone. Another one may take its place."""
        self.ids.add(id)
        self.states.pop(id, None)

from __future__ import annotations

from attrs import Factory, define

from ..stores import StoredState


@define(eq=False)
class LocalWrites:
    """Rows on their way to the store during a reading.

    Durable ones may still be missing in its result.
    """

    ids: set[str]
    states: dict[str, StoredState]
    scopes: set[str] = Factory(set)

    def put(self, id: str, state: StoredState | None = None) -> None:
        self.ids.add(id)
        if state is not None:
            self.states[id] = state

    def remove(self, id: str) -> None:
        self.ids.add(id)
        self.states.pop(id, None)

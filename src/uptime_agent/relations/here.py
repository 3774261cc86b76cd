"""Targets known without the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..standing import Recall, TargetStatus
from .elsewhere import Elsewhere


class Here:
    """The targets that this node checked last. `elsewhere`: None if the store is not shared."""

    def __init__(
        self,
        targets: Mapping[str, TargetStatus],
        recall: Recall,
        elsewhere: Elsewhere | None = None,
        is_ours: Callable[[str], bool] = lambda _name: True,
    ) -> None:
        self._targets = targets
        self._recall = recall
        self._elsewhere = elsewhere
        self._is_ours = is_ours
        self._here: set[str] = set()

    def is_here(self, name: str) -> bool:
        """Whether no other node had the target since our check."""
        return self._elsewhere is None or (name in self._here and self._recall.has(name) and self._is_ours(name))

    def known(self, name: str) -> TargetStatus | None:
        """Return a target, another node's as last read; None if it does not exist."""
        status = self._targets.get(name)
        if status is None or self._elsewhere is None or self.is_here(name):
            return status
        return self._elsewhere.of(name)

    def arrive(self, name: str) -> None:
        """Before a check: forget what another node may have changed."""
        if self._elsewhere is not None and name not in self._here:
            self._here.add(name)
            self._leave(name)

    def look_around(self) -> None:
        """Forget targets that other nodes have now."""
        for name in [name for name in self._here if not self._is_ours(name)]:
            self._here.discard(name)
            self._leave(name)

    def forget(self, name: str) -> None:
        """Forget a removed target."""
        self._here.discard(name)
        self._recall.forget(name)

    def _leave(self, name: str) -> None:
        self._recall.forget(name)
        self._targets[name].leave()

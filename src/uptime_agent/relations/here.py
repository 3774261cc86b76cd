"""Here: which targets this agent knows by its own checks, and how any target stands, whoever has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..targets import Recall, TargetStatus
from .elsewhere import Elsewhere


class Here:
    """The targets that this agent has checked since any other agent did. `targets`: all, by name.

    `elsewhere`: what other agents know of targets; None: nobody shares the store. `is_ours`: whether no other agent has
    the target of a name.
    """

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
        """Whether we know how a target stands without asking the store: nobody else has had it since we checked it."""
        return self._elsewhere is None or (name in self._here and self._recall.has(name) and self._is_ours(name))

    def known(self, name: str) -> TargetStatus | None:
        """The target of that name; one of another agent as it was read last. None: there is no such target."""
        status = self._targets.get(name)
        if status is None or self._elsewhere is None or self.is_here(name):
            return status
        return self._elsewhere.of(name)

    def arrive(self, name: str) -> None:
        """Forget how a target stood that another agent may have had: call this before each check of it."""
        if self._elsewhere is not None and name not in self._here:
            self._here.add(name)
            self._leave(name)

    def look_around(self) -> None:
        """Forget how those targets stand that other agents have by now."""
        for name in [name for name in self._here if not self._is_ours(name)]:
            self._here.discard(name)
            self._leave(name)

    def forget(self, name: str) -> None:
        """Know nothing of a target that is gone."""
        self._here.discard(name)
        self._recall.forget(name)

    def _leave(self, name: str) -> None:
        self._recall.forget(name)
        self._targets[name].leave()

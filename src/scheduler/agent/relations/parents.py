"""Parents: targets that others can be reached through only. Under one that is down nobody else is to blame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..checks import Status
from ..targets import Standing, TargetStatus


class Parents:
    """The parents of targets, and how they stand. `targets`: all of them by name, as they stand at any time."""

    def __init__(self, targets: Mapping[str, TargetStatus]) -> None:
        self._targets = targets
        self._parents: dict[str, tuple[str, ...]] = {}

    def follow(self, parents: Mapping[str, Sequence[str]]) -> None:
        """Let these be the parents of each target from now on; there is no circle in them."""
        self._parents = {name: tuple(of) for name, of in parents.items() if of}
        children: dict[str, list[str]] = {}
        for name, of in self._parents.items():
            for parent in of:
                children.setdefault(parent, []).append(name)
        for name, target in self._targets.items():
            target.members = len(_reached(name, children))

    def above(self, name: str) -> set[str]:
        """All targets above one, at any depth."""
        return _reached(name, self._parents)

    def cause(self, name: str, began: float) -> str | None:
        """The target above `name` that is down, or was when a check began at `began` in UTC seconds. None: there is
        none. Of a chain that is down it is the topmost.
        """
        found: str | None = None
        parents = self._parents.get(name, ())
        while (down := next((each for each in parents if self._was_down(each, began)), None)) is not None:
            found, parents = down, self._parents.get(down, ())
        return found

    def unchecked(self, name: str, began: float) -> tuple[str, ...]:
        """The parents of a target that have not been checked since an instant, in UTC seconds."""
        found = []
        for parent in self._parents.get(name, ()):
            target = self._targets.get(parent)
            if target is not None and (target.last_run is None or target.last_run.started < began):
                found.append(parent)
        return tuple(found)

    def _was_down(self, name: str, began: float) -> bool:
        target = self._targets.get(name)
        if target is None or target.state is None:
            return False
        state, before = target.state, target.state.ends
        if state.status is Standing.DOWN or (state.status is Standing.FLAPPING and target.status is Status.DOWN):
            return True
        return state.started_at > began and before is not None and before.status is Standing.DOWN


def _reached(name: str, ways: Mapping[str, Iterable[str]]) -> set[str]:
    """All names to which ways lead from one, directly or by others."""
    found: set[str] = set()
    waiting = list(ways.get(name, ()))
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting.extend(ways.get(each, ()))
    return found


def circle(parents: Mapping[str, Sequence[str]]) -> list[str] | None:
    """Some names of which each has the next one for a parent, and the last the first. None: there are none."""
    done: set[str] = set()
    for start in parents:
        path: dict[str, None] = {}
        ways = [iter((start,))]
        while ways:
            name = next(ways[-1], None)
            if name is None:
                ways.pop()
                if path:
                    done.add(path.popitem()[0])
            elif name in path:
                names = list(path)
                return names[names.index(name) :]
            elif name not in done:
                path[name] = None
                ways.append(iter(parents.get(name, ())))
    return None

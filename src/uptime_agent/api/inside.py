"""The agent, as its own routes ask it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from ..acts import Acts
from ..standing import Incident, TargetStatus


@frozen(kw_only=True)
class About:
    """The agent's description of itself. `file`: the name of its configuration."""

    file: str | None
    began: float


@frozen
class Inside:
    """The agent. `targets`: always the same list.

    `group_incident`: the open incident of a group. `is_here`: whether this node has a target.
    """

    about: About
    acts: Acts
    targets: Sequence[TargetStatus]
    group_incident: Callable[[str], Incident | None]
    is_here: Callable[[str], bool]

"""Groups: targets that count as one, down when enough of them are.

A group's outages must survive a restart, so each member's report has marks: the outages before its check. The latest
marks and that check's effect were told last. A process tells nothing before it knows all members' pasts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final
from zlib import crc32

from attrs import define, frozen

from ..checks import Status
from ..standing import (
    Checked,
    Closed,
    GroupRecalled,
    Incident,
    Marks,
    News,
    Opened,
    Recalled,
    Remembered,
    TargetStatus,
    is_down,
    state_id,
)

_MOST_NAMED: Final = 5


@frozen
class GroupPlan:
    """A configured group. `at_least`: members that make it down. None: all members, all channels."""

    name: str
    members: tuple[str, ...]
    at_least: int | None = None
    notify: tuple[str, ...] | None = None


@frozen
class GroupState:
    """The last told state. `number`: outages. `changed`: UTC seconds of the last change."""

    number: int = 0
    changed: float = 0.0
    incident: Incident | None = None

    def values(self) -> dict[str, Any]:
        """The state as JSON."""
        found: dict[str, Any] = {"number": self.number, "changed": self.changed}
        if self.incident is not None:
            found["incident"] = {"error": self.incident.error, "members": self.incident.members}
        return found


@define(eq=False)
class _Group:
    """A group's present state. `asked`: members whose past is known.

    `down`: members down, of `size`, and whether excused; None: not yet counted.
    """

    plan: GroupPlan
    number: int = 0
    incident: Incident | None = None
    changed: float = 0.0
    is_settled: bool = False
    asked: int = 0
    down: dict[str, bool] | None = None
    size: int = 0

    @property
    def key(self) -> str:
        return key_of(self.plan.name)


class Groups:
    """All groups of a store that is not shared."""

    def __init__(
        self,
        targets: Mapping[str, TargetStatus],
        is_recalled: Callable[[str], bool],
        tell: Callable[[News], None],
    ) -> None:
        self._targets = targets
        self._is_recalled = is_recalled
        self._tell = tell
        self._groups: dict[str, _Group] = {}
        self._of: dict[str, list[_Group]] = {}

    def follow(self, plans: Iterable[GroupPlan], now: float) -> None:
        """Replace the groups. `now` (UTC seconds) ends incidents of removed groups."""
        wanted = {plan.name: plan for plan in plans}
        for name in self._groups.keys() - wanted.keys():
            group = self._groups.pop(name)
            forget(name, self._targets)
            if group.incident is not None:
                self._tell(Closed(group.incident, now, is_gone=True))
        self._of.clear()
        for name, plan in wanted.items():
            group = self._groups.setdefault(name, _Group(plan))
            group.plan, group.down, group.asked = plan, None, 0
            for member in plan.members:
                self._of.setdefault(member, []).append(group)
        for name, target in self._targets.items():
            target.marks = self.marks if name in self._of else None

    def tell(self) -> None:
        """Repeat known states, for listeners that missed them."""
        for group in self._groups.values():
            if group.is_settled:
                self._tell(GroupRecalled(group.plan.name, group.incident, group.changed))

    def members(self, name: str) -> tuple[str, ...]:
        """Return a group's members; empty if it does not exist."""
        group = self._groups.get(name)
        return () if group is None else group.plan.members

    def incident(self, name: str) -> Incident | None:
        """Return the open incident of a group."""
        group = self._groups.get(name)
        return None if group is None else group.incident

    def was_down(self, name: str, began: float) -> bool:
        """Whether a group is down, or was at `began` (UTC seconds). Unreachable members count as down."""
        group = self._groups.get(name)
        if group is None:
            return False
        was_down = group.incident is None and group.number > 0 and group.changed > began
        return group.incident is not None or was_down or self._is_down(group)

    def is_blamed(self, name: str) -> bool:
        """Whether a group is at fault, not only its members' parents."""
        group = self._groups.get(name)
        return group is not None and not all(self._counted(group).values())

    def marks(self, target: str) -> Marks:
        """The marks for a target's report."""
        return {
            group.key: (group.number, None if group.incident is None else group.incident.began)
            if self._is_settled(group)
            else None
            for group in self._of.get(target, ())
        }

    def hear(self, news: News) -> None:
        """Update the groups of a checked target."""
        if isinstance(news, (Checked, Remembered)) and news.target.last_run is not None:
            for group in self._of.get(news.target.name, ()):
                if isinstance(news, Remembered):
                    group.down = None
                if self._is_settled(group) and isinstance(news, Checked) and self._has_changed(group, news.target):
                    self._see(group, news.target.last_run.ended.timestamp())

    def _has_changed(self, group: _Group, target: TargetStatus) -> bool:
        stands = target.is_excused if is_down(target.state) else None
        if group.down is not None and group.down.get(target.name) is stands:
            return False
        down = self._counted(group)
        down.pop(target.name, None)
        if stands is not None:
            down[target.name] = stands
        return True

    def _counted(self, group: _Group) -> dict[str, bool]:
        if group.down is None:
            standing = self._standing(group)
            group.size = len(standing)
            group.down = {each.name: each.is_excused for each in standing if is_down(each.state)}
        return group.down

    def _see(self, group: _Group, now: float) -> None:
        down = self._counted(group)
        if group.incident is None and self._is_down(group) and not all(down.values()):
            self._tell(Opened(self._open(group, now, [name for name in self._members(group) if name in down])))
        elif group.incident is not None and not self._is_down(group):
            ended, group.incident, group.changed = group.incident, None, now
            self._tell(Closed(ended, now))

    def _is_down(self, group: _Group) -> bool:
        down = self._counted(group)
        return is_enough(group.plan, len(down), group.size)

    def _is_settled(self, group: _Group) -> bool:
        """Settle the group once its members' pasts are known.

        Reports need that early: without marks, the next process would misdate a change.
        """
        members = group.plan.members
        while not group.is_settled:
            if group.asked == len(members):
                self._settle(group)
            elif members[group.asked] not in self._targets or self._is_recalled(members[group.asked]):
                group.asked += 1
            else:
                return False
        return True

    def _settle(self, group: _Group) -> None:
        group.is_settled = True
        known = {each.name: each.recalled for each in self._standing(group) if each.recalled is not None}
        state = told_last(group.plan, known, len(self._standing(group)))
        group.number, group.changed, group.incident = state.number, state.changed, state.incident
        self._tell(GroupRecalled(group.plan.name, group.incident, group.changed))

    def _open(self, group: _Group, began: float, down: list[str]) -> Incident:
        group.number += 1
        group.changed = began
        error = error_of(down, len(self._members(group)))
        group.incident = incident_of(group.plan.name, began, group.number, error, len(down))
        return group.incident

    def _members(self, group: _Group) -> list[str]:
        return [name for name in group.plan.members if name in self._targets]

    def _standing(self, group: _Group) -> list[TargetStatus]:
        return [self._targets[name] for name in self._members(group)]


def told_last(plan: GroupPlan, known: Mapping[str, Recalled], members: int) -> GroupState:
    """The state after the last report, for `Groups`."""
    key = key_of(plan.name)
    told = [each.marks[key] for each in known.values() if key in each.marks]
    if not told:
        return GroupState()
    last = max(told, key=lambda each: each.at)
    stood = {name: each.stood_at(last.at) for name, each in known.items()}
    down = [name for name, each in stood.items() if each.is_down]
    has_opened = last.began is None and not all(stood[name].is_excused for name in down)
    if not is_enough(plan, len(down), members) or (last.began is None and not has_opened):
        return GroupState(last.number, last.at)
    began, number = (last.at, last.number + 1) if last.began is None else (last.began, last.number)
    return GroupState(number, began, incident_of(plan.name, began, number, error_of(down, members), len(down)))


def forget(group: str, targets: Mapping[str, TargetStatus]) -> None:
    """Forget a removed group's marks."""
    for target in targets.values():
        if target.recalled is not None:
            target.recalled = target.recalled.without(key_of(group))


def key_of(group: str) -> str:
    """Return a group's short name for reports."""
    return f"{crc32(group.encode('utf-8', 'replace')):08x}"


def is_enough(plan: GroupPlan, down: int, members: int) -> bool:
    """Whether that number down makes the group down."""
    return down > 0 and down >= (members if plan.at_least is None else plan.at_least)


def error_of(down: Sequence[str], members: int) -> str:
    """Name the members that are down."""
    more = f" and {len(down) - _MOST_NAMED} more" if len(down) > _MOST_NAMED else ""
    return f"{len(down)} of {members} are down: {', '.join(down[:_MOST_NAMED])}{more}"


def incident_of(group: str, began: float, number: int, error: str, down: int) -> Incident:
    """Make a group's incident. `began`: UTC seconds."""
    id = state_id(group, began, number)
    return Incident(id, group, began, Status.DOWN, error, members=down, is_group=True)

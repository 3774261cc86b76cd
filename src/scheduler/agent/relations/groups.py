"""Groups: targets that are one thing for those who use them, and are down when so many of them are.

How a group stands follows from how its members stand; only since when, and which time that is, has to be remembered.
Each member's report carries it, as it was before that check. So the latest report of all, and what that check has
changed, say how the group stood when the last process ended: what it told then is not told again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final
from zlib import crc32

from attrs import define, frozen

from ..checks import Status
from ..targets import Checked, Closed, Incident, Marks, News, Opened, Remembered, Standing, TargetStatus, state_id

_MOST_NAMED: Final = 5


@frozen
class GroupPlan:
    """A group of a configuration. `at_least`: how many of its members are down when it is; None: all."""

    name: str
    members: tuple[str, ...]
    at_least: int | None = None


@define(eq=False)
class _Group:
    """A group as it stands. `number`: how often it has been down. Not `is_settled`: its past is not known yet."""

    plan: GroupPlan
    number: int = 0
    incident: Incident | None = None
    is_settled: bool = False

    @property
    def key(self) -> str:
        """A short name, for reports."""
        return f"{crc32(self.plan.name.encode('utf-8', 'replace')):08x}"


class Groups:
    """All groups. It hears the board and tells it of theirs. `is_recalled`: whether the past of a target is known."""

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
        """Let there be these groups from now on. One that is gone is down no more, at `now` in UTC seconds."""
        wanted = {plan.name: plan for plan in plans}
        for name in self._groups.keys() - wanted.keys():
            group = self._groups.pop(name)
            if group.incident is not None:
                self._tell(Closed(group.incident, now, is_gone=True))
        self._of.clear()
        for name, plan in wanted.items():
            group = self._groups.setdefault(name, _Group(plan))
            group.plan = plan
            for member in plan.members:
                self._of.setdefault(member, []).append(group)
        for name, target in self._targets.items():
            target.marks = self.marks if name in self._of else _no_marks

    def marks(self, target: str) -> Marks:
        """For the report of a target: how often each of its groups has been down, and since when it is, if it is."""
        return {
            group.key: (group.number, None if group.incident is None else group.incident.began)
            for group in self._of.get(target, ())
            if self._is_settled(group)
        }

    def hear(self, news: News) -> None:
        """See how the groups of a target stand that has been checked."""
        if isinstance(news, (Checked, Remembered)) and news.target.last_run is not None:
            for group in self._of.get(news.target.name, ()):
                self._see(group, news.target.last_run.ended, is_news=isinstance(news, Checked))

    def _see(self, group: _Group, now: float, *, is_news: bool) -> None:
        if not self._is_settled(group) or not is_news:
            return
        down = [each for each in self._standing(group) if _is_down(each)]
        is_down = _is_enough(group, len(down), len(self._standing(group)))
        if group.incident is None and is_down and any(each.last is None or each.last.cause is None for each in down):
            group.incident = self._opened(group, now, [each.name for each in down])
            self._tell(Opened(group.incident))
        elif group.incident is not None and not is_down:
            ended, group.incident = group.incident, None
            self._tell(Closed(ended, now))

    def _is_settled(self, group: _Group) -> bool:
        """Whether the group's past is known. Whoever asks first once it can be takes it up: a report is written before
        its check is told, and one without marks would let the next process date a change by an older one.
        """
        if not group.is_settled and all(self._is_recalled(name) for name in self._members(group)):
            self._settle(group)
        return group.is_settled

    def _settle(self, group: _Group) -> None:
        """Take up how the group stood when the last process ended, without a word."""
        group.is_settled = True
        known = [each.recalled for each in self._standing(group) if each.recalled is not None]
        told = [each for each in known if group.key in each.marks]
        if not told:
            return
        latest = max(told, key=lambda each: each.at)
        number, began = latest.marks[group.key]
        group.number = number if began is None else number - 1
        is_down = _is_enough(group, sum(each.is_down for each in known), len(self._standing(group)))
        if is_down:
            names = [each.name for each in self._standing(group) if each.recalled is not None and each.recalled.is_down]
            group.incident = self._opened(group, latest.at if began is None else began, names)
        else:
            group.number = number

    def _opened(self, group: _Group, began: float, down: list[str]) -> Incident:
        name, count = group.plan.name, len(self._members(group))
        more = f" and {len(down) - _MOST_NAMED} more" if len(down) > _MOST_NAMED else ""
        error = f"{len(down)} of {count} are down: {', '.join(down[:_MOST_NAMED])}{more}"
        group.number += 1
        return Incident(
            state_id(name, began, group.number), name, began, Status.DOWN, error, members=len(down), is_group=True
        )

    def _members(self, group: _Group) -> list[str]:
        return [name for name in group.plan.members if name in self._targets]

    def _standing(self, group: _Group) -> list[TargetStatus]:
        return [self._targets[name] for name in self._members(group)]


def _no_marks(_name: str) -> Marks:
    return {}


def _is_down(target: TargetStatus) -> bool:
    return target.state is not None and target.state.status is Standing.DOWN


def _is_enough(group: _Group, down: int, members: int) -> bool:
    at_least = group.plan.at_least
    return down > 0 and down >= (members if at_least is None else at_least)

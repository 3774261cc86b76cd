"""Parents, groups, and maintenance of targets."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final

from schedule import After, Every, Schedule, ScheduleError, Window, parse

from ..relations import GroupPlan, circle
from ..standing import PlannedMaintenance
from ..text import starts, wording
from ..toml import Section, Unfit, label, labels, seconds, suggestion, text
from .target import Target, check_channels

MOST_GROUPS: Final = 8
"""A target's report has a status for each."""

MOST_MEMBERS: Final = 100_000

SOME_DAY: Final = datetime(2024, 1, 1, tzinfo=UTC)
LOOK_AHEAD: Final = 100
"""Windows compared: reading a file needs no clock."""


def read_maintenance(
    sections: Iterable[Section], targets: Collection[Target], broken: Collection[str] = ()
) -> tuple[PlannedMaintenance, ...]:
    """Read each [[maintenance]]."""
    found = [_read(section, targets, broken) for section in sections]
    return tuple(each for each in found if each is not None)


def check_parents(
    targets: Collection[Target], sections: Mapping[str, Section], groups: Iterable[GroupPlan], names: Collection[str]
) -> None:
    """Note unknown parents and circles. `sections` and `names` include faulty ones."""
    for target in targets:
        for name in target.depends_on:
            if name not in sections and name not in names:
                text = f"depends_on: there is no check or group called '{name}'"
                sections[target.name].complain(f"{text}{suggestion(name, [*sections, *names])}", "depends_on")
    ways = {each.name: each.depends_on for each in targets}
    around = circle({each.name: each.members for each in groups} | ways)  # a group is down because of its members
    if around is not None:
        text = f"depends_on: a circle, in which nobody is above: {' > '.join((*around, around[0]))}"
        sections[next(each for each in around if each in ways)].complain(text, "depends_on")


def _read(section: Section, targets: Collection[Target], broken: Collection[str]) -> PlannedMaintenance | None:
    name = section.require("name", label, "stands in history")
    opens = section.require(
        "schedule", _starts, "when a window opens, by the calendar: `CRON_TZ=Europe/Berlin 0 2 * * sun`"
    )
    length = section.require("duration", seconds, "how long it is open")
    names = section.take("targets", labels, None, "names of checks that are not made")
    tags = section.take(
        "tags",
        labels,
        None,
        "not made are checks that have one of these tags. Neither `targets` nor `tags`: all checks",
    )
    section.end()
    if name is None or opens is None or length is None:
        return None
    _check_length(section, opens, length)
    of = None if names is None and tags is None else named(section, targets, names or (), tags or (), broken)
    chosen = frozenset(each.name for each in targets) if of is None else of
    return PlannedMaintenance(name, Window(opens, timedelta(seconds=length), reason=name), chosen)


def _check_length(section: Section, opens: Schedule, length: float) -> None:
    coming = starts(opens, SOME_DAY, LOOK_AHEAD)
    shortest = min(((later - recheck).total_seconds() for recheck, later in pairwise(coming)), default=math.inf)
    if length > shortest:
        text = f"{wording.span(length)} is longer than the {wording.span(shortest)} from one window to the next"
        section.complain(f"duration: {text}: they would overlap", "duration")


def read_groups(
    sections: Iterable[Section],
    targets: Collection[Target],
    channels: Collection[str],
    broken: Collection[str] = (),
) -> tuple[GroupPlan, ...]:
    """Read each [[group]]."""
    taken = {each.name for each in targets}
    of: Counter[str] = Counter()
    found: list[GroupPlan] = []
    for section in sections:
        plan = _group(section, targets, broken)
        if plan is None:
            continue
        if plan.name in taken:
            section.complain(f"the name '{plan.name}' is taken: give the group another one", "name")
        check_channels(section, plan, channels)
        taken.add(plan.name)
        of.update(plan.members)
        found.append(plan)
        if over := next((each for each in plan.members if of[each] == MOST_GROUPS + 1), None):
            section.complain(f"members: '{over}' is in more than {MOST_GROUPS} groups", "members")
    return tuple(found)


def spoken_for(targets: Collection[Target], groups: Iterable[GroupPlan]) -> frozenset[str]:
    """Checks that name no channels: a group tells for them."""
    members = {name for group in groups if group.notify != () for name in group.members}
    return frozenset(each.name for each in targets if each.notify is None and each.is_enabled and each.name in members)


def warnings_of_groups(targets: Collection[Target], groups: Iterable[GroupPlan]) -> list[str]:
    """Warn of checks that stay silent until their group is down."""
    names = sorted(spoken_for(targets, groups))
    if not names:
        return []
    advice = "name channels in `notify` of a check to hear of it as well"
    return [
        f"{wording.some(names)} tell nobody by themselves, for a group of theirs does, once so many are down: {advice}"
    ]


def _group(section: Section, targets: Collection[Target], broken: Collection[str]) -> GroupPlan | None:
    name = section.require("name", label, "no check and no other group has it")
    asked = section.require("members", labels, "names of checks, or tags. A target is in at most eight groups")
    down_if = section.take(
        "down_if",
        _down_if,
        None,
        "how many members are down when the group is; by default all. The second number must be that of its members",
    )
    notify = section.take(
        "notify",
        labels,
        None,
        "names of the [channels](get-told.md) that are told of the group, by default all. An empty list: nobody; its "
        "members are told of by themselves then",
    )
    section.end()
    if name is None or not asked:
        return None
    names = {each.name for each in targets}
    tags = {tag for each in targets for tag in each.tags}
    chosen = named(
        section,
        targets,
        [each for each in asked if each not in tags or each in names],
        [each for each in asked if each in tags and each not in names],
        broken,
    )
    members = tuple(each.name for each in targets if each.name in chosen)
    if down_if is None:
        return GroupPlan(name, members, notify=notify)
    at_least, of = down_if
    if of is not None and of != len(members) and not broken:
        section.complain(f"down_if: of {of}, but the group has {len(members)} members", "down_if")
    return GroupPlan(name, members, at_least, notify)


def _down_if(value: Any) -> tuple[int, int | None] | None:
    words = value.split() if isinstance(value, str) else []
    match words:
        case ["all"]:
            return None
        case ["any"]:
            return 1, None
        case [least, "of", of] if least.isdecimal() and of.isdecimal() and 1 <= int(least) <= int(of) <= MOST_MEMBERS:
            return int(least), int(of)
        case _:
            raise Unfit('"any", "all" or "k of n" such as "2 of 3"', value)


def _starts(value: Any) -> Schedule:
    """Windows open by the calendar, never by an interval."""
    expected = 'a schedule by the calendar such as "0 2 * * sun"'
    try:
        found = parse(text(value))
    except ScheduleError as exc:
        raise Unfit(f"{expected} ({exc})", value) from None
    if isinstance(found, After) or (isinstance(found, Every) and found.anchor is None):
        raise Unfit(f"{expected}, for an interval has no place in it", value)
    return found


def named(
    section: Section,
    targets: Collection[Target],
    names: Iterable[str],
    tags: Iterable[str],
    broken: Collection[str] = (),
) -> frozenset[str]:
    """The targets that a table names. `broken`: names of faulty checks, which are no problem here."""
    by_name = {each.name for each in targets}
    of_tag: dict[str, set[str]] = {}
    for target in targets:
        for tag in target.tags:
            of_tag.setdefault(tag, set()).add(target.name)
    found: set[str] = set()
    for name in names:
        if name in by_name:
            found.add(name)
        elif name not in broken:
            section.complain(f"there is no check called '{name}'{suggestion(name, by_name)}")
    for tag in tags:
        if tag not in of_tag and tag not in broken:
            section.complain(f"no check has the tag '{tag}'{suggestion(tag, of_tag)}")
        found |= of_tag.get(tag, set())
    return frozenset(found)

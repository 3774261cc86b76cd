"""Relations of several targets in a configuration: who depends on whom, and when which are not checked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from typing import Any

from schedule import After, Every, Schedule, ScheduleError, Window, parse

from ..relations import circle
from ..targets import Planned
from ..toml import Section, Unfit, label, labels, seconds, suggestion, text
from .target import Target, named


def read_maintenance(sections: Iterable[Section], targets: Collection[Target]) -> tuple[Planned, ...]:
    """Read each [[maintenance]] in the file, which names targets that are there."""
    found = [_read(section, targets) for section in sections]
    return tuple(each for each in found if each is not None)


def check_parents(targets: Collection[Target], sections: Mapping[str, Section]) -> None:
    """Note a parent that there is not, and a circle of parents, as a problem of the check that names it.

    `sections`: of all checks by their names, those with other problems too.
    """
    for target in targets:
        for name in target.depends_on:
            if name not in sections:
                text = f"depends_on: there is no check called '{name}'{suggestion(name, sections)}"
                sections[target.name].complain(text, "depends_on")
    around = circle({each.name: each.depends_on for each in targets})
    if around is not None:
        text = f"depends_on: a circle, in which nobody is above: {' > '.join((*around, around[0]))}"
        sections[around[0]].complain(text, "depends_on")


def _read(section: Section, targets: Collection[Target]) -> Planned | None:
    name = section.require("name", label)
    starts = section.require("schedule", _starts)
    length = section.require("duration", seconds)
    names = section.take("targets", labels, None)
    tags = section.take("tags", labels, None)
    section.end()
    if name is None or starts is None or length is None:
        return None
    of = None if names is None and tags is None else named(section, targets, names or (), tags or ())
    chosen = frozenset(each.name for each in targets) if of is None else of
    return Planned(name, Window(starts, timedelta(seconds=length), reason=name), chosen)


def _starts(value: Any) -> Schedule:
    """Read when windows open: by the calendar. An interval has no place in it."""
    expected = 'a schedule by the calendar such as "0 2 * * sun"'
    try:
        found = parse(text(value))
    except ScheduleError as exc:
        raise Unfit(f"{expected} ({exc})", value) from None
    if isinstance(found, After) or (isinstance(found, Every) and found.anchor is None):
        raise Unfit(f"{expected}, for an interval has no place in it", value)
    return found

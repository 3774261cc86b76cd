"""Configuration of a fleet and of quorums."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from attrs import field, frozen

from scheduler.stores import MAX_SKEW, labels_of

from ..toml import Reader, Section, Unfit, label, seconds, whole
from .rule import Quorum

T = TypeVar("T")
D = TypeVar("D")

MOST_AGENTS: Final = 100
NAME: Final = "TIMERQUEUE_FLEET_NAME"
LABELS: Final = "TIMERQUEUE_FLEET_LABELS"
_LABEL: Final = re.compile(r"[^\s=,]{1,63}=[^\s=,]{1,63}")
_KEYS: Final = dict.fromkeys(("where", "agents", "apart", "votes", "min_agents"), None)


@frozen(kw_only=True)
class FleetPlan:
    """The content of [fleet]. `name` None: process and host. `max_skew`: seconds."""

    name: str | None = None
    labels: Mapping[str, str] = field(factory=dict)
    max_skew: float = MAX_SKEW


def read_fleet(section: Section, environment: Mapping[str, str]) -> FleetPlan:
    """Read [fleet]. Environment variables come first: machines can share the file."""
    name = section.take(
        "name",
        label,
        None,
        f"what the others call this agent. `{NAME}` counts instead where it is set, so that machines can share the "
        "file. By default its process and host",
    )
    labels = section.take(
        "labels",
        _labels,
        {},
        f"where this agent stands, for the `where` and `apart` of checks. `{LABELS}` counts instead where it is set: "
        "`region=eu,zone=a`. By default it has none",
    )
    max_skew = section.take(
        "max_skew",
        seconds,
        MAX_SKEW,
        "how far this machine's clock may be from the database's, or from those of most agents: beyond that it checks "
        "nothing, and others get its checks",
    )
    section.end()
    return FleetPlan(
        max_skew=max_skew,
        name=_from(environment, NAME, label, section, name),
        labels=_from(environment, LABELS, _of_text, section, labels),
    )


def _from(environment: Mapping[str, str], variable: str, reader: Reader[T], section: Section, default: D) -> T | D:
    if not environment.get(variable):
        return default
    try:
        return reader(environment[variable])
    except Unfit as exc:
        section.complain(f"{variable}: {exc}")
        return default


def read_quorum(section: Section) -> Quorum | None:
    """Read a check's quorum. None: its owner checks it."""
    default = Quorum()
    if not section.has_any(_KEYS):
        return None
    found = Quorum(
        where=section.take(
            "where",
            _where,
            default.where,
            "labels that an agent must have to check it: `region=eu`, or `region=eu,zone=a`. By default any agent",
        ),
        agents=section.take(
            "agents",
            _agents,
            default.agents,
            "how many agents check it, all at the same instant. `all`: each that fits",
        ),
        apart=section.take(
            "apart",
            label,
            default.apart,
            "the label in which those that are chosen differ, as far as there is a choice",
        ),
        votes=section.take(
            "votes",
            whole(1, MOST_AGENTS),
            default.votes,
            "how many of them must find it down. An agent that is late, offline or silent does not know. By default "
            "more than half",
        ),
        least=section.take(
            "min_agents",
            whole(1, MOST_AGENTS),
            default.least,
            "with fewer agents that fit its status is unknown. By default as many as `votes`",
        ),
    )
    for key in ("retry_interval", "failing_interval"):
        if section.has(key):
            section.complain(f"{key}: agents that vote check at the same instants, and try again at once", key)
    if found.agents is not None and found.agents < max(found.votes or 0, found.least or 0):
        asked = f"agents = {found.agents}" + ("" if section.has("agents") else " (the default)")
        key = "votes" if (found.votes or 0) > found.agents else "min_agents"
        section.complain(f"{key}: more than there are: {asked}", key)
    return found


def check_shared(section: Section, *, is_shared: bool) -> None:
    """Complain of a key that needs a fleet."""
    for key in _KEYS:
        if section.has(key) and not is_shared:
            section.complain(f"{key}: is for agents that share a store: add [fleet] to the file of each", key)
            return


def _agents(value: Any) -> int | None:
    if value == "all":
        return None
    try:
        return whole(1, MOST_AGENTS)(value)
    except Unfit:
        raise Unfit(f'"all" or a whole number from 1 to {MOST_AGENTS}', value) from None


def _where(value: Any) -> Mapping[str, str]:
    if not isinstance(value, str):
        raise Unfit('labels such as "region=eu" or "region=eu,zone=a"', value)
    return _of_text(value)


def _of_text(text: str) -> dict[str, str]:
    try:
        return dict(labels_of(text))
    except ValueError:
        raise Unfit('labels such as "region=eu" or "region=eu,zone=a"', text) from None


def _labels(value: Any) -> Mapping[str, str]:
    is_table = isinstance(value, dict) and all(isinstance(each, str) for each in value.values())
    if not is_table or not all(_LABEL.fullmatch(f"{name}={each}") for name, each in value.items()):
        raise Unfit('labels such as { region = "eu", zone = "a" }, without spaces, commas and equals signs', value)
    return dict(value)

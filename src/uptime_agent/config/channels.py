"""[[channel]] and [notify]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve

from ..notify import CHANNELS, ChannelKind, ChannelRoute, Digest, MessageRate, Rules, Surroundings
from ..toml import Problem, Section, Unfit, one_of, seconds, text, whole

TIMEOUT: Final = 10.0
MOST_MESSAGES: Final = 100_000
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_RATE: Final = re.compile(r"([1-9][0-9]{0,5}) ?/ ?(.+)")
_OF_ALL: Final = ("name", "kind", "timeout", "rate")


def read_channels(top: Section, around: Surroundings, *, needs_secrets: bool = True) -> dict[str, ChannelRoute]:
    """Read channels. Without `needs_secrets`, unusable channels are left out."""
    tables = top.take("channel", _tables, [], "ways to tell people of incidents. See [Get told](get-told.md)")
    lines: dict[str, int] = {}
    found: dict[str, ChannelRoute] = {}
    for index, table in enumerate(tables):
        name = table.get("name")
        title = f"[[channel]] '{name}'" if _is_name(name) else f"[[channel]] number {index + 1}"
        problems: list[Problem] = top.problems if needs_secrets else []
        section = Section(table, ("channel", index), title, top.lines, problems)
        way = _channel(section, around)
        if _is_name(name) and name in lines:
            section.complain(f"the name is taken by the channel on line {lines[name]}: give one of them another name")
        lines.setdefault(str(name), section.lines.get(section.path, 1))
        if way is not None:
            found[str(name)] = way
    return found


def channel_names(top: Section) -> list[str]:
    """All names, of faulty channels too."""
    tables = top.table.get("channel")
    names = [table.get("name") for table in tables if isinstance(table, dict)] if isinstance(tables, list) else []
    return [name for name in names if isinstance(name, str)]


def read_rules(section: Section) -> Rules:
    """Read [notify]."""
    rules = Rules()
    rules = evolve(
        rules,
        reminders=section.take(
            "reminders", seconds, rules.reminders, "how often to tell again of an incident that goes on"
        ),
        expiry=section.take(
            "expiry", seconds, rules.expiry, "after so long, a message that could not be delivered is given up"
        ),
        digest=section.take(
            "digest",
            _digest,
            rules.digest,
            "if more than `above` messages for a channel arise `within` that time, the rest of them go together, so "
            "much later. So do messages that a channel could not take. `false`: each goes by itself",
        ),
    )
    section.end()
    return rules


def _channel(section: Section, around: Surroundings) -> ChannelRoute | None:
    before = len(section.problems)
    section.require("name", _name, "by which `notify` and `timerqueue notify test` call it, and receivers know it")
    kind = section.require("kind", one_of(CHANNELS), "how people are told")
    timeout = section.take("timeout", seconds, TIMEOUT, "for one message")
    rate = section.take(
        "rate", _rate, None, "at most so many messages in a time, as in `20/1m`. What is too much waits"
    )
    if kind is None:
        return None
    options = _options(section, kind, around)
    section.end()
    if len(section.problems) > before:
        return None
    try:
        return ChannelRoute(channel=kind.make(**options), timeout=timeout, rate=rate)
    except ValueError as exc:
        section.complain(str(exc))
        return None


def _options(section: Section, kind: ChannelKind, around: Surroundings) -> dict[str, Any]:
    readers = kind.options(around)
    found: dict[str, Any] = {}
    for key, reader in readers.items():
        if key in kind.required:
            found[key] = section.require(key, reader)
        elif section.has(key):
            found[key] = section.take(key, reader, None)
        else:
            section.take(key, reader, None)  # a key that it may have
    for other in CHANNELS.values():
        for key in other.options(around):
            if section.has(key) and key not in readers:
                section.take(key, lambda _: None, None)
                section.complain(f"{key}: is for channels of kind {other.name}", key)
    return found


def _tables(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise Unfit("tables that begin with [[channel]]", value)
    return value


def _is_name(value: object) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _name(value: Any) -> str:
    if not _is_name(value):
        raise Unfit("1 to 64 letters, digits, dots, dashes and underscores, beginning with a letter or digit", value)
    return text(value)


def _rate(value: Any) -> MessageRate:
    found = _RATE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise Unfit('a number of messages and a time, as in "20/1m"', value)
    return MessageRate(int(found[1]), seconds(found[2]))


def _digest(value: Any) -> Digest | None:
    match value:
        case False:
            return None
        case {"above": above, "within": within, **others} if not others:
            return Digest(whole(1, MOST_MESSAGES)(above), seconds(within))
        case _:
            raise Unfit('{ above = 10, within = "30s" }, or false', value)


def shown(channels: Mapping[str, ChannelRoute]) -> list[str]:
    """Channels in words, without secrets."""
    return [f"channel {name}: {way.channel.kind} to {way.channel.place}" for name, way in channels.items()]

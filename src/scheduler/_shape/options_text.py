"""Options as JSON that people can read and write."""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Iterable, Mapping
from datetime import timedelta
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Final

from attrs import NOTHING, fields

from schedule import ScheduleError, duration

from .._values import OPTIONS, InvalidJob, Overlap, Policy, Retry, shown
from .json_text import json_text, kept, read_json
from .options import DEFAULT, DEFAULT_MAX_RUNNING, policy_of

_HINTS: Final[Mapping[type, Mapping[str, Any]]] = {kind: typing.get_type_hints(kind) for kind in (Policy, Retry)}


@lru_cache(maxsize=4096)  # few sets of options serve many jobs, for example one for each host that is checked
def options_text(policy: Policy, inline: bool) -> str:  # noqa: FBT001 - a cache needs positional arguments
    """Write options that differ from the defaults. Raises InvalidJob for a need that cannot be stored."""
    found: dict[str, Any] = {}
    for name in OPTIONS:
        value = getattr(policy, name)
        if value != _default(name, policy):
            found[name] = _needs(value) if name == "needs" else plain(value)
    if inline:
        found["inline"] = True
    return json_text(found, "options")


@kept(1024)
def read_options(text: str) -> tuple[Policy, bool]:
    """Return policy and `inline`. Raises InvalidJob or ScheduleError."""
    found = read_json(text)
    if not isinstance(found, dict):
        msg = 'it must be a JSON object such as {"timeout": "5s"}'
        raise InvalidJob(msg)
    check_names(found, (*OPTIONS, "inline"), "option")
    inline = found.pop("inline", False)
    if not isinstance(inline, bool):
        msg = f"inline must be true or false, not {inline!r}"
        raise InvalidJob(msg)
    return policy_of({name: option_of(name, value) for name, value in found.items()}), inline


def _default(name: str, policy: Policy) -> Any:
    if name == "max_running" and policy.overlap is Overlap.ALLOW:
        return DEFAULT_MAX_RUNNING
    return getattr(DEFAULT, name)


def _needs(needs: Iterable[tuple[str, int]]) -> Any:
    units = dict(needs)
    return units if set(units.values()) != {1} else list(units)


def plain(value: Any) -> Any:
    match value:
        case enum.Enum():
            return value.value
        case timedelta():
            seconds = value.total_seconds()
            exact = duration(seconds) == value
            return seconds if exact else f"{value.days}d{value.seconds}s{value.microseconds}us"
        case Retry():
            said = {each.name: (getattr(value, each.name), each.default) for each in fields(Retry)}
            return {name: plain(found) for name, (found, default) in said.items() if found != default}
        case _:
            return value


def option_of(name: str, value: Any) -> Any:
    """Read one option as JSON has it. Raises InvalidJob or ScheduleError."""
    if name == "needs" and not isinstance(value, (str, list, dict)):
        msg = f"needs must be a text, an array of texts or an object from texts to numbers, not {shown(value)}"
        raise InvalidJob(msg)
    if name == "retry" and value is not None:
        return _retry(value)
    kinds = _kinds(_HINTS[Policy][name])
    return _member(name, value, kinds) if any(map(_is_enum, kinds)) else value


def _retry(value: Any) -> Retry:
    if not isinstance(value, dict):
        msg = f'retry must be an object such as {{"growth": "exponential", "base": "1s"}}, not {shown(value)}'
        raise InvalidJob(msg)
    hints = _HINTS[Retry]
    check_names(value, tuple(attribute.name for attribute in fields(Retry)), "field of retry")
    if missing := [each.name for each in fields(Retry) if each.default is NOTHING and each.name not in value]:
        msg = f"retry must also say {missing[0]!r}"
        raise InvalidJob(msg)
    read = {name: _field(f"retry.{name}", item, _kinds(hints[name])) for name, item in value.items()}
    try:
        return Retry(**read)
    except ValueError as exc:
        msg = f"retry: {exc.args[0]}"
        raise InvalidJob(msg) from None


def _field(name: str, value: Any, kinds: tuple[Any, ...]) -> Any:
    if any(map(_is_enum, kinds)) and value is not None:
        return _member(name, value, kinds)
    accepted: set[Any] = set(kinds)
    if timedelta in kinds:
        accepted |= {int, float, str}
    if float in kinds:
        accepted.add(int)
    if type(value) not in accepted:
        wanted = " or ".join("null" if kind is types.NoneType else kind.__name__ for kind in kinds)
        msg = f"{name} must be {wanted}, not {shown(value)}"
        raise InvalidJob(msg)
    return value if value is None or timedelta not in kinds else _delay(name, value)


def _delay(name: str, value: Any) -> timedelta:
    try:
        return duration(value)
    except ScheduleError as exc:
        msg = f"{name}: {exc}"
        raise InvalidJob(msg) from None


def _kinds(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)


def _is_enum(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, enum.Enum)


def _member(name: str, value: Any, kinds: tuple[Any, ...]) -> Any:
    members = {member.value: member for kind in kinds if _is_enum(kind) for member in kind}
    if isinstance(value, str) and value in members:
        return members[value]
    msg = f"{name} must be one of {', '.join(map(repr, members))}, not {shown(value)}"
    raise InvalidJob(msg)


def check_names(found: Mapping[str, Any], known: tuple[str, ...], what: str) -> None:
    for name in found:
        if name not in known:
            similar = get_close_matches(name[:100], known, n=1)
            advice = f"did you mean {similar[0]!r}?" if similar else f"there are {', '.join(sorted(known))}"
            msg = f"there is no {what} {shown(name)}: {advice}"
            raise InvalidJob(msg)

"""Answers of registries in RDAP (RFC 9083 and 9224)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from attrs import frozen

from ...text import Url, parse_url
from ..contract import CheckFailed

SCHEMES: Final[Mapping[str, int | None]] = {"https": 443, "http": 80}
LONGEST_LIST: Final = 1024 * 1024
"""Bytes."""

LONGEST_ANSWER: Final = 256 * 1024
YEAR_10000: Final = 253_402_300_800.0
_MOST_LISTED: Final = 1_000
_ENDING: Final = frozenset({"redemption period", "pending delete"})
_UNREADABLE: Final = (ValueError, TypeError, AttributeError, RecursionError)


@frozen
class Registration:
    """When it `expires`, in UTC seconds, and how it is `ending`."""

    expires: float
    ending: str | None


def registries(content: bytes) -> dict[str, str]:
    """Read base URLs by domain. Raises CheckFailed."""
    try:
        services = json.loads(content)["services"]
        found = {str(name).lower().strip("."): _preferred(bases) for names, bases, *_ in services for name in names}
    except (*_UNREADABLE, KeyError):
        raise CheckFailed("its list of registries makes no sense as that of RFC 9224") from None
    return {name: base for name, base in found.items() if base is not None}


def _preferred(bases: Any) -> str | None:
    texts = [each for each in bases if isinstance(each, str)]
    return min(texts, key=lambda each: not each.lower().startswith("https://"), default=None)


def registry_of(domain: str, known: Mapping[str, str]) -> str | None:
    """A domain's registry, by the longest matching suffix."""
    labels = domain.split(".")
    return next((known[name] for at in range(len(labels)) if (name := ".".join(labels[at:])) in known), None)


def question(base: str, domain: str) -> Url:
    """The URL of a question. Raises CheckFailed if the base is invalid."""
    try:
        return parse_url(f"{base.rstrip('/')}/domain/{domain}", SCHEMES)
    except ValueError as exc:
        raise CheckFailed(f"its list of registries names a URL that is none: expected {exc}") from None


def registration(content: bytes, domain: str) -> Registration | None:
    """Read an answer. None: it tells no end. Raises CheckFailed if it makes no sense."""
    try:
        found = json.loads(content)
        name = str(found["ldhName"]).lower().rstrip(".")
        events = {each["eventAction"]: each.get("eventDate") for each in found.get("events", [])[:_MOST_LISTED]}
        states = [each for each in found.get("status", [])[:_MOST_LISTED] if each in _ENDING]
        date = events.get("expiration")
        expires = None if date is None else _instant(date)
    except (*_UNREADABLE, KeyError, OverflowError):
        raise CheckFailed("its answer makes no sense as RDAP") from None
    if name != domain:
        raise CheckFailed(f"it answers for another domain, {name[:100]}")
    return None if expires is None else Registration(expires, next(iter(states), None))


def _instant(text: str) -> float:
    found = datetime.fromisoformat(text)
    seconds = (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
    if not 0 <= seconds < YEAR_10000:  # a date by its zone, and in UTC none that can be written
        raise ValueError(text)
    return seconds

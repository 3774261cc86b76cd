"""[heartbeat] of a configuration."""

from __future__ import annotations

from typing import Any, Final

from attrs import evolve, frozen

from ..checks import BY_SCHEME, Check
from ..notify import Surroundings
from ..text import parse_url
from ..toml import Reader, Secret, Section, Unfit, seconds, secret

INTERVAL: Final = 30.0
GRACE: Final = 60.0
SHORTEST: Final = 1.0
HTTP: Final = BY_SCHEME["http"]
TAKEN: Final = ((200, 299),)
"""Redirects are not followed."""


@frozen(kw_only=True)
class Heartbeat:
    """A request every `interval` seconds; trouble may last `grace` seconds."""

    check: Check
    interval: float = INTERVAL
    grace: float = GRACE
    secrets: frozenset[str] = frozenset()


def read_heartbeat(section: Section, around: Surroundings, *, needs_secrets: bool = True) -> Heartbeat | None:
    """Read [heartbeat]. None: absent, or it lacks secrets."""
    if not needs_secrets:
        section = evolve(section, problems=[])
    heartbeat = section.take(
        "url",
        _url(secret(around.folder, around.environment)),
        None,
        "an `http://` or `https://` URL that is asked for. If it is given by reference, only its host is ever shown",
    )
    if section.table and not section.has("url"):
        section.complain("the key 'url' is missing: add url = \"https://...\"")
    interval = section.take("interval", _some_seconds, INTERVAL, "from one request to the next")
    grace = section.take(
        "grace",
        _some_seconds,
        GRACE,
        "so long the event loop may be late, the store silent or a channel stuck. Then no more requests are made",
    )
    section.end()
    return None if heartbeat is None else evolve(heartbeat, interval=interval, grace=grace)


def _url(read: Reader[str]) -> Reader[Heartbeat]:
    def url(value: Any) -> Heartbeat:
        found = read(value)
        is_secret = isinstance(found, Secret)
        try:
            parsed = parse_url(found, HTTP.schemes)
        except ValueError as exc:
            raise Unfit(str(exc), found, is_secret=is_secret) from None
        check = HTTP.make(url=parsed, expect_status=TAKEN)
        return Heartbeat(check=check, secrets=check.secrets | (_path(parsed.target) if is_secret else frozenset()))

    return url


def _path(target: str) -> frozenset[str]:
    return frozenset({target} - {"", "/"})


def _some_seconds(value: Any) -> float:
    if (found := seconds(value)) < SHORTEST:
        raise Unfit('a duration from 1 s, such as "30s"', value)
    return found

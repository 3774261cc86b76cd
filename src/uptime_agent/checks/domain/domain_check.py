"""DOMAIN: a domain is registered, for a while."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from attrs import evolve, frozen

from ...text import Url, is_address, parse_url, wording
from ...toml import Option, Unfit, one_of, seconds, text
from ..contract import NO_PORT, Attempt, CheckFailed, Clash, Detail, Finding, Hop, Kind, Status
from ..http import OwnHost, RedirectTargets, fetch, forbidden, may_dial, may_name, next_url, refusal
from ..net import certificates
from .registration import (
    LONGEST_ANSWER,
    LONGEST_LIST,
    SCHEMES,
    YEAR_10000,
    Registration,
    question,
    registration,
    registries,
    registry_of,
)

LEAST_INTERVAL: Final = 6 * 3600.0
"""Seconds. Registries refuse frequent clients."""

KEPT: Final = LEAST_INTERVAL - 600.0
"""Seconds. Checks every six hours may begin some minutes late."""

DAY: Final = 86_400.0
BOOTSTRAP: Final = "https://data.iana.org/rdap/dns.json"
MOST_REDIRECTS: Final = 3
_ACCEPT: Final = "application/rdap+json, application/json"
_OK, _NOT_FOUND, _TOO_OFTEN = 200, 404, 429
_LEADS_ON: Final = frozenset({301, 302, 303, 307, 308})

_known: dict[str, tuple[float, dict[str, str]]] = {}


@frozen(kw_only=True)
class DomainCheck:
    """Down if not registered or `down_within` seconds before the end, degraded `expires_within` seconds before it.

    `server`: the registry's RDAP; by default the list at `bootstrap` names it.
    """

    url: Url
    expires_within: float = 14 * DAY
    down_within: float | None = None
    server: str | None = None
    bootstrap: str = BOOTSTRAP
    redirect_targets: RedirectTargets = RedirectTargets.PUBLIC
    ca_file: str | None = None

    def __attrs_post_init__(self) -> None:
        if self.url.target not in {"", "/"} or self.url.user is not None:
            raise Clash("url", "expected domain://example.org and nothing else")
        if is_address(self.url.host) or "." not in self.url.host:
            raise Clash("url", f"expected a domain such as example.org, found {self.url.host}")
        if self.down_within is not None and self.down_within >= self.expires_within:
            raise Clash("down_within", "is not shorter than expires_within: it would never be degraded")
        certificates.context(self.ca_file)  # reading the certificates takes longer than a check: not while checks run

    @property
    def secrets(self) -> frozenset[str]:
        """Texts never to show."""
        texts = [self.bootstrap] if self.server is None else [self.server, self.bootstrap]
        return frozenset[str]().union(*(parse_url(each, SCHEMES).secrets for each in texts))

    @property
    def redirects(self) -> int:
        """Redirects of one attempt."""
        return 2 * (MOST_REDIRECTS + 1)

    async def attempt(self, at: Attempt) -> Finding | Hop:
        """Judge by a kept answer, or ask a server."""
        now = at.watch.clock.wall()
        kept = _kept(at.before, now)
        if kept is not None:
            return self.judged(kept, now, float(at.before["rdap_asked"]))
        if self.server is not None:
            return self._asking(self.server, is_ours=True)
        read, known = _known.get(self.bootstrap, (0.0, None))
        if known is not None and 0 <= now - read < DAY:
            return self.asking_registry(known)
        url = parse_url(self.bootstrap, SCHEMES)
        return Hop(_Question(url=url, domain=self, is_list=True), _anywhere, str, is_redirect=False)

    def asking_registry(self, known: dict[str, str]) -> Finding | Hop:
        """Ask the registry of a list."""
        base = registry_of(self.url.host, known)
        if base is None:
            top = self.url.host.rpartition(".")[2]
            return Finding(status=Status.UNKNOWN, error=f"no registry of .{top} is known to answer over RDAP")
        return self._asking(base, is_ours=False)

    def _asking(self, base: str, *, is_ours: bool) -> Hop:
        """Only a configured registry may be at any address."""
        found = _Question(url=question(base, self.url.host), domain=self, is_list=False)
        if is_ours:
            return Hop(found, _anywhere, str, is_redirect=False)
        return self.leading_to(found, OwnHost("", ""))

    def leading_to(self, found: _Question, origin: OwnHost) -> Hop:
        """Follow a server's redirect, if permitted."""
        permits = partial(may_dial, self.redirect_targets, origin, found.url.host)
        return Hop(
            found,
            permits,
            lambda refused: f"is told to ask at {forbidden(found.url, refused, self.redirect_targets)}",
            is_redirect=False,
        )

    def judged(self, found: Registration, now: float, asked: float) -> Finding:
        """Judge a registration. Instants in UTC seconds."""
        left = found.expires - now
        status, error = self._verdict(found, left)
        detail: dict[str, str | int | float] = {
            "domain_expires": found.expires,
            "domain_expires_in": round(left),
            "rdap_asked": asked,
        }
        if found.ending is not None:
            detail["domain_status"] = found.ending
        return Finding(status=status, error=error, detail=detail)

    def _verdict(self, found: Registration, left: float) -> tuple[Status, str | None]:
        until = wording.stamp(found.expires)[:10]
        if found.ending is not None:
            return Status.DOWN, f"its registration is ending: {found.ending}"
        if left <= 0:
            return Status.DOWN, f"its registration ended on {until}"
        words = f"its registration ends in {wording.count(int(left // DAY), 'day')}, on {until}"
        if self.down_within is not None and left <= self.down_within:
            return Status.DOWN, words
        if left <= self.expires_within:
            return Status.DEGRADED, words
        return Status.UP, None


@frozen(kw_only=True)
class _Question:
    url: Url
    domain: DomainCheck
    is_list: bool
    followed: int = 0
    origin: OwnHost | None = None

    @property
    def secrets(self) -> frozenset[str]:
        return self.domain.secrets

    async def attempt(self, at: Attempt) -> Finding | Hop:
        """A senseless answer leaves the status unknown."""
        domain, now = self.domain, at.watch.clock.wall()
        context = certificates.context(domain.ca_file)
        document = await fetch(at, self.url, _ACCEPT, LONGEST_LIST if self.is_list else LONGEST_ANSWER, context)
        if document.status in _LEADS_ON and document.location:
            return self._onward(document.location, at.address)
        if document.status == _OK and self.is_list:
            known = registries(document.body)
            _known[domain.bootstrap] = (now, known)
            return domain.asking_registry(known)
        if document.status == _OK:
            found = registration(document.body, domain.url.host)
            if found is None:
                return Finding(status=Status.UNKNOWN, error="its registry does not tell when its registration ends")
            return domain.judged(found, now, now)
        return self._refused(document.status)

    def _refused(self, code: int) -> Finding:
        if code == _NOT_FOUND and not self.is_list:
            return Finding(status=Status.DOWN, error=f"{self.domain.url.host} is not registered")
        why = "asks us to ask less often" if code == _TOO_OFTEN else "cannot answer"
        return Finding(status=Status.UNKNOWN, error=f"{self.url.authority} {why}: status {code}")

    def _onward(self, location: bytes, address: str) -> Hop:
        if self.followed == MOST_REDIRECTS:
            raise CheckFailed(f"more than {wording.count(MOST_REDIRECTS, 'redirect')}")
        targets, url = self.domain.redirect_targets, next_url(self.url, location, SCHEMES)
        origin = OwnHost(self.url.host, address) if self.origin is None else self.origin
        if not may_name(targets, origin, url):
            raise CheckFailed(refusal(url, url.host, targets))
        return self.domain.leading_to(evolve(self, url=url, followed=self.followed + 1, origin=origin), origin)


def _anywhere(_: str) -> bool:
    return True


def _kept(before: Detail, now: float) -> Registration | None:
    asked, expires, ending = (before.get(key) for key in ("rdap_asked", "domain_expires", "domain_status"))
    if not isinstance(asked, (int, float)) or not isinstance(expires, (int, float)):
        return None
    if not 0 <= now - asked < KEPT or not 0 <= expires < YEAR_10000:
        return None
    return Registration(float(expires), ending if isinstance(ending, str) else None)


def _base(value: Any) -> str:
    try:
        parse_url(text(value), SCHEMES)
    except ValueError as exc:
        raise Unfit(str(exc), value) from None
    return text(value)


DOMAIN: Final = Kind(
    "domain",
    {"domain": NO_PORT},
    DomainCheck,
    {
        "expires_within": Option(
            seconds,
            "the target is degraded when the registration ends within that time, and down when it has ended",
            "14d",
        ),
        "down_within": Option(seconds, "the target is down from that time before the end"),
        "server": Option(
            _base, "the base URL of the registry's RDAP. By default the list at `bootstrap` says which that is"
        ),
        "bootstrap": Option(
            _base, "the URL of the list of registries (RFC 9224). It is read once a day for all checks", BOOTSTRAP
        ),
        "redirect_targets": Option(
            one_of({each.value: each for each in RedirectTargets}),
            "where the list and the registry may lead. A `server` and a `bootstrap` of your own may be anywhere",
            "public",
        ),
        "ca_file": certificates.CA_FILE,
    },
    meaning="up as long as the domain is registered. The registry is asked by RDAP, every six hours and not more often",
    is_resolved=False,
    least_interval=LEAST_INTERVAL,
)

"""A file of Gatus."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ..foreign import (
    Draft,
    ForeignTable,
    Hidden,
    Mapped,
    NotImported,
    bracketed,
    domain_of,
    host_of,
    read_yaml,
    sign_in_first,
    table_of,
    take_body,
    take_headers,
    take_url,
)
from .conditions import hours, take_conditions
from .suites import steps_of
from .windows import window

INTERVAL: Final = "60s"
TIMEOUT: Final = "10s"
OF_A_SUITE: Final = ("10m", "5m")
REDIRECTS: Final = 5
FAILURES: Final = 3
FORTNIGHT: Final = 336.0
"""Hours."""

_MOST_ATTEMPTS: Final = 10
_FAMILIES: Final = {"ip4": "4", "ip6": "6"}
_SILENT: Final[Mapping[str, tuple[Any, ...]]] = {"graphql": (False,), "extra-labels": ("",)}
_OF_FILE: Final = {
    "alerting": "(see [[channel]])",
    "remote": "(see a store that agents share)",
    "connectivity": "(see [network] probe)",
    "concurrency": "(see [limits] total)",
    "storage": "(see store and [history])",
    "security": "",
    "web": "",
    "ui": "",
    "metrics": "",
    "tunneling": "",
    "announcements": "",
}
_FILLED: Final = re.compile(r"\[(LOCAL_ADDRESS|RANDOM_STRING_[0-9]+)\]")
_NO_WORD: Final = re.compile(r"[^a-z0-9]+")
SMTP: Final = [
    {"expect": "220 *"},
    {"send": "EHLO timerqueue\r\n"},
    {"expect": "250 *"},
    {"send": "STARTTLS\r\n"},
    {"expect": "220 *"},
    {"starttls": True},
]


def read_gatus(file: Path, _targets: Mapping[str, list[str]]) -> tuple[list[Draft], list[str]]:
    """Read drafts of checks, and losses. Raises NotImported."""
    top = table_of(read_yaml(file), str(file))
    if not any(key in top for key in ("endpoints", "external-endpoints", "suites")):
        raise NotImported(f"{file}: there are no endpoints, so it is no configuration of Gatus, or an empty one")
    thresholds = _thresholds(top)
    drafts: list[Draft] = []
    for number, each in enumerate(top.tables("endpoints"), 1):
        drafts += _endpoint(each, f"endpoint {number}", thresholds)
    for number, each in enumerate(top.tables("external-endpoints"), 1):
        drafts.append(_external(each, f"external endpoint {number}", thresholds))
    for number, each in enumerate(top.tables("suites"), 1):
        drafts.append(_suite(each, f"suite {number}", thresholds))
    if not drafts:
        raise NotImported(f"{file}: there are no endpoints in it that can be read")
    if "maintenance" in top:
        drafts.append(window(ForeignTable(top.table("maintenance").of), "maintenance"))
        top.table("maintenance").skip()
    for key, hint in _OF_FILE.items():
        if key in top and top.take(key) is not False:
            top.lose(f"{key} {hint}".strip(), top.line_of(key))
    top.rest({"debug": (False,), "disable-monitoring-lock": (False,), "skip-invalid-config-update": (False,)})
    return drafts, list(top.losses)


def _thresholds(top: ForeignTable) -> dict[str, int]:
    alerting = top.take("alerting")
    found: dict[str, int] = {}
    for kind, provider in alerting.values.items() if isinstance(alerting, Mapped) else ():
        default = ForeignTable(provider).table("default-alert") if isinstance(provider, Mapped) else None
        found[kind] = FAILURES if default is None else default.whole("failure-threshold", FAILURES)
    return found


def _named(table: ForeignTable, default: str) -> Draft:
    name, group = table.text("name") or default, table.text("group")
    draft = Draft(f"{group}/{name}" if group else name, source=table)
    if group:
        draft.put("tags", [group], table.line_of("group"))
    if not table.flag("enabled", default=True):
        draft.options["enabled"] = False
    return draft


def _endpoint(table: ForeignTable, default: str, thresholds: Mapping[str, int]) -> Iterator[Draft]:
    draft = _named(table, default)
    client = table.table("client")
    draft.put("interval", table.text("interval", INTERVAL), table.line_of("interval"))
    draft.put("timeout", client.text("timeout", TIMEOUT), client.line_of("timeout"))
    _take_request(draft, table)
    take_conditions(draft, table.lined("conditions"))
    _take_alerts(draft, table, thresholds)
    windows = [window(each, f"maintenance of {draft.name}", [draft]) for each in table.tables("maintenance-windows")]
    domain = list(_domain(draft, table))
    _take_sign_in(draft, client.table("oauth2"))
    table.rest(_SILENT)
    yield draft
    yield from domain
    yield from windows


def _take_request(draft: Draft, table: ForeignTable) -> None:
    options, client = draft.options, table.table("client")
    take_url(draft, table.text("url"), table.line_of("url"))
    _take_place(draft, table)
    if client.flag("insecure"):
        draft.put("verify", value=False, line=client.line_of("insecure"))
    family = client.text("network", "ip")
    if family in _FAMILIES:
        draft.put("ip", _FAMILIES[family], client.line_of("network"))
    ignores = client.flag("ignore-redirect")
    if not str(draft.url).startswith("http"):
        return
    if not ignores:
        options["redirects"] = REDIRECTS
    if "method" in table:
        draft.put("method", table.text("method").upper(), table.line_of("method"))
    draft.lines |= {key: table.line_of(key) for key in ("headers", "body")}
    take_headers(draft, {name: table.table("headers").text(name) for name in table.table("headers")})
    _take_body(draft, table)


def _take_sign_in(draft: Draft, oauth: ForeignTable) -> None:
    if "token-url" in oauth and "client-id" in oauth and str(draft.url).startswith("http"):
        oauth.take("client-id")
        oauth.take("client-secret")
        sign_in_first(draft, oauth.text("token-url"), scopes=" ".join(oauth.texts("scopes")))


def _take_body(draft: Draft, table: ForeignTable) -> None:
    body = table.text("body")
    if not body:
        return
    for placeholder, value in (
        ("[ENDPOINT_NAME]", table.text("name")),
        ("[ENDPOINT_GROUP]", table.text("group")),
        ("[ENDPOINT_URL]", str(draft.url)),
    ):
        body = body.replace(placeholder, value)
    for each in sorted({found[0] for found in _FILLED.finditer(body)}):
        draft.leave(f"{each} in its body, which is sent as it stands", table.line_of("body"))
    if table.flag("graphql"):
        body = json.dumps({"query": body})
        draft.header("Content-Type", "application/json")
    take_body(draft, body)


def _take_place(draft: Draft, table: ForeignTable) -> None:
    scheme, _, rest = str(draft.url).partition("://")
    if "dns" in table:
        dns = table.table("dns")
        name, kind = dns.text("query-name").rstrip("."), dns.text("query-type", "A")
        draft.url = f"dns://{bracketed((rest or scheme).rstrip('/'))}/{name}?type={kind}"
    elif scheme == "icmp":
        draft.url = f"icmp://{bracketed(rest)}"
    elif scheme == "starttls":
        draft.url, draft.options["dialogue"] = f"tcp://{rest}", list(SMTP)
    elif scheme == "ssh":
        draft.url = f"tcp://{rest if ':' in rest else f'{rest}:22'}"
        draft.options["expect"] = "SSH-"
        draft.leave("signing in by SSH: only the greeting is looked for", table.line_of("url"))
    elif scheme not in {"http", "https", "tcp", "tls"}:
        draft.drop(f"a check of {scheme}://" if rest else "a check without a URL", table.line_of("url"))


def _take_alerts(draft: Draft, table: ForeignTable, thresholds: Mapping[str, int]) -> None:
    """An alert after n failures becomes n attempts, each after an interval."""
    wanted = [
        each.whole("failure-threshold", thresholds.get(each.text("type"), FAILURES))
        for each in table.tables("alerts")
        if each.flag("enabled", default=True)
    ]
    if not wanted:
        return
    attempts = max(min(wanted), 1)
    if attempts > 1 and not str(draft.url).startswith("push:"):
        draft.options["max_attempts"] = min(attempts, _MOST_ATTEMPTS)
        draft.options["retry_interval"] = draft.options["interval"]
    kept = f"all but failure-threshold {attempts}" if "max_attempts" in draft.options else "all of it"
    draft.leave(f"the key alerts: {kept} (see [[channel]])", table.line_of("alerts"))
    if attempts > _MOST_ATTEMPTS:
        draft.leave(f"failure-threshold {attempts}: ten attempts are the most", table.line_of("alerts"))


def _domain(draft: Draft, table: ForeignTable) -> Iterator[Draft]:
    length = draft.options.pop("down_within", None)
    if length is None:
        return
    domain, line = domain_of(host_of(str(draft.url))), table.line_of("conditions")
    if not domain:
        draft.leave("[DOMAIN_EXPIRATION]: its URL has no domain", line)
        return
    own = Draft(f"{draft.name} (domain)", f"domain://{domain}")
    own.options |= {"down_within": length, "expires_within": f"{hours(length) + FORTNIGHT:g}h"}
    own.options |= {key: draft.options[key] for key in ("tags", "enabled") if key in draft.options}
    host = host_of(str(draft.url))
    own.leave(
        f"{domain} is taken for the domain of {host}, is asked for every six hours, degraded two weeks before", line
    )
    yield own


def _external(table: ForeignTable, default: str, thresholds: Mapping[str, int]) -> Draft:
    draft = _named(table, default)
    draft.url = f"push://{_NO_WORD.sub('-', draft.name.lower()).strip('-') or 'target'}"
    interval = table.table("heartbeat").text("interval")
    draft.options |= {"interval": interval, "grace": "1s"}
    table.take("token")
    draft.options["token"] = Hidden("token", "its token, of at least 16 letters, digits, - and _")
    draft.leave("signals come in at /push/TOKEN of [push], not at /api/v1/endpoints")
    if interval.strip("0smh") == "":
        draft.drop("it has no heartbeat.interval: here a target that reports has to do so in time")
    _take_alerts(draft, table, thresholds)
    table.rest()
    return draft


def _suite(table: ForeignTable, default: str, thresholds: Mapping[str, int]) -> Draft:
    draft = _named(table, default)
    interval, timeout = OF_A_SUITE
    draft.options |= {"interval": table.text("interval", interval), "timeout": table.text("timeout", timeout)}
    context = {key: table.table("context").text(key) for key in table.table("context")}
    draft.steps = steps_of(table, context, _take_request)
    for step in draft.steps:
        if step.is_dropped:
            draft.drop(f"its step {step.name}, without which the others say something else")
    if not draft.steps:
        draft.drop("it has no endpoints")
    _take_alerts(draft, table, thresholds)
    table.rest()
    return draft

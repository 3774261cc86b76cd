"""Gatus: its endpoints, with their conditions, as its documentation of 5.36 describes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from .conditions import take_conditions
from .draft import Draft, NotImported, list_of, table_of
from .reading import read_yaml

INTERVAL: Final = "60s"
TIMEOUT: Final = "10s"
REDIRECTS: Final = 5

_TAKEN: Final = {
    "name",
    "group",
    "url",
    "method",
    "headers",
    "body",
    "interval",
    "conditions",
    "client",
    "dns",
    "enabled",
}
_OF_CLIENT: Final = {"timeout", "insecure", "ignore-redirect"}
_LEFT_WHOLE: Final = {
    "external-endpoints": "what others report of them (see push checks)",
    "suites": "(see checks of several steps)",
    "maintenance": "(see [[maintenance]])",
    "alerting": "(see [[channel]])",
    "remote": "",
}
SMTP: Final = [
    {"expect": "220 *"},
    {"send": "EHLO timerqueue\r\n"},
    {"expect": "250 *"},
    {"send": "STARTTLS\r\n"},
    {"expect": "220 *"},
    {"starttls": True},
]


def read_gatus(file: Path, _targets: Mapping[str, list[str]]) -> tuple[list[Draft], list[str]]:
    """Read a file of Gatus: drafts of its endpoints, and what of the whole file could not be carried over."""
    tables = table_of(read_yaml(file), str(file))
    endpoints = list_of(tables.get("endpoints"), "endpoints")
    if not endpoints:
        raise NotImported(f"{file}: there are no endpoints, so it is no configuration of Gatus, or an empty one")
    drafts = [_draft(table_of(each, f"endpoints, number {number}"), number) for number, each in enumerate(endpoints, 1)]
    return drafts, list(_left_of(tables))


def _left_of(tables: Mapping[str, Any]) -> Iterator[str]:
    for key, hint in _LEFT_WHOLE.items():
        if tables.get(key):
            yield f"{key} {hint}".strip()


def _draft(endpoint: Mapping[str, Any], number: int) -> Draft:
    name, group = str(endpoint.get("name") or f"endpoint {number}"), endpoint.get("group")
    draft = Draft(f"{group}/{name}" if group else name, str(endpoint.get("url", "")))
    options = draft.options
    options["interval"] = str(endpoint.get("interval", INTERVAL))
    if group:
        options["tags"] = [str(group)]
    if endpoint.get("enabled") is False:
        options["enabled"] = False
    _take_client(draft, table_of(endpoint.get("client"), f"client of {draft.name}"))
    _take_place(draft, endpoint)
    if draft.url.startswith("http"):
        _take_request(draft, endpoint)
    take_conditions(draft, [str(each) for each in list_of(endpoint.get("conditions"), f"conditions of {draft.name}")])
    for key in endpoint:
        if key not in _TAKEN:
            draft.leave(f"the key {key}")
    return draft


def _take_client(draft: Draft, client: Mapping[str, Any]) -> None:
    draft.options["timeout"] = str(client.get("timeout", TIMEOUT))
    if client.get("insecure"):
        draft.options["verify"] = False
    if draft.url.startswith("http") and not client.get("ignore-redirect"):
        draft.options["redirects"] = REDIRECTS
    for key in client:
        if key not in _OF_CLIENT:
            draft.leave(f"the key {key} of its client")


def _take_place(draft: Draft, endpoint: Mapping[str, Any]) -> None:
    """Turn its URL into one of ours."""
    scheme, _, rest = draft.url.partition("://")
    if dns := table_of(endpoint.get("dns"), f"dns of {draft.name}"):
        kind = dns.get("query-type", "A")
        draft.url = f"dns://{rest or scheme}/{str(dns.get('query-name', '')).rstrip('.')}?type={kind}"
    elif scheme == "starttls":
        draft.url, draft.options["dialogue"] = f"tcp://{rest}", list(SMTP)
    elif scheme == "ssh":
        draft.url = f"tcp://{rest if ':' in rest else f'{rest}:22'}"
        draft.options["expect"] = "SSH-"
        draft.leave("signing in by SSH: only the greeting is looked for")


def _take_request(draft: Draft, endpoint: Mapping[str, Any]) -> None:
    if "method" in endpoint:
        draft.options["method"] = str(endpoint["method"]).upper()
    if endpoint.get("body") and not endpoint.get("graphql"):
        draft.options["body"] = str(endpoint["body"])
    draft.take_headers(table_of(endpoint.get("headers"), f"headers of {draft.name}"))

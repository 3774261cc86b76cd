"""Uptime Kuma: the monitors of a backup, as its version 1 exports them, in JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from .draft import Draft, NotImported, list_of, table_of, whole_of
from .reading import read_json

_DNS: Final = 53
_REDIRECTS: Final = 5
_MOST_ATTEMPTS: Final = 10


def read_kuma(file: Path, _targets: Mapping[str, list[str]]) -> tuple[list[Draft], list[str]]:
    """Read a backup: drafts of its monitors, and what of the whole file could not be carried over."""
    tables = table_of(read_json(file), str(file))
    if "monitorList" not in tables:
        raise NotImported(f"{file}: there is no monitorList, so it is no backup of Uptime Kuma")
    monitors = list_of(tables["monitorList"], "monitorList")
    drafts = [_draft(table_of(each, f"monitor number {number}"), number) for number, each in enumerate(monitors, 1)]
    left = []
    for key, hint in (("notificationList", "notifications (see [[channel]])"), ("proxyList", "proxies")):
        if tables.get(key):
            left.append(f"{len(list_of(tables[key], key))} {hint}")
    return drafts, left


def _draft(monitor: Mapping[str, Any], number: int) -> Draft:
    draft = Draft(str(monitor.get("name") or f"monitor {number}"), "")
    _take_times(draft, monitor)
    take = _BY_TYPE.get(str(monitor.get("type")))
    if take is None:
        draft.leave(f"a monitor of type {monitor.get('type')}")
        return draft
    take(draft, monitor)
    if monitor.get("upsideDown"):
        draft.leave("upside down: it is up here when it was down there")
    if monitor.get("proxyId"):
        draft.leave("its proxy")
    return draft


def _take_times(draft: Draft, monitor: Mapping[str, Any]) -> None:
    options = draft.options
    options["interval"] = f"{monitor.get('interval') or 60}s"
    if monitor.get("timeout"):
        options["timeout"] = f"{monitor['timeout']}s"
    if retries := whole_of(draft, monitor, "maxretries"):
        options["max_attempts"] = min(retries + 1, _MOST_ATTEMPTS)
        options["retry_interval"] = f"{monitor.get('retryInterval') or monitor.get('interval') or 60}s"
        if retries >= _MOST_ATTEMPTS:
            draft.leave(f"{retries} retries: ten attempts are the most")
    if monitor.get("active") in (0, False):
        options["enabled"] = False
    tags = [
        str(each["name"])
        for each in list_of(monitor.get("tags"), "tags")
        if isinstance(each, Mapping) and each.get("name")
    ]
    if tags:
        options["tags"] = tags


def _take_http(draft: Draft, monitor: Mapping[str, Any]) -> None:
    draft.url = str(monitor.get("url") or "")
    options = draft.options
    if (method := str(monitor.get("method") or "GET").upper()) != "GET":
        options["method"] = method
    codes = [str(each) for each in list_of(monitor.get("accepted_statuscodes"), "accepted_statuscodes")]
    options["expect_status"] = codes or "200-299"
    options["redirects"] = min(whole_of(draft, monitor, "maxredirects", _REDIRECTS), _REDIRECTS)
    if monitor.get("ignoreTls"):
        options["verify"] = False
    if monitor.get("body"):
        options["body"] = str(monitor["body"])
    _take_headers(draft, monitor)


def _take_headers(draft: Draft, monitor: Mapping[str, Any]) -> None:
    if monitor.get("headers"):
        try:
            draft.take_headers(table_of(json.loads(monitor["headers"]), "headers"))  # JSON within JSON
        except (TypeError, ValueError, RecursionError, NotImported):
            draft.leave("its headers, which are no JSON")
    if monitor.get("basic_auth_user"):
        hidden = draft.hide("Authorization", "Basic and its user and password in base64")
        draft.options.setdefault("headers", {})["Authorization"] = hidden


def _take_keyword(draft: Draft, monitor: Mapping[str, Any]) -> None:
    _take_http(draft, monitor)
    if monitor.get("keyword"):
        draft.options["not_contains" if monitor.get("invertKeyword") else "contains"] = str(monitor["keyword"])


def _take_json(draft: Draft, monitor: Mapping[str, Any]) -> None:
    _take_http(draft, monitor)
    path, wanted = str(monitor.get("jsonPath") or ""), monitor.get("expectedValue")
    path = path if path.startswith("$") else f"$.{path}"
    shown = '"' + str(wanted).replace("\\", "\\\\").replace('"', '\\"') + '"'
    draft.options["json"] = [path if wanted is None else f"{path} == {shown}"]
    draft.leave("its value is compared as text here: write a number without quotes")


def _take_port(draft: Draft, monitor: Mapping[str, Any]) -> None:
    draft.url = f"tcp://{_host(monitor)}:{monitor.get('port')}"


def _take_ping(draft: Draft, monitor: Mapping[str, Any]) -> None:
    draft.url = f"icmp://{_host(monitor)}"


def _take_dns(draft: Draft, monitor: Mapping[str, Any]) -> None:
    server = str(monitor.get("dns_resolve_server") or "1.1.1.1").split(",")[0].strip()
    port = monitor.get("port") or _DNS
    kind = monitor.get("dns_resolve_type") or "A"
    draft.url = f"dns://{server}{'' if port == _DNS else f':{port}'}/{monitor.get('hostname') or ''}?type={kind}"


def _host(monitor: Mapping[str, Any]) -> str:
    host = str(monitor.get("hostname") or "")
    return f"[{host}]" if ":" in host else host


_BY_TYPE: Final[Mapping[str, Callable[[Draft, Mapping[str, Any]], None]]] = {
    "http": _take_http,
    "keyword": _take_keyword,
    "json-query": _take_json,
    "port": _take_port,
    "ping": _take_ping,
    "dns": _take_dns,
}

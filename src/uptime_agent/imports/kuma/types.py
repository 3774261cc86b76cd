"""Types of Kuma's monitors besides HTTP."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ..foreign import Draft, ForeignTable, Hidden, Items, Mapped, bracketed, take_url
from .http import take_http, take_json, take_keyword

_DNS: Final = 53
_NTP: Final = 123
_TRIVIAL: Final = re.compile(r"\s*(?:SELECT\s+1\s*;?\s*)?", re.IGNORECASE)
_NO_WORD: Final = re.compile(r"[^a-z0-9]+")


def _take_port(draft: Draft, monitor: ForeignTable) -> None:
    draft.url = f"tcp://{_host(monitor)}:{monitor.text('port')}"
    draft.lines["url"] = monitor.line_of("hostname")


def _take_ping(draft: Draft, monitor: ForeignTable) -> None:
    draft.url = f"icmp://{_host(monitor)}"
    draft.lines["url"] = monitor.line_of("hostname")
    if (count := monitor.whole("ping_count", 1)) > 1:
        draft.put("packets", count, monitor.line_of("ping_count"))


def _take_dns(draft: Draft, monitor: ForeignTable) -> None:
    server, *others = [each.strip() for each in (monitor.text("dns_resolve_server") or "1.1.1.1").split(",")]
    for each in others:
        draft.leave(f"the resolver {each}: a check asks one", monitor.line_of("dns_resolve_server"))
    port = monitor.whole("port", _DNS) or _DNS
    kind = monitor.text("dns_resolve_type") or "A"
    place = f"{bracketed(server)}{'' if port == _DNS else f':{port}'}"
    draft.url = f"dns://{place}/{monitor.text('hostname')}?type={kind}"
    draft.lines["url"] = monitor.line_of("hostname")
    _take_conditions(draft, monitor)


def _take_conditions(draft: Draft, monitor: ForeignTable) -> None:
    value = monitor.take("conditions")
    items = value.values if isinstance(value, Items) else []
    wanted: list[str] = []
    for position, each in enumerate(items):
        values: Mapping[str, Any] = each.values if isinstance(each, Mapped) else {}
        is_alternative = position == 0 or values.get("andOr") == "or"
        if (
            values.get("type") != "expression"
            or values.get("variable") != "record"
            or values.get("operator") != "equals"
            or not isinstance(values.get("value"), str)
            or not is_alternative
        ):
            draft.leave("the key conditions: more than which record has to be there", monitor.line_of("conditions"))
            return
        wanted.append(values["value"])
    if wanted:
        draft.options |= {"answers": wanted, "match": "any"}


def _take_push(draft: Draft, monitor: ForeignTable) -> None:
    draft.url = f"push://{_NO_WORD.sub('-', draft.name.lower()).strip('-') or 'target'}"
    monitor.take("pushToken")
    draft.options |= {"token": Hidden("token", "its pushToken"), "grace": "1s"}
    draft.leave("signals come in at /push/TOKEN of [push], not at /api/push/TOKEN", monitor.line)


def _take_postgres(draft: Draft, monitor: ForeignTable) -> None:
    line = monitor.line_of("databaseConnectionString")
    given = monitor.text("databaseConnectionString")
    url = f"postgresql://{given.partition('://')[2]}"
    place, sign, query = url.partition("?")
    settings = [each for each in query.split("&") if each]
    for each in settings:
        key, _, value = each.partition("=")
        if key == "sslmode":
            draft.put("sslmode", value, line)
        else:
            draft.leave(f"{key} of its databaseConnectionString", line)
    take_url(draft, place if sign else url, line)
    if not _TRIVIAL.fullmatch(monitor.text("databaseQuery")):
        draft.leave(
            "the key databaseQuery: a check asks nothing but whether the server answers",
            monitor.line_of("databaseQuery"),
        )


def _take_ntp(draft: Draft, monitor: ForeignTable) -> None:
    port = monitor.whole("port", _NTP) or _NTP
    draft.url = f"ntp://{_host(monitor)}{'' if port == _NTP else f':{port}'}"
    if stratum := monitor.whole("ntpStratumThreshold"):
        draft.put("max_stratum", stratum, monitor.line_of("ntpStratumThreshold"))
    for key, ours in (("ntpTimeOffsetThreshold", "max_offset"), ("ntpRootDispersionThreshold", "max_root_dispersion")):
        if milliseconds := monitor.whole(key):
            draft.put(ours, f"{milliseconds}ms", monitor.line_of(key))


def _host(monitor: ForeignTable) -> str:
    return bracketed(monitor.text("hostname"))


TYPES: Final[Mapping[str, Callable[[Draft, ForeignTable], None]]] = {
    "http": take_http,
    "keyword": take_keyword,
    "json-query": take_json,
    "port": _take_port,
    "ping": _take_ping,
    "dns": _take_dns,
    "push": _take_push,
    "postgres": _take_postgres,
    "ntp": _take_ntp,
}

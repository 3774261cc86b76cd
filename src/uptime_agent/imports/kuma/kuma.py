"""A backup of Uptime Kuma."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from ..foreign import Draft, ForeignTable, Items, Mapped, NotImported, domain_of, host_of, read_json, table_of
from .defaults import tell_rest
from .http import EXPIRES_WITHIN, signs_in_first, take_token
from .types import TYPES

_MOST_ATTEMPTS: Final = 10
_INTERVAL: Final = 60
_SHARE: Final = 0.8
"""The default timeout, as a share of the interval."""

_OF_A_TAG: Final = ("id", "tag_id", "monitor_id", "color")

_ASKS_BY_HTTP: Final = frozenset({"http", "keyword", "json-query"})
_OF_FILE: Final = {"notificationList": "notifications (see [[channel]])", "proxyList": "proxies"}


def read_kuma(file: Path, _targets: Mapping[str, list[str]]) -> tuple[list[Draft], list[str]]:
    """Read drafts of monitors, and losses. Raises NotImported."""
    top = table_of(read_json(file), str(file))
    if "monitorList" not in top:
        raise NotImported(f"{file}: there is no monitorList, so it is no backup of Uptime Kuma")
    monitors = list(_monitors(top, file))
    each = [list(_drafts(monitor, number)) for number, monitor in enumerate(monitors, 1)]
    _gather([(monitor, first) for monitor, (first, *_) in zip(monitors, each, strict=True)])
    for key, hint in _OF_FILE.items():
        value = top.take(key)
        if isinstance(value, (Items, Mapped)) and value.values:
            top.lose(f"{len(value.values)} {hint}", top.line_of(key))
    top.take("version")
    top.rest()
    for monitor in monitors:
        tell_rest(monitor)
    return [draft for of_one in each for draft in of_one], list(top.losses)


def _monitors(top: ForeignTable, file: Path) -> Iterator[ForeignTable]:
    value = top.take("monitorList")
    if not isinstance(value, (Items, Mapped)):
        raise NotImported(f"{file}: monitorList: expected a list")
    monitors = value.values.values() if isinstance(value, Mapped) else value.values
    for number, monitor in enumerate(monitors, 1):
        if not isinstance(monitor, Mapped):
            raise NotImported(f"{file}: monitor number {number}: expected a table")
        yield ForeignTable(monitor)


def _drafts(monitor: ForeignTable, number: int) -> Iterator[Draft]:
    kind = monitor.text("type")
    draft = Draft(monitor.text("name") or f"monitor {number}", source=monitor)
    if kind == "group":
        draft.kind = "group"
        draft.options |= {"members": [], "down_if": "any"}
        monitor.whole("interval")  # of asking its members, which is not done here
        if not monitor.flag("active", default=True):
            draft.leave("it is paused, which a group cannot be: see enabled of its members", monitor.line_of("active"))
        yield draft
        return
    _take_times(draft, monitor, kind)
    take = TYPES.get(kind)
    if take is None:
        draft.drop(f"a monitor of type {kind}", monitor.line_of("type"))
        monitor.skip()
    else:
        take(draft, monitor)
    if monitor.flag("upsideDown"):
        draft.drop("upside down: it would be up here when it was down there", monitor.line_of("upsideDown"))
    _take_telling(draft, monitor)
    domain = [_domain(draft, monitor)] if monitor.flag("domainExpiryNotification") else []
    if kind in _ASKS_BY_HTTP and signs_in_first(monitor):
        take_token(draft, monitor)
    yield draft
    yield from domain


def _take_times(draft: Draft, monitor: ForeignTable, kind: str) -> None:
    options = draft.options
    interval = monitor.whole("interval", _INTERVAL) or _INTERVAL
    draft.put("interval", f"{interval}s", monitor.line_of("interval"))
    if kind in _ASKS_BY_HTTP or "timeout" in monitor:
        draft.put("timeout", f"{monitor.text('timeout', '0').strip()}s", monitor.line_of("timeout"))
        if options["timeout"] in {"0s", "s"}:
            options["timeout"] = f"{interval * _SHARE:g}s"
    if retries := monitor.whole("maxretries"):
        options["max_attempts"] = min(retries + 1, _MOST_ATTEMPTS)
        options["retry_interval"] = f"{monitor.whole('retryInterval') or interval}s"
        if retries >= _MOST_ATTEMPTS:
            draft.leave(f"{retries} retries: ten attempts are the most", monitor.line_of("maxretries"))
    if not monitor.flag("active", default=True):
        options["enabled"] = False
    if monitor.flag("forceInactive"):
        options["enabled"] = False
        draft.leave("its group is paused, so it has enabled = false", monitor.line_of("forceInactive"))
    tags = []
    for each in monitor.tables("tags"):
        name, value = each.text("name"), each.text("value")
        tags += [f"{name}={value}" if value else name] if name else []
        for key in _OF_A_TAG:
            each.take(key)
        each.rest()
        draft.left.update(each.losses)
    if tags:
        draft.put("tags", tags, monitor.line_of("tags"))


def _take_telling(draft: Draft, monitor: ForeignTable) -> None:
    if monitor.whole("resendInterval"):
        monitor.lose_key("resendInterval", "see [notify] reminders")
    told = monitor.take("notificationIDList")
    if isinstance(told, (Mapped, Items)) and told.values:
        monitor.lose_key("notificationIDList", "see [[channel]] and notify")
    if monitor.text("proxyId"):
        draft.leave("its proxy", monitor.line_of("proxyId"))


def _domain(draft: Draft, monitor: ForeignTable) -> Draft:
    host, line = host_of(str(draft.url)) or monitor.text("hostname"), monitor.line_of("domainExpiryNotification")
    own = Draft(f"{draft.name} (domain)", f"domain://{domain_of(host)}")
    own.options["expires_within"] = EXPIRES_WITHIN
    if draft.options.get("enabled") is False:
        own.options["enabled"] = False
    if not domain_of(host):
        own.drop("domainExpiryNotification: it has no domain", line)
    else:
        own.leave(f"{domain_of(host)} is taken for the domain of {host}, and asked for every six hours", line)
    return own


def _gather(found: list[tuple[ForeignTable, Draft]]) -> None:
    """A monitor belongs to its group and the groups around it. A group is down if one member is."""
    groups = {monitor.text("id"): (monitor, draft) for monitor, draft in found if draft.kind == "group"}
    for monitor, draft in found:
        above = monitor.text("parent")
        if above and above not in groups:
            draft.leave(f"its group, which has the id {above} and is not there", monitor.line_of("parent"))
        seen: set[str] = set()
        while draft.kind == "check" and above in groups and above not in seen:
            seen.add(above)
            around, group = groups[above]
            group.options["members"].append(draft)
            above = around.text("parent")

"""Monitors of Heartbeat."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ..foreign import (
    Draft,
    ForeignTable,
    Items,
    Mapped,
    NotImported,
    bracketed,
    files_like,
    public_name,
    read_yaml,
    table_of,
    take_said,
    take_url,
    undotted,
)
from .http import take_http
from .tls import is_tls, take_tls

TIMEOUT: Final = "16s"
INTERVAL: Final = "@every 10s"
_EVERY: Final = re.compile(r"\s*@every\s+(\S+)\s*")
_ANY_HOUR: Final = re.compile(r"(?:\S+\s+)?\S+(?:\s+[*?]){3,5}")
_SCHEMES: Final = {"tcp": False, "plain": False, "ssl": True, "tls": True}
_TYPES: Final = ("http", "tcp", "icmp")
_OF_FILE: Final = {"scheduler": "(see [limits] total)", "jobs": "(see [limits])"}


def read_heartbeat(file: Path, _targets: Mapping[str, list[str]]) -> tuple[list[Draft], list[str]]:
    """Read a heartbeat.yml and the files that it names, or these alone. Raises NotImported."""
    drafts: list[Draft] = []
    left: list[str] = []
    if file.is_dir():
        for each in [*files_like(file, "*.yml"), *files_like(file, "*.yaml")]:
            _read_monitors(_undotted(each), each, "", drafts, left)
    elif isinstance(value := _undotted(file), Items):
        _read_monitors(value, file, "", drafts, left)
    else:
        _read_whole(table_of(value, str(file)), file, drafts, left)
    if not drafts:
        why = "".join(f"; {each}" for each in left[:3])
        raise NotImported(f"{file}: there are no heartbeat.monitors in it that can be read{why}")
    return drafts, left


def _read_whole(top: ForeignTable, file: Path, drafts: list[Draft], left: list[str]) -> None:
    own = top.table("heartbeat")
    zone = own.table("scheduler").text("location")
    _read_monitors(own.take("monitors"), file, zone, drafts, left)
    _read_named(own, file, zone, drafts, left)
    for key, hint in _OF_FILE.items():
        if any(each != "location" for each in own.table(key)):
            own.lose(f"heartbeat.{key} {hint}", own.line_of(key))
        own.table(key).skip()
    top.rest()
    left[:0] = top.losses


def _undotted(file: Path) -> Any:
    try:
        return undotted(read_yaml(file))
    except NotImported as exc:
        raise NotImported(str(exc) if str(exc).startswith(str(file)) else f"{file}: {exc}") from None


def _read_named(own: ForeignTable, file: Path, zone: str, drafts: list[Draft], left: list[str]) -> None:
    config = own.table("config").table("monitors")
    pattern, line = config.text("path"), config.line_of("path")
    config.table("reload").skip()  # a running agent follows its own file
    config.flag("enabled", default=True)
    if not pattern:
        return
    found = files_like(file.parent, pattern.replace("${path.config}", str(file.parent.resolve())))
    if not found:
        config.lose(f"heartbeat.config.monitors: there is no file {pattern}", line)
    for each in found:
        try:
            value = _undotted(each)
        except NotImported as exc:
            config.lose(f"heartbeat.config.monitors: {exc}", line)
            continue
        _read_monitors(value, each, zone, drafts, left)


def _read_monitors(value: Any, file: Path, zone: str, drafts: list[Draft], left: list[str]) -> None:
    place = f" of {file.name}"
    if value is not None and not isinstance(value, Items):
        left.append(f"{file.name}: expected a list of monitors")
        return
    for monitor, line in zip(value.values, value.lines, strict=True) if value is not None else ():
        if not isinstance(monitor, Mapped):
            left.append(f"{file.name}: expected a list of monitors (line {line})")
            continue
        drafts += _drafts(ForeignTable(monitor, place=place), len(drafts) + 1, zone)


def _drafts(monitor: ForeignTable, number: int, zone: str) -> Iterator[Draft]:
    kind = monitor.text("type")
    name = monitor.text("name") or monitor.text("id")
    if not name or not monitor.text("name"):
        monitor.take("id")
    elif "id" in monitor:
        monitor.lose_key("id", "a check is known by its name")
    places = _places(monitor, kind)
    first = Draft(name or f"monitor {number}", source=monitor)
    if kind not in _TYPES:
        first.drop(f"a monitor of type {kind}" if kind else "a monitor without a type", monitor.line_of("type"))
        yield first
        return
    if not places:
        first.drop("a monitor without hosts", monitor.line)
        yield first
        return
    for place in places:
        title = f"{name} ({place})" if name and len(places) > 1 else name or place
        draft = Draft(public_name(title), source=monitor)
        if place is not places[0]:
            draft.left = {}
        _take_common(draft, monitor, zone)
        _take_kind(draft, monitor, kind, place)
        if place is not places[0]:
            draft.left = {each: None for each in draft.left if each not in monitor.losses}
        yield draft
    monitor.rest({"fields_under_root": (False,), "keep_null": (False,)})


def _places(monitor: ForeignTable, kind: str) -> list[str]:
    hosts = [*monitor.texts("hosts"), *monitor.texts("urls")]
    ports = monitor.texts("ports") if kind == "tcp" else []
    return [place for each in hosts for place in (_with_ports(each, ports) if kind == "tcp" else [each])]


def _with_ports(host: str, ports: list[str]) -> list[str]:
    scheme, sign, rest = host.rpartition("://")
    place = bracketed(rest)
    has_port = re.search(r":[0-9]+$", place) is not None
    return [f"{scheme}{sign}{place}"] if has_port or not ports else [f"{scheme}{sign}{place}:{each}" for each in ports]


def _take_common(draft: Draft, monitor: ForeignTable, zone: str) -> None:
    options = draft.options
    schedule = monitor.text("schedule", INTERVAL)
    every = _EVERY.fullmatch(schedule)
    if every is not None:
        draft.put("interval", every[1], monitor.line_of("schedule"))
    else:
        draft.put("schedule", f"CRON_TZ={zone} {schedule}" if zone else schedule, monitor.line_of("schedule"))
        if not zone and not _ANY_HOUR.fullmatch(schedule.strip()):
            draft.leave("its schedule is in UTC here, in the zone of that machine there", monitor.line_of("schedule"))
    draft.put("timeout", monitor.text("timeout", TIMEOUT), monitor.line_of("timeout"))
    if monitor.text("mode", "any") != "any":
        draft.put("mode", monitor.text("mode"), monitor.line_of("mode"))
    v4, v6 = monitor.flag("ipv4", default=True), monitor.flag("ipv6", default=True)
    if v4 != v6:
        draft.put("ip", "4" if v4 else "6", monitor.line_of("ipv6" if v4 else "ipv4"))
    elif not v4:
        draft.drop("neither ipv4 nor ipv6", monitor.line_of("ipv4"))
    if not monitor.flag("enabled", default=True):
        options["enabled"] = False
    if tags := monitor.texts("tags"):
        draft.put("tags", tags, monitor.line_of("tags"))


def _take_kind(draft: Draft, monitor: ForeignTable, kind: str, place: str) -> None:
    match kind:
        case "http":
            take_http(draft, monitor, place if "://" in place else f"http://{bracketed(place)}")
        case "icmp":
            draft.url = f"icmp://{bracketed(place.removeprefix('icmp://'))}"
            if monitor.text("wait", "1s") != "1s":
                draft.leave(f"wait {monitor.text('wait')} (see packets)", monitor.line_of("wait"))
        case _:
            _take_tcp(draft, monitor, place)


def _take_tcp(draft: Draft, monitor: ForeignTable, place: str) -> None:
    scheme, _, rest = place.rpartition("://")
    check = monitor.table("check")
    said, heard = check.text("send"), check.text("receive")
    take_url(draft, f"tcp://{rest}", monitor.line_of("hosts"))
    if scheme and scheme not in _SCHEMES:
        draft.drop(f"a host that begins with {scheme}://", monitor.line_of("hosts"))
    if _SCHEMES.get(scheme, is_tls(monitor)):
        draft.options["tls"] = True
    if said:
        draft.options["send"], _ = take_said(draft, said, check.line_of("send"), signs_in=False)
    if heard:
        draft.options["expect"] = heard
    take_tls(draft, monitor)

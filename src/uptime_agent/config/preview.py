"""The preview for `timerqueue check`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import datetime
from difflib import get_close_matches
from itertools import pairwise
from typing import Final

from schedule import After, Cron, Every, Schedule

from ..checks import Mode, PushCheck
from ..text import host_name, starts, wording
from .channels import shown
from .config import Config
from .limits import HOST, HOSTS, TOTAL
from .target import Target

LOOK_AHEAD: Final = 20

SHOWN: Final = 3

MOST_COMPARED: Final = 20


def config_lines(config: Config, now: datetime) -> Iterator[str]:
    """Targets with their next starts, then the load against the limits."""
    for target in config.targets:
        yield from _target_lines(target, now)
    enabled = [target for target in config.targets if target.is_enabled]
    yield from _group_lines(config)
    yield from _maintenance_lines(config, now)
    yield from _server_lines(config)
    yield from shown(config.channels)
    yield from _place_lines(config)
    yield from _load_lines(config, enabled, now)
    yield from _too_slow(enabled)
    for warning in (*config.all_warnings, *_unused_hosts(config)):
        yield f"warning: {wording.harmless(warning)}"


def over(config: Config, now: datetime) -> list[Target]:
    """Targets that would never be checked. With one of them nothing starts."""
    coming = [each for each in config.targets if each.is_enabled and each.start != "now"]
    return [each for each in coming if not _comes_again(each.schedule, now) and not _starts_of(each, now, 1)]


def _comes_again(schedule: Schedule, now: datetime) -> bool:
    """Whether the next start comes before the year 10000."""
    try:
        return isinstance(schedule, (Every, After)) and bool(now + schedule.interval)
    except OverflowError:
        return False


def _starts_of(target: Target, now: datetime, count: int) -> list[datetime]:
    try:
        return starts(target.schedule.bind(target.name), now, count)
    except OverflowError:  # its phase in so long an interval lies after the year 9999
        return []


def per_second(schedule: Schedule, now: datetime) -> float:
    """Starts per second: a mean of the next ones."""
    if isinstance(schedule, (Every, After)):
        return 1 / schedule.interval.total_seconds()
    gaps = [(later - recheck).total_seconds() for recheck, later in pairwise([now, *starts(schedule, now, LOOK_AHEAD)])]
    return len(gaps) / sum(gaps) if gaps else 0.0


def _target_lines(target: Target, now: datetime) -> Iterator[str]:
    about = [str(target.schedule), f"timeout {target.timeout:g} s"]
    about += [f"mode {target.mode.value}"] if target.mode is Mode.ALL else []
    about += [f"needs {'all' if target.need is None else target.need}"] if target.need != 1 else []
    about += ["certificate not verified"] if target.is_unverified else []
    about += ["password may be sent in clear"] if target.may_send_in_clear else []
    about += [] if target.is_enabled else ["disabled"]
    yield f"{wording.printable(target.name)}: {target.kind} {target.check.url}, {', '.join(about)}"
    if target.is_enabled and isinstance(target.check, PushCheck):
        yield "    next: with each signal, or when none has come in time"
    elif target.is_enabled:
        is_now, schedule = target.start == "now", target.schedule
        # A start at once stands for the start that would come within half an interval.
        after = now + schedule.interval / 2 if is_now and isinstance(schedule, Every) and not schedule.anchor else now
        coming = [wording.stamp(each.timestamp()) for each in _starts_of(target, after, SHOWN)]
        yield f"    next: {'at once, then ' if is_now else ''}{', '.join(coming) or 'never again'}"
    if isinstance(target.schedule, Cron):
        for warning in target.schedule.warnings:
            yield f"    note: {warning}"


def _group_lines(config: Config) -> Iterator[str]:
    for group in config.groups:
        members = ", ".join(map(wording.printable, group.members))
        needed = len(group.members) if group.at_least is None else group.at_least
        yield f"group {wording.printable(group.name)}: {members}; down if {needed} of {len(group.members)} are"


def _maintenance_lines(config: Config, now: datetime) -> Iterator[str]:
    for planned in config.maintenance:
        coming = ", ".join(wording.stamp(each.timestamp()) for each in starts(planned.window.starts, now, SHOWN))
        about = (
            f"{wording.span(planned.window.length.total_seconds())}, {wording.count(len(planned.targets), 'target')}"
        )
        yield f"maintenance {wording.printable(planned.name)}: {about}; next: {coming or 'never again'}"


def _server_lines(config: Config) -> Iterator[str]:
    if config.tables is not None:
        yield f"more servers, and what holds for their probes: {wording.printable(str(config.tables))}"
    if not config.postgres:  # their probes take as long to import as all checks
        return
    from ..postgres import CATALOGUE  # noqa: PLC0415

    for server in config.postgres:
        on = sum(server.plan(probe).is_enabled for probe in CATALOGUE.values()) if server.is_enabled else 0
        about = [wording.count(on, "probe"), f"at most {wording.count(server.limit, 'connection')}"]
        about += ["password may be sent in clear"] if server.server.may_send_in_clear else []
        about += [] if server.is_enabled else ["disabled"]
        yield f"server {wording.printable(server.name)}: {server.server}, {', '.join(about)}"


def _place_lines(config: Config) -> Iterator[str]:
    if config.push is not None:
        yield f"signals come in at {_spoken(config.push.host, config.push.port)}"
    if config.api is not None:
        places = [str(config.api.socket)]
        places += [] if config.api.listen is None else [_spoken(*config.api.listen)]
        yield wording.printable(f"control API at {' and at '.join(places)}")
    if config.network.probes:
        probes = ", ".join(str(each.check.url) for each in config.network.probes)
        yield f"offline if none of these answers: {probes}"


def _spoken(host: str, port: int) -> str:
    return f"{f'[{host}]' if ':' in host else host}:{port}"


def _load_lines(config: Config, targets: list[Target], now: datetime) -> Iterator[str]:
    rates = [per_second(target.schedule, now) for target in targets]
    yield ""
    yield f"store: {config.store}"
    if config.postgres or config.tables is not None:
        yield f"metrics: {config.metrics.beside(config.store)}"
    yield f"load: {wording.count(len(targets), 'target')}, {sum(rates):.3g} checks per second"
    yield "if every check took all of its timeout:"
    for name, loads in _loads(targets, rates).items():
        if name.startswith(HOST) and name not in config.limits.named and len(loads) == 1:
            continue  # a target's only neighbour on its host is itself
        at_a_time, size = sum(loads), _size(config, name)
        fits = "fits" if at_a_time <= size else "DOES NOT FIT: checks would wait for room and start late"
        yield f"    {name}: {at_a_time:.3g} at a time, limit {size:g}: {fits}"


def _loads(targets: Iterable[Target], rates: Iterable[float]) -> dict[str, list[float]]:
    """No target is checked twice at the same time."""
    found: dict[str, list[float]] = {TOTAL: []}
    for target, rate in zip(targets, rates, strict=True):
        for name in (TOTAL, *target.needs):
            found.setdefault(name, []).append(min(rate * target.timeout, 1.0))
    return found


def _too_slow(targets: Iterable[Target]) -> Iterator[str]:
    """One line for all checks, as the defaults may be the cause."""
    found = [each for each in targets if each.timeout > _interval(each)]
    if found:
        first = found[0]
        others = f" (and {wording.count(len(found) - 1, 'other check')})" if len(found) > 1 else ""
        yield (
            f"note: {wording.printable(first.name)}{others}: timeout {first.timeout:g} s is longer than its interval"
            f" {_interval(first):g} s: a check that takes longer than the interval costs the next ones"
        )


def _interval(target: Target) -> float:
    return target.schedule.interval.total_seconds() if isinstance(target.schedule, Every) else math.inf


def _unused_hosts(config: Config) -> Iterator[str]:
    checked = {host_name(target.check.url.host) for target in config.targets}
    limited = {name.removeprefix(HOST) for name in config.limits.named if name.startswith(HOST)} - {"*"}
    may_redirect = any(getattr(target.check, "redirects", 0) for target in config.targets)  # who knows where to
    for where, hosts in (("[limits]", limited), ("[hosts]", set() if may_redirect else set(config.hosts))):
        for number, host in enumerate(sorted(hosts - checked)):
            similar = get_close_matches(host, checked, n=1) if number < MOST_COMPARED else []
            advice = f", did you mean '{similar[0]}'?" if similar else ""
            yield wording.printable(f"{where}: no check has the host '{host}'{advice}")


def _size(config: Config, name: str) -> float:
    limits = config.limits
    return limits.total if name == TOTAL else limits.named.get(name, limits.named[HOSTS])

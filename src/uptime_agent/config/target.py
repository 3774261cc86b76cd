"""One [[check]], and [defaults]."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

from attrs import frozen

from schedule import After, Every, Schedule, ScheduleError, parse

from ..acts import PREFIX as ACT
from ..checks import MOST_ADDRESSES, MOST_ATTEMPTS, Check, Clash, Family, Kind, Mode, known_kinds, read_steps
from ..notify import PREFIX
from ..quorum import Quorum, read_quorum
from ..relations import GROUP, GroupPlan
from ..text import Url, address_family, host_name, parse_url
from ..toml import Section, Unfit, boolean, label, labels, one_of, seconds, suggestion, text, whole
from .limits import HOST

INTERVAL: Final = 30.0
TIMEOUT: Final = 10.0
_OF_CALENDARS: Final = re.compile(r"\*|@|:|day|week|month|mon|tue|wed|thu|fri|sat|sun", re.IGNORECASE)

_NAMES_FILES: Final = frozenset({"ca_file", "body", "headers", "step", "token"})

Start = Literal["phase", "now"]

_MODES: Final = {mode.value: mode for mode in Mode}
_FAMILIES: Final = {family.value: family for family in Family} | {4: Family.V4, 6: Family.V6}
_STARTS: Final[Mapping[str, Start]] = {"phase": "phase", "now": "now"}


@frozen(kw_only=True)
class Target:
    """One target: its check, and how and when it is checked. Lengths in seconds."""

    name: str
    kind: str
    check: Check
    schedule: Schedule
    timeout: float = TIMEOUT
    mode: Mode = Mode.ANY
    need: int | None = 1
    family: Family = Family.ANY
    degraded_above: float | None = None
    max_attempts: int = 1
    retry_interval: float = 0.0
    failing_interval: float | None = None
    start: Start | None = None
    notify: tuple[str, ...] | None = None  # None: all channels are told of its incidents
    tags: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    quorum: Quorum | None = None
    """The nodes that check it. None: the node that has it."""
    is_enabled: bool = True
    is_resolved: bool = True
    """Its host is looked up. If not, a check takes a host's unit only when it goes there."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Limits of which a check takes a unit."""
        return self.needs_at(host_name(self.check.url.host)) if self.is_resolved else (self.kind,)

    def needs_at(self, host: str) -> tuple[str, str]:
        """Limits for another host, after a redirect."""
        return (self.kind, HOST + host)

    @property
    def is_unverified(self) -> bool:
        """Certificates are ignored: a network attacker can answer."""
        return not getattr(self.check, "verify", True)

    @property
    def may_send_in_clear(self) -> bool:
        """Whether a password may travel unencrypted."""
        return getattr(self.check, "may_send_in_clear", False)


@frozen(kw_only=True)
class Common:
    """Options that [defaults] may set."""

    interval: float = INTERVAL
    timeout: float = TIMEOUT
    mode: Mode = Mode.ANY
    need: int | None = 1
    family: Family = Family.ANY
    degraded_above: float | None = None
    max_attempts: int = 1
    retry_interval: float = 0.0
    failing_interval: float | None = None
    start: Start | None = None
    notify: tuple[str, ...] | None = None


_COMMON: Final = dict.fromkeys(
    ("interval timeout mode need ip degraded_above max_attempts retry_interval failing_interval start notify").split(),
    None,
)


def read_common(section: Section, base: Common) -> Common:
    """Read [defaults] or a [[check]]; absent options come from `base`."""
    if not section.has_any(_COMMON):
        return base
    return Common(
        interval=section.take("interval", _interval, base.interval, "from start to start"),
        timeout=section.take(
            "timeout",
            seconds,
            base.timeout,
            "mode `any`: for the lookup and all addresses together. Mode `all`: for the lookup, and for each address",
        ),
        mode=section.take(
            "mode",
            one_of(_MODES),
            base.mode,
            "`any`: the first address that answers decides. `all`: every address of the name is checked (at most 16)",
        ),
        need=section.take(
            "need",
            _need,
            base.need,
            "mode `all`: how many addresses must be up. With fewer the target is down. With as many, but not all, it "
            "is degraded. Addresses whose status is unknown do not count; if only they are missing, it is unknown",
        ),
        family=section.take("ip", one_of(_FAMILIES), base.family, "which addresses count: IPv4, IPv6 or any"),
        degraded_above=section.take("degraded_above", seconds, base.degraded_above, "a slower answer is degraded"),
        max_attempts=section.take(
            "max_attempts",
            whole(1, MOST_ATTEMPTS),
            base.max_attempts,
            "a target that is found down is tried again, up to this many times in all, unless it was known to be down, "
            "or flaps. Each attempt has the whole `timeout`. Only the last one changes how the target stands",
        ),
        retry_interval=section.take(
            "retry_interval",
            seconds,
            base.retry_interval,
            "how long after the end of an attempt the next one comes. It is a check of its own, with a line in "
            "history, and takes no place meanwhile. A check that is due before it is the attempt. By default attempts "
            "follow at once, within one check, and in mode `all` for each address. So it is with `--once`",
        ),
        failing_interval=section.take(
            "failing_interval",
            seconds,
            base.failing_interval,
            "how often a target is checked as long as it is down or flaps, from start to start. The checks of "
            "`interval` or `schedule` take place as well",
        ),
        start=section.take(
            "start",
            one_of(_STARTS),
            base.start,
            "`phase`: spread over the interval by name. Intervals do so anyway, and other schedules cannot. `now`: at "
            "once as well. By default as the schedule says",
        ),
        notify=section.take(
            "notify",
            labels,
            base.notify,
            "names of the [channels](get-told.md) that are told. An empty list: nobody. By default all are told",
        ),
    )


def _need(value: Any) -> int | None:
    if value == "all":
        return None
    try:
        return whole(1, MOST_ADDRESSES)(value)
    except Unfit:
        raise Unfit(f'"all" or a whole number from 1 to {MOST_ADDRESSES}', value) from None


def check_channels(section: Section, chosen: Common | Target | GroupPlan, names: Iterable[str]) -> None:
    """Note unknown channels."""
    known = list(names)
    for name in (chosen.notify or ()) if section.has("notify") else ():
        if name not in known:
            section.complain(f"notify: there is no [[channel]] '{name}'{suggestion(name, known)}", "notify")


def _interval(value: Any) -> float:
    try:
        return seconds(value)
    except Unfit:
        if not isinstance(value, str) or not _OF_CALENDARS.search(value):
            raise
        expected = 'a duration such as "30s" (days and times of day are for the key schedule, as in "0 9 * * mon")'
        raise Unfit(expected, value) from None


def with_files_of(folder: Path, table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Make file names relative to `folder`."""
    if not _NAMES_FILES.intersection(table):
        return table
    found = dict(table)
    certificates, headers, steps = (table.get(key) for key in ("ca_file", "headers", "step"))
    if isinstance(certificates, str) and certificates:
        found["ca_file"] = str(folder / certificates)
    found |= {key: _beside(folder, table[key]) for key in ("body", "token") if key in table}
    if isinstance(headers, dict):
        found["headers"] = {name: _beside(folder, value) for name, value in headers.items()}
    if isinstance(steps, list):
        found["step"] = [with_files_of(folder, each) if isinstance(each, dict) else each for each in steps]
    return found


def _beside(folder: Path, value: Any) -> Any:
    if isinstance(value, dict) and isinstance(value.get("file"), str):
        return {**value, "file": str(folder / value["file"])}
    return value


def read_target(section: Section, common: Common, taken: dict[str, Section]) -> Target | None:
    """Read one [[check]]. None: problems were noted. `taken`: earlier checks."""
    before = len(section.problems)
    url, kind = read_steps(section) if section.has("step") else _url_and_kind(section)
    known = _any_option() if kind is None and not section.has("step") else {} if kind is None else kind.options
    chosen = read_common(section, common)
    name = section.take(
        "name",
        label,
        "" if url is None else str(url),
        "at most 512 printable characters, and unique. It decides where in the interval the check starts, and its "
        "history goes by it. By default the URL",
    )
    tags = section.take("tags", labels, (), "each follows the rules of a name")
    depends_on = section.take(
        "depends_on",
        labels,
        (),
        "names of checks and groups through whose targets this one is reached: see [targets behind others]"
        "(agent/status.md#targets-behind-others)",
    )
    quorum = read_quorum(section)
    is_enabled = section.take("enabled", boolean, True, "whether it is checked at all")  # noqa: FBT003 - the default
    schedule = _schedule(section, _interval_of(kind, section, chosen.interval))
    start = _start(section, chosen.start, schedule)
    options = {key: section.take(key, reader, None) for key, reader in known.items() if section.has(key)}
    _end(section, known)
    if url is not None:
        _check_family(section, url, chosen.family)
        _check_resolved(section, kind)
        if section.has("need") and chosen.mode is Mode.ANY and section.table.get("mode") in (None, Mode.ANY.value):
            section.complain('need: is for mode = "all", which checks every address', "need")
        _check_name(section, name)
    _claim(section, name, taken)
    if kind is None or url is None or len(section.problems) > before:
        return None
    try:
        check = kind.make(url=url, **options)
    except Clash as exc:
        section.complain(str(exc), exc.key)
        return None
    return Target(
        name=name,
        kind=kind.name,
        check=check,
        schedule=schedule,
        timeout=chosen.timeout,
        mode=chosen.mode if kind.is_resolved else Mode.ANY,
        need=chosen.need if kind.is_resolved and chosen.mode is Mode.ALL else 1,
        family=chosen.family,
        degraded_above=chosen.degraded_above,
        max_attempts=1 if kind.least_interval else chosen.max_attempts,
        retry_interval=0.0 if kind.least_interval else chosen.retry_interval,
        failing_interval=None if kind.least_interval else chosen.failing_interval,
        start=start,
        notify=chosen.notify,
        tags=tags,
        depends_on=depends_on,
        quorum=quorum,
        is_enabled=is_enabled,
        is_resolved=kind.is_resolved,
    )


def _url_and_kind(section: Section) -> tuple[Url | None, Kind | None]:
    url = section.require("url", url_of, "what is checked. Its scheme says how: see the kinds below")
    return url, known_kinds().by_scheme.get(str(section.table.get("url")).partition("://")[0].lower())


def _interval_of(kind: Kind | None, section: Section, interval: float) -> float:
    """A kind may need a longer interval."""
    if kind is None or interval >= kind.least_interval:
        return interval
    for key in ("interval", "max_attempts", "retry_interval", "failing_interval"):
        if section.has(key):
            section.complain(f"{key}: a {kind.name} check runs every {kind.least_interval / 3600:g} h at most", key)
    return kind.least_interval


def _start(section: Section, start: Start | None, schedule: Schedule) -> Start | None:
    """A phase in [defaults] is for intervals alone."""
    if start != "phase" or isinstance(schedule, (Every, After)):
        return start
    if section.has("start"):
        section.complain('start = "phase" is for intervals: this schedule says itself when it starts', "start")
    return None


def url_of(value: Any) -> Url:
    """Read a check's URL. Raises Unfit, without credentials."""
    if isinstance(value, str) and "${" in value:
        expected = "a URL as it is, for no variable is replaced within a text (headers and store may be { env = ... })"
        raise Unfit(expected, value)
    try:
        return parse_url(text(value), known_kinds().ports)
    except ValueError as exc:
        left_out = known_kinds().troubles.get(text(value).partition("://")[0].lower())
        raise Unfit(f"{exc} ({left_out})" if left_out else str(exc), value) from None


def _schedule(section: Section, interval: float) -> Schedule:
    if section.has("schedule") and section.has("interval"):
        section.complain("schedule: there is an interval too: keep one of them", "schedule")
    return section.take(
        "schedule",
        _schedule_text,
        _every(interval),
        "in place of `interval`: `@every 10s`, `@after 10s`, or cron as in [schedule](schedule.md#cron). Cron is in "
        "UTC unless it begins with a zone, as in `CRON_TZ=Europe/Berlin`. By default the interval holds",
    )


@lru_cache(maxsize=100)
def _every(interval: float) -> Schedule:
    return Every(interval)


def _schedule_text(value: Any) -> Schedule:
    try:
        return parse(text(value))
    except ScheduleError as exc:
        raise Unfit(f'a schedule such as "@every 10s" or "*/5 * * * *" ({exc})', value) from None


def _any_option() -> dict[str, Callable[[Any], Any]]:
    return {key: reader for kind in known_kinds().every for key, reader in kind.options.items()}


def _claim(section: Section, name: str, taken: dict[str, Section]) -> None:
    if not name or section.table.get("name", name) != name:
        return
    if name in taken:
        section.complain(f"the name is taken by the check on line {taken[name].line}: give one of them another name")
    taken.setdefault(name, section)


def _check_family(section: Section, url: Url, family: Family) -> None:
    found = address_family(url.host)
    if found is not None and family is not Family.ANY and str(found) != family.value:
        section.complain(f"ip: asks for IPv{family.value}, but {url.host} is an IPv{found} address", "ip")


def _check_resolved(section: Section, kind: Kind | None) -> None:
    for key in ("mode", "need", "ip"):
        if kind is not None and not kind.is_resolved and section.has(key):
            section.complain(f"{key}: a {kind.name} check has no addresses to choose from", key)


def _check_name(section: Section, name: str) -> None:
    """A URL may be too long as a name."""
    for ours, of in ((PREFIX, "notifications"), (ACT, "acts of people"), (GROUP, "groups")):
        if name.startswith(ours):
            section.complain(f"name: no check may be called {ours}..., which is how {of} are called", "name")
    try:
        label(name)
    except Unfit as exc:
        section.complain(f"the URL is no name, give the check one: {exc}", "url")


def _end(section: Section, options: Mapping[str, Callable[[Any], Any]]) -> None:
    if section.is_known:
        return
    for kind in known_kinds().every:
        for key in kind.options:
            if section.has(key) and key not in options:
                section.take(key, lambda _: None, None)
                section.complain(f"{key}: is for {kind.name} checks", key)
    section.end(also_known=options)

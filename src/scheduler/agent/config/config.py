"""The configuration: read strictly and whole, so that what starts is what the file says, and what does not says why."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from attrs import evolve, field, frozen

from schedule import After, Every, Schedule, ScheduleError, parse
from scheduler import Retention

from ..checks import BY_SCHEME, KINDS, MOST_ATTEMPTS, PORTS, Check, Family, Mode
from ..text import Url, address_family, host_name, parse_url
from ..toml import (
    ConfigError,
    Problem,
    Section,
    Unfit,
    boolean,
    bounded,
    key_lines,
    label,
    labels,
    megabytes,
    one_form,
    one_of,
    over,
    seconds,
    text,
    what_is_wrong,
    whole,
)
from .limits import HOST, Limits, read_limits
from .place import StorePlace, beside, store_place
from .rights import warnings_about

INTERVAL: Final = 30.0
TIMEOUT: Final = 10.0
MOST_RECORDS: Final = 1_000_000
LARGEST_FILE: Final = 4_000_000
"""Bytes. A check takes some hundred."""
_LONGEST_TITLE: Final = 100
_MOST_NAMED: Final = 5
_OF_CALENDARS: Final = re.compile(r"\*|@|:|day|week|month|mon|tue|wed|thu|fri|sat|sun", re.IGNORECASE)
_NUMBER: Final = re.compile(r"[0-9](?:_?[0-9])*+")

Start = Literal["phase", "now"]

_MODES: Final = {mode.value: mode for mode in Mode}
_FAMILIES: Final = {family.value: family for family in Family} | {4: Family.V4, 6: Family.V6}
_STARTS: Final[Mapping[str, Start]] = {"phase": "phase", "now": "now"}


@frozen(kw_only=True)
class Target:
    """One thing to check, and how and when. Lengths in seconds; `start` None: what the schedule itself does."""

    name: str
    kind: str
    check: Check
    schedule: Schedule
    timeout: float = TIMEOUT
    mode: Mode = Mode.ANY
    family: Family = Family.ANY
    degraded_above: float | None = None
    max_attempts: int = 1
    start: Start | None = None
    tags: tuple[str, ...] = ()
    is_enabled: bool = True

    @property
    def needs(self) -> tuple[str, str]:
        """The limits that its checks take a unit of."""
        return self.needs_at(host_name(self.check.url.host))

    def needs_at(self, host: str) -> tuple[str, str]:
        """The same at another host, to which it was redirected."""
        return (self.kind, HOST + host)

    @property
    def is_unverified(self) -> bool:
        """Whether it does not look at certificates, so that anybody in between may answer."""
        return not getattr(self.check, "verify", True)


@frozen(kw_only=True)
class Config:
    """A file that has been read. `warnings` are for the user to see before anything starts."""

    targets: tuple[Target, ...]
    limits: Limits
    hosts: Mapping[str, tuple[str, ...]] = field(factory=dict)
    store: StorePlace = field(factory=StorePlace)
    retention: Retention = field(factory=Retention)
    warnings: tuple[str, ...] = ()

    @property
    def all_warnings(self) -> tuple[str, ...]:
        """Those, and what is to be said of checks that do not look at certificates."""
        names = [target.name for target in self.targets if target.is_unverified and target.is_enabled]
        if not names:
            return self.warnings
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        listed = ", ".join(names[:_MOST_NAMED])
        return (*self.warnings, f"certificates are not verified (verify = false) of {listed}{more}")

    @property
    def secrets(self) -> frozenset[str]:
        """What must not be shown of all its targets, and of its store."""
        return self.store.secrets.union(*(target.check.secrets for target in self.targets))


def read_config(file: Path, environment: Mapping[str, str]) -> Config:
    """Read a file. Raises ConfigError with all that is wrong in it."""
    try:
        content = _content(file)
    except OSError as exc:
        raise ConfigError(str(file), [Problem(0, f"cannot read it: {(exc.strerror or str(exc)).lower()}")]) from None
    except UnicodeDecodeError as exc:
        line = exc.object.count(b"\n", 0, exc.start) + 1
        raise ConfigError(str(file), [Problem(line, "not UTF-8")]) from None
    config = parse_config(content, str(file), environment)
    return evolve(config, warnings=(*config.warnings, *warnings_about([file])))


def _content(file: Path) -> str:
    with file.open("rb") as opened:
        found = opened.read(LARGEST_FILE + 1)
    if len(found) > LARGEST_FILE:
        raise ConfigError(str(file), [Problem(0, f"more than {LARGEST_FILE // 10**6} MB: that is no configuration")])
    return found.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def parse_config(content: str, file: str, environment: Mapping[str, str]) -> Config:
    """Read the text of a file that is called `file` in messages."""
    if more := over(content):
        raise ConfigError(file, [Problem(*more)])
    try:
        top = Section(tomllib.loads(content), (), "", key_lines(content))
    except tomllib.TOMLDecodeError as exc:
        raise ConfigError(file, [Problem(*what_is_wrong(exc, content))]) from None
    except ValueError:  # of Python itself, which reads no longer numbers
        raise ConfigError(file, [_long_number(content)]) from None
    config = _config(top, Path(file), environment)
    if top.problems:
        raise ConfigError(file, top.problems)
    return config


def _long_number(content: str) -> Problem:
    most = sys.get_int_max_str_digits()
    found = next((each for each in _NUMBER.finditer(content) if len(each[0].replace("_", "")) > most), None)
    line = content.count("\n", 0, found.start()) + 1 if found else 0
    return Problem(line, f"a number has more than {most:,} digits")


def _config(top: Section, file: Path, environment: Mapping[str, str]) -> Config:
    store = top.take("store", store_place(file.parent, environment), beside(file))
    retention = _retention(top.section("history"))
    limits, warnings = read_limits(top.section("limits"), [kind.name for kind in KINDS], environment)
    hosts = _hosts(top.section("hosts"))
    defaults = top.section("defaults")
    common = _read_common(defaults, Common())
    defaults.end()
    targets = _targets(top, common)
    top.end()
    return Config(
        targets=targets,
        limits=limits,
        hosts=hosts,
        store=store,
        retention=retention,
        warnings=tuple(warnings),
    )


def _retention(section: Section) -> Retention:
    """How much history is kept; inf: there is no such bound."""
    default = Retention()
    found = Retention(
        per_job=section.take("per_job", bounded(whole(1, MOST_RECORDS)), default.per_job),
        age=section.take("age", bounded(seconds), default.age),
        total_bytes=section.take("size", bounded(megabytes), default.total_bytes),
    )
    section.end()
    return found


@frozen(kw_only=True)
class Common:
    """What [defaults] may set for all checks."""

    interval: float = INTERVAL
    timeout: float = TIMEOUT
    mode: Mode = Mode.ANY
    family: Family = Family.ANY
    degraded_above: float | None = None
    max_attempts: int = 1
    start: Start | None = None


def _read_common(section: Section, base: Common) -> Common:
    return Common(
        interval=section.take("interval", _interval, base.interval),
        timeout=section.take("timeout", seconds, base.timeout),
        mode=section.take("mode", one_of(_MODES), base.mode),
        family=section.take("ip", one_of(_FAMILIES), base.family),
        degraded_above=section.take("degraded_above", seconds, base.degraded_above),
        max_attempts=section.take("max_attempts", whole(1, MOST_ATTEMPTS), base.max_attempts),
        start=section.take("start", one_of(_STARTS), base.start),
    )


def _interval(value: Any) -> float:
    """A duration; what was meant for a calendar belongs elsewhere."""
    try:
        return seconds(value)
    except Unfit:
        if not isinstance(value, str) or not _OF_CALENDARS.search(value):
            raise
        expected = 'a duration such as "30s" (days and times of day are for the key schedule, as in "0 9 * * mon")'
        raise Unfit(expected, value) from None


def _hosts(section: Section) -> dict[str, tuple[str, ...]]:
    """Fixed addresses of names."""
    found = {host: section.take(name, _addresses, ()) for host, name in one_form(section.table, section)}
    section.end()
    return found


def _addresses(value: Any) -> tuple[str, ...]:
    items = (value,) if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or not items or not all(_is_address(each) for each in items):
        raise Unfit('IP addresses such as ["127.0.0.1", "::1"]', value)
    return tuple(items)


def _is_address(value: Any) -> bool:
    return isinstance(value, str) and address_family(value) is not None


def _targets(top: Section, common: Common) -> tuple[Target, ...]:
    tables = top.take("check", _tables, [])
    if not tables and not top.problems:
        top.complain('there is nothing to check: add [[check]] and below it url = "https://..."')
    lines: dict[str, int] = {}
    found: list[Target] = []
    for index, table in enumerate(tables):
        section = Section(table, ("check", index), _title(table, index), top.lines, top.problems)
        target = _target(section, common, lines)
        found += [] if target is None else [target]
    return tuple(found)


def _tables(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise Unfit("tables that begin with [[check]]", value)
    return value


def _title(table: Mapping[str, Any], index: int) -> str:
    name = table.get("name")
    is_short = isinstance(name, str) and name.isprintable() and 0 < len(name) <= _LONGEST_TITLE
    return f"[[check]] '{name}'" if is_short else f"[[check]] number {index + 1}"


def _target(section: Section, common: Common, lines: dict[str, int]) -> Target | None:
    """One [[check]]. None: its problems have been noted. `lines`: of the checks before it, by their names."""
    before = len(section.problems)
    url = section.require("url", url_of)
    kind = BY_SCHEME.get(str(section.table.get("url")).partition("://")[0].lower())
    known = _any_option() if kind is None else kind.options
    chosen = _read_common(section, common)
    name = section.take("name", label, "" if url is None else str(url))
    tags = section.take("tags", labels, ())
    is_enabled = section.take("enabled", boolean, default=True)
    schedule = _schedule(section, chosen.interval)
    start = _start(section, chosen.start, schedule)
    options = {key: section.take(key, reader, None) for key, reader in known.items() if section.has(key)}
    _end(section, known)
    if url is not None:
        _check_family(section, url, chosen.family)
        _check_name(section, name)
    _claim(section, name, lines)
    if kind is None or url is None or len(section.problems) > before:
        return None
    return Target(
        name=name,
        kind=kind.name,
        check=kind.make(url=url, **options),
        schedule=schedule,
        timeout=chosen.timeout,
        mode=chosen.mode,
        family=chosen.family,
        degraded_above=chosen.degraded_above,
        max_attempts=chosen.max_attempts,
        start=start,
        tags=tags,
        is_enabled=is_enabled,
    )


def _start(section: Section, start: Start | None, schedule: Schedule) -> Start | None:
    """A phase belongs to an interval; what [defaults] say of it does not reach the others."""
    if start != "phase" or isinstance(schedule, (Every, After)):
        return start
    if section.has("start"):
        section.complain('start = "phase" is for intervals: this schedule says itself when it starts', "start")
    return None


def url_of(value: Any) -> Url:
    """Where a check looks. Raises Unfit, which repeats no credentials."""
    if isinstance(value, str) and "${" in value:
        expected = "a URL as it is, for no variable is replaced within a text (headers and store may be { env = ... })"
        raise Unfit(expected, value)
    try:
        return parse_url(text(value), PORTS)
    except ValueError as exc:
        raise Unfit(str(exc), value) from None


def _schedule(section: Section, interval: float) -> Schedule:
    if section.has("schedule") and section.has("interval"):
        section.complain("schedule: there is an interval too: keep one of them", "schedule")
    return section.take("schedule", _schedule_text, Every(interval))


def _schedule_text(value: Any) -> Schedule:
    try:
        return parse(text(value))
    except ScheduleError as exc:
        raise Unfit(f'a schedule such as "@every 10s" or "*/5 * * * *" ({exc})', value) from None


def _any_option() -> dict[str, Callable[[Any], Any]]:
    """What a check may say whose kind nobody knows."""
    return {key: reader for kind in KINDS for key, reader in kind.options.items()}


def _claim(section: Section, name: str, lines: dict[str, int]) -> None:
    """Names are told apart even if something else is wrong; one that cannot be used is nobody's."""
    if not name or section.table.get("name", name) != name:
        return
    if name in lines:
        section.complain(f"the name is taken by the check on line {lines[name]}: give one of them another name")
    lines.setdefault(name, section.lines.get(section.path, 1))


def _check_family(section: Section, url: Url, family: Family) -> None:
    found = address_family(url.host)
    if found is not None and family is not Family.ANY and str(found) != family.value:
        section.complain(f"ip: asks for IPv{family.value}, but {url.host} is an IPv{found} address", "ip")


def _check_name(section: Section, name: str) -> None:
    """A URL that stands in for a name may be too long for one."""
    try:
        label(name)
    except Unfit as exc:
        section.complain(f"the URL is no name, give the check one: {exc}", "url")


def _end(section: Section, options: Mapping[str, Callable[[Any], Any]]) -> None:
    """Report unknown keys; one that other kinds of check know is reported as such."""
    for kind in KINDS:
        for key in kind.options:
            if section.has(key) and key not in options:
                section.take(key, lambda _: None, None)
                section.complain(f"{key}: is for {kind.name} checks", key)
    section.end(also_known=options)

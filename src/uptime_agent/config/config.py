"""The configuration, read strictly: an agent starts as the file says."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve, field, frozen

from scheduler import Retention

from ..checks import ANYWHERE, STEPS, Reach, StepsCheck, known_kinds, reach
from ..heartbeat import Heartbeat, read_heartbeat
from ..notify import ChannelRoute, Rules, Surroundings
from ..quorum import check_shared, read_fleet
from ..relations import GroupPlan
from ..standing import PlannedMaintenance
from ..text import is_address
from ..toml import (
    ConfigError,
    Enough,
    KeyLines,
    Option,
    Problem,
    Problems,
    Section,
    Unfit,
    is_unset,
    leaving_out_unset,
    long_number,
    over,
    what_is_wrong,
    without_collections,
)
from .api import Api, read_api
from .channels import channel_names, read_channels, read_rules
from .limits import CheckLimits, read_limits, read_retention
from .network import Network, Push, read_hosts, read_network, read_push
from .place import MetricsPlace, StorePlace, beside, read_metrics, shared, store_place
from .relations import check_parents, read_groups, read_maintenance, warnings_of_groups
from .rights import warnings_about, weaknesses
from .target import Common, Target, check_channels, read_common, read_target, with_files_of

if TYPE_CHECKING:
    from ..postgres import Layer, PostgresTarget
    from ..tables import TablesPlace

LARGEST_FILE: Final = 10_000_000
"""Bytes. A check takes some hundred."""

MOST_PROBLEMS: Final = 1_000
"""Reading stops after them."""

_LONGEST_TITLE: Final = 100
_LONGEST_OWNER: Final = 128
FILE_OWNER: Final = "file:"
"""How the owner of a file's jobs begins. No client can choose such an owner."""

_TABLES: Final = {
    "history": "how much history is kept. What is over one of these bounds is deleted, oldest first",
    "limits": "how many checks may run at a time",
    "hosts": "fixed addresses of names, as in `/etc/hosts`",
    "network": "how the agent tells that it is offline itself. Name targets near and far, of which one always answers",
    "fleet": "this agent shares its store, which is in PostgreSQL, with others: see "
    "[agents that share](fleet.md#agents-in-a-fleet). The table may be empty",
    "defaults": "what holds for each `[[check]]` that does not say otherwise",
    "check": "what is checked, how and when",
    "group": "targets that are one thing for those who use them, with an incident of its own. All channels are told",
    "maintenance": "when targets are not checked, and nobody is told of them",
    "notify": "by which rules people are told",
    "push": "where targets report to",
    "api": "where people and programs reach the running agent: see [operate an agent](operate-an-agent.md). The table "
    "may be empty",
    "heartbeat": "where the agent reports that it is well: see [there](agent/hardening.md#a-watcher-for-the-agent)",
    "metrics": "where what probes of PostgreSQL find is kept, and for how long: see "
    "[where it is kept](watching-postgres.md#where-it-is-kept)",
    "probes": "what holds for probes on all PostgreSQL servers that do not say otherwise",
    "postgres": "PostgreSQL servers that are probed: see [watching a PostgreSQL fleet](watching-postgres.md)",
}

_OF_METRICS: Final = ("metrics", "probes")


@frozen(kw_only=True)
class Config:
    """A configuration. `warnings` are shown before anything starts."""

    targets: tuple[Target, ...]
    limits: CheckLimits
    hosts: Mapping[str, tuple[str, ...]] = field(factory=dict)
    reach: Reach = ANYWHERE
    network: Network = field(factory=Network)
    maintenance: tuple[PlannedMaintenance, ...] = ()
    groups: tuple[GroupPlan, ...] = ()
    store: StorePlace = field(factory=StorePlace)
    retention: Retention = field(factory=Retention)
    channels: Mapping[str, ChannelRoute] = field(factory=dict)
    postgres: tuple[PostgresTarget, ...] = ()
    metrics: MetricsPlace = field(factory=MetricsPlace)
    probes: tuple[Layer, ...] = ()
    tables: TablesPlace | None = None
    rules: Rules = field(factory=Rules)
    push: Push | None = None
    api: Api | None = None
    heartbeat: Heartbeat | None = None
    warnings: tuple[str, ...] = ()
    file: str | None = None
    """The name of the file, without its folder."""
    lines: Mapping[str, int] = field(factory=dict)
    """Where each target begins in the file. Empty without [api]."""

    @property
    def owner(self) -> str | None:
        """The owner of the jobs. Lines move when a file is edited, so they are no part of it."""
        return None if self.file is None else f"{FILE_OWNER}{self.file}"[:_LONGEST_OWNER]

    def place_of(self, name: str) -> str | None:
        """Where a target is defined, such as "uptime.toml:12". None: there is none of that name."""
        return f"{self.file}:{self.lines[name]}" if name in self.lines else None

    @property
    def all_warnings(self) -> tuple[str, ...]:
        """Warnings, also about weak security."""
        enabled = [target for target in self.targets if target.is_enabled]
        unverified = [target.name for target in enabled if target.is_unverified]
        in_clear = [target.name for target in enabled if target.may_send_in_clear]
        in_clear += [each.name for each in self.postgres if each.is_enabled and each.server.may_send_in_clear]
        in_clear += [str(self.tables)] if self.tables is not None and self.tables.server.may_send_in_clear else []
        return (*self.warnings, *weaknesses(unverified, in_clear))

    @property
    def secrets(self) -> frozenset[str]:
        """Texts never to show."""
        of_channels = (way.channel.secrets for way in self.channels.values())
        of_servers = [each.server.secrets for each in self.postgres]
        of_servers += [] if self.tables is None else [self.tables.server.secrets]
        of_checks = (target.check.secrets for target in self.targets)
        of_ours = (each.secrets for each in (self.store, self.metrics, self.heartbeat) if each is not None)
        return frozenset[str]().union(*of_ours, *of_checks, *of_channels, *of_servers)


def read_config(file: Path, environment: Mapping[str, str], *, needs_secrets: bool = True) -> Config:
    """Read a file. Raises ConfigError. Without `needs_secrets`, values of unset variables are left out."""
    try:
        content = _content(file)
    except OSError as exc:
        raise ConfigError(str(file), [Problem(0, f"cannot read it: {(exc.strerror or str(exc)).lower()}")]) from None
    except UnicodeDecodeError as exc:
        line = exc.object.count(b"\n", 0, exc.start) + 1
        raise ConfigError(str(file), [Problem(line, "not UTF-8")]) from None
    with without_collections():
        config = parse_config(content, str(file), environment, needs_secrets=needs_secrets, most_problems=MOST_PROBLEMS)
    return evolve(config, warnings=(*config.warnings, *warnings_about([file])))


def _content(file: Path) -> str:
    with file.open("rb") as opened:
        found = opened.read(LARGEST_FILE + 1)
    if len(found) > LARGEST_FILE:
        raise ConfigError(str(file), [Problem(0, f"more than {LARGEST_FILE // 10**6} MB: that is no configuration")])
    return found.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def parse_config(
    content: str,
    file: str,
    environment: Mapping[str, str],
    *,
    needs_secrets: bool = True,
    most_problems: int | None = None,
) -> Config:
    """Read a file's text. Reading stops after `most_problems`."""
    if more := over(content):
        raise ConfigError(file, [Problem(*more)])
    try:
        tables = tomllib.loads(content)
        tables = tables if needs_secrets else without_unset(tables, environment)
        top = Section(tables, (), "", KeyLines(content), Problems(most_problems))
    except tomllib.TOMLDecodeError as exc:
        raise ConfigError(file, [Problem(*what_is_wrong(exc, content))]) from None
    except ValueError:  # of Python itself, which reads no longer numbers
        raise ConfigError(file, [Problem(*long_number(content))]) from None
    try:
        config = _config(top, Path(file), environment, needs_secrets=needs_secrets)
    except Enough:
        raise ConfigError(file, top.problems, is_whole=False) from None
    if top.problems:
        raise ConfigError(file, top.problems)
    return config


def without_unset(tables: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """Leave out each `{ env = "NAME" }` that the environment lacks; required options get a text instead."""
    tables = {**tables, **{key: leaving_out_unset(tables[key], environment) for key in _OF_METRICS if key in tables}}
    checks = tables.get("check")
    if not isinstance(checks, list):
        return tables
    options = [each for kind in known_kinds().every for each in kind.options.items()]
    required = {name for name, option in options if isinstance(option, Option) and option.is_required}
    held = [_with_stand_ins(each, required, environment) if isinstance(each, dict) else each for each in checks]
    return {**tables, "check": leaving_out_unset(held, environment)}


def _with_stand_ins(table: dict[str, Any], required: Collection[str], environment: Mapping[str, str]) -> dict[str, Any]:
    unset = [name for name in table if name in required and is_unset(table[name], environment)]
    return table | {name: f"{re.sub('[^A-Za-z0-9]', '_', table[name]['env'])}_is_not_set_here" for name in unset}


def _config(top: Section, file: Path, environment: Mapping[str, str], *, needs_secrets: bool = True) -> Config:
    store = _store(top, file, environment)
    retention = read_retention(_table(top, "history"))
    limits, warnings = read_limits(
        _table(top, "limits"), [*(kind.name for kind in known_kinds().every), STEPS], environment
    )
    hosts = read_hosts(_table(top, "hosts"))
    within = top.take(
        "targets",
        reach,
        ANYWHERE,
        "which addresses checks may connect to: see [there](agent/hardening.md#which-addresses-may-be-asked). "
        "By default any",
    )
    network = read_network(_table(top, "network"))
    for each in network.probes:
        for host in _hosts_beyond(each, within):
            top.complain(f"[network]: probe: {within.refusal(host, host)}", "network")
    defaults = _table(top, "defaults")
    common = read_common(defaults, Common())
    around = Surroundings(file.parent, environment)
    channels = read_channels(top, around, needs_secrets=needs_secrets)
    check_channels(defaults, common, channel_names(top))
    defaults.end()
    taken: dict[str, Section] = {}
    targets = _targets(top, common, within, file.parent, taken)
    of_groups = _sections(top, "group")
    broken = _broken(top, targets)
    groups = read_groups(of_groups, targets, channel_names(top), broken)
    quiet = warnings_of_groups(targets, groups) if channels else ()
    check_parents(targets, taken, groups, {str(each.table.get("name")) for each in of_groups})
    maintenance = read_maintenance(_sections(top, "maintenance"), targets, broken)
    rules = read_rules(_table(top, "notify"))
    probes, tables = _probes(_table(top, "probes"), file, environment, store)
    postgres = _servers(_sections(top, "postgres"), file.parent, environment, probes, needs_secrets=needs_secrets)
    metrics = read_metrics(
        top, _TABLES["metrics"], store, file, environment, is_used=bool(postgres) or tables is not None
    )
    push, of_push = read_push(_table(top, "push"), targets)
    api, of_api = read_api(_table(top, "api"), file, is_given=top.has("api"))
    heartbeat = read_heartbeat(_table(top, "heartbeat"), around, needs_secrets=needs_secrets)
    top.end()
    return Config(
        targets=targets,
        limits=limits,
        hosts=hosts,
        reach=within,
        network=network,
        maintenance=maintenance,
        groups=groups,
        store=store,
        retention=retention,
        channels=channels,
        postgres=postgres,
        metrics=metrics,
        probes=probes,
        tables=tables,
        rules=rules,
        push=push,
        api=api,
        heartbeat=heartbeat,
        warnings=(*warnings, *of_push, *of_api, *quiet, *known_kinds().troubles.values()),
        file=file.name if file.name.isprintable() else None,
        lines={} if api is None else {name: section.line for name, section in taken.items()},
    )


def _store(top: Section, file: Path, environment: Mapping[str, str]) -> StorePlace:
    store = top.take(
        "store",
        store_place(file.parent, environment),
        beside(file),
        "where history is kept: see [what it remembers](agent/storage.md). By default in a SQLite file "
        "beside the configuration, named after it and ending in `.db`",
    )
    fleet = read_fleet(_table(top, "fleet"), environment)
    return shared(top, store, fleet) if top.has("fleet") else store


def _servers(
    sections: list[Section],
    folder: Path,
    environment: Mapping[str, str],
    probes: tuple[Layer, ...],
    *,
    needs_secrets: bool,
) -> tuple[PostgresTarget, ...]:
    if not sections:  # their probes take as long to import as all checks: not for a file without them
        return ()
    from .postgres import read_postgres  # noqa: PLC0415

    return read_postgres(sections, folder, environment, probes, needs_secrets=needs_secrets)


def _probes(
    section: Section, file: Path, environment: Mapping[str, str], store: StorePlace
) -> tuple[tuple[Layer, ...], TablesPlace | None]:
    if not section.table:
        return (), None
    from ..postgres import Layer  # noqa: PLC0415 - as above
    from .postgres import read_choices, read_tables  # noqa: PLC0415

    base = file if store.file is None else store.file
    is_memory = store.file is None and store.dsn is None
    tables = read_tables(section, file.parent, environment, None if is_memory else base.with_suffix(".probes.json"))
    choices = read_choices(section)
    return (Layer("file", choices),) if choices else (), tables


def _targets(
    top: Section, common: Common, within: Reach, folder: Path, taken: dict[str, Section]
) -> tuple[Target, ...]:
    tables = top.take("check", _tables("check"), [], _TABLES["check"])
    if not tables and not top.problems and not top.has("postgres") and not _has_tables(top):
        top.complain('there is nothing to check: add [[check]] and below it url = "https://..."')
    names = channel_names(top)
    found: list[Target] = []
    for index, table in enumerate(tables):
        found_beside = with_files_of(folder, table)
        section = Section(found_beside, ("check", index), _title(table, index), top.lines, top.problems)
        target = read_target(section, common, taken)
        check_shared(section, is_shared=top.has("fleet"))
        for host in () if target is None else _hosts_beyond(target, within):
            section.complain(f"url: {within.refusal(host, host)}", "url")
        check_channels(section, common if target is None else target, names)
        found += [] if target is None else [target]
    return tuple(found)


def _broken(top: Section, targets: Collection[Target]) -> frozenset[str]:
    """Faulty checks: no further problems are told of them."""
    tables = top.take("check", _tables("check"), [], _TABLES["check"])
    if len(targets) == len(tables):
        return frozenset()
    known = [each.name for each in targets]
    rest = [table for table in tables if table.get("name", table.get("url")) not in known]
    given = [each for table in rest for each in (table.get("name"), table.get("url"), *_listed(table.get("tags")))]
    return frozenset(each for each in given if isinstance(each, str))


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _has_tables(top: Section) -> bool:
    probes = top.table.get("probes")
    return isinstance(probes, dict) and "from" in probes


def _hosts_beyond(target: Target, within: Reach) -> list[str]:
    """Only addresses: a name's addresses are judged when dialled."""
    check = target.check
    checks = [step.check for step in check.steps] if isinstance(check, StepsCheck) else [check][: target.is_resolved]
    hosts = [each.url.host for each in checks]
    return [host for host in hosts if is_address(host) and not within.permits(host, host)]


def _table(top: Section, key: str) -> Section:
    return top.section(key, _TABLES[key])


def _sections(top: Section, key: str) -> list[Section]:
    tables = top.take(key, _tables(key), [], _TABLES[key])
    return [
        Section(table, (key, index), _title(table, index, key), top.lines, top.problems)
        for index, table in enumerate(tables)
    ]


def _tables(key: str) -> Callable[[Any], list[dict[str, Any]]]:
    def read(value: Any) -> list[dict[str, Any]]:
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise Unfit(f"tables that begin with [[{key}]]", value)
        return value

    return read


def _title(table: Mapping[str, Any], index: int, key: str = "check") -> str:
    name = table.get("name")
    is_short = isinstance(name, str) and name.isprintable() and 0 < len(name) <= _LONGEST_TITLE
    return f"[[{key}]] '{name}'" if is_short else f"[[{key}]] number {index + 1}"

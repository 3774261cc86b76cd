"""Read rows strictly: a wrong row harms no other."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final

from attrs import evolve, frozen

from ..libpq import NoDriver, Server, read_dsn
from ..postgres import CATALOGUE, Choice, Layer, PostgresTarget
from ..text import printable
from ..toml import Unfit, boolean, label, labels, one_of, seconds, text, whole
from .passwords import password_of
from .place import TablesPlace
from .schema import MAX_BYTES

SHORTEST: Final = 1.0
"""Seconds between runs of a probe, at least."""
SERVERS: Final = "servers"
_OF_LIBPQ: Final = frozenset({"sslmode", "sslrootcert", "sslcert", "sslkey", "target_session_attrs", "options"})
_LONGEST_KEY: Final = 512
_SCOPES: Final = ("cluster", "group", "global")

Key = tuple[str, str]


@frozen
class TableRow:
    """A row. `trouble`: what was expected of unreadable values."""

    table: str
    key: str
    values: Mapping[str, Any]
    trouble: str | None = None


def row_of(table: bytes | None, key: bytes | None, content: bytes | None) -> TableRow:
    """Read any row. Its values are JSON without nested tables."""
    name, known = ((each or b"")[:_LONGEST_KEY].decode("utf-8", "replace") for each in (table, key))
    if content is None or len(content) > MAX_BYTES:
        return TableRow(name, known, {}, f"values of at most {MAX_BYTES // 1024} KiB")
    try:
        values = json.loads(content.decode())
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict) or not all(map(_is_flat, values.values())):
        return TableRow(name, known, {}, "values in JSON")
    return TableRow(name, known, values)


def _is_flat(value: Any) -> bool:
    return not any(isinstance(each, (dict, list)) for each in (value if isinstance(value, list) else [value]))


@frozen
class ServerRow:
    """A server with its cluster and group."""

    target: PostgresTarget
    cluster: str | None
    group: str | None


@frozen
class ProbeRow:
    """A scope's choice for a probe. `scope`: server, cluster, group or global."""

    scope: str
    of: str | None
    probe: str
    choice: Choice


@frozen
class Good:
    """A valid row and its meaning."""

    row: TableRow
    meaning: ServerRow | ProbeRow


Known = Mapping[Key, Good]
"""The valid rows."""


def taken_in(
    rows: Iterable[TableRow], known: Known, place: TablesPlace, named: Collection[str]
) -> tuple[Known, list[str]]:
    """The valid rows, a wrong row in its last valid form, and mistakes. `named`: servers in the file."""
    found: dict[Key, Good] = {}
    wrong: list[str] = []
    for row in rows:
        key = row.table, row.key
        before = known.get(key)
        if before is not None and before.row == row and _stands(row, named):
            found[key] = before
            continue
        try:
            found[key] = Good(row, _meaning(row, place, named))
        except Exception as exc:  # noqa: BLE001 - a table may have been altered, a copy edited, a server lie
            rest = "" if before is None else "; what it was holds on"
            wrong.append(printable(f"{row.table} {row.key!r}: {_why(exc)}{rest}"))
            if before is not None:
                found[key] = before
    return found, wrong


def _why(error: Exception) -> str:
    match error:
        case Unfit():
            return str(error)
        case KeyError():
            return f"there is no value of {error}"
        case _:
            return f"it makes no sense ({type(error).__name__}: {error})"


def _stands(row: TableRow, named: Collection[str]) -> bool:
    """Whether an unchanged row keeps its meaning: the file may have its name now, its password may differ."""
    return row.table != SERVERS or (row.key not in named and row.values["password_file"] is None)


def targets_of(known: Known, around: tuple[Layer, ...]) -> tuple[PostgresTarget, ...]:
    """The servers, each with its scopes. `around`: outer scopes."""
    said: dict[tuple[str, str | None], dict[str, Choice]] = {}
    for each in known.values():
        if isinstance(each.meaning, ProbeRow):
            said.setdefault((each.meaning.scope, each.meaning.of), {})[each.meaning.probe] = each.meaning.choice
    servers = [each.meaning for each in known.values() if isinstance(each.meaning, ServerRow)]
    return tuple(_scoped(server, said, around) for server in servers)


def _scoped(
    server: ServerRow, said: Mapping[tuple[str, str | None], Mapping[str, Choice]], around: tuple[Layer, ...]
) -> PostgresTarget:
    names = {"cluster": server.cluster, "group": server.group, "global": None}
    scopes = [(scope, names[scope]) for scope in _SCOPES if scope == "global" or names[scope] is not None]
    layers = [
        Layer(scope if name is None else f"{scope} {name}", said.get((scope, name), {})) for scope, name in scopes
    ]
    own = said.get(("server", server.target.name), {})
    return evolve(server.target, probes=own, inherited=(*layers, *around))


def _meaning(row: TableRow, place: TablesPlace, named: Collection[str]) -> ServerRow | ProbeRow:
    if row.trouble is not None:
        raise Unfit(row.trouble, "others")
    return _server(row, place, named) if row.table == SERVERS else _probe(row)


def _server(row: TableRow, place: TablesPlace, named: Collection[str]) -> ServerRow:
    values = row.values
    name = _of("name", label, row.key)
    if name in named:
        raise Unfit("another name, because the file has a server of that one", name)
    default = PostgresTarget(name=name, server=Server())
    target = PostgresTarget(
        name=name,
        server=_where(values, place),
        include=_given(values, "databases", labels, default.include),
        exclude=_given(values, "exclude", labels, default.exclude),
        most_databases=_given(values, "most_databases", whole(1, 10_000), default.most_databases),
        limit=_given(values, "connection_limit", whole(1, 100), default.limit),
        wait=_given(values, "wait", seconds, default.wait),
        budget=_given(values, "budget", _share, default.budget),
        tags=_given(values, "tags", labels, default.tags),
        is_enabled=_of("is_enabled", boolean, values["is_enabled"]),
    )
    return ServerRow(target, _given(values, "cluster", label, None), _given(values, "group", label, None))


def _given(values: Mapping[str, Any], key: str, reader: Callable[[Any], Any], default: Any) -> Any:
    return default if values[key] is None else _of(key, reader, values[key])


def _of(key: str, reader: Callable[[Any], Any], value: Any) -> Any:
    try:
        return reader(value)
    except Unfit as exc:
        raise Unfit(f"{exc.expected} as {key}", value) from None


def _share(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
        raise Unfit("a share of one core such as 0.01", value)
    return float(value)


def _interval(value: Any) -> float:
    if (every := seconds(value)) < SHORTEST:
        raise Unfit(f"at least {SHORTEST:g} s", value)
    return every


def _where(values: Mapping[str, Any], place: TablesPlace) -> Server:
    try:
        server = read_dsn(_of("dsn", text, values["dsn"]))
    except (ValueError, NoDriver) as exc:
        raise Unfit(f"a server as dsn ({exc})", values["dsn"], is_secret=True) from None
    if server.password is not None or "sslpassword" in server.options:
        raise Unfit("a dsn without a password: name a password_env or a password_file", "", is_secret=True)
    if others := sorted(server.options.keys() - _OF_LIBPQ):
        raise Unfit(f"no {others[0]} in the dsn, but at most {', '.join(sorted(_OF_LIBPQ))}", values["dsn"])
    password = password_of(values["password_env"], values["password_file"], place)
    # A row says where the password goes: only to a server that proves to know it, and never in plain text.
    methods = "scram-sha-256,none" if password is None else "scram-sha-256"
    return evolve(server, password=password, options={**server.options, "require_auth": methods})


def _probe(row: TableRow) -> ProbeRow:
    values = row.values
    name = _of("probe", text, values["probe"])
    if name not in CATALOGUE:
        similar = get_close_matches(name, CATALOGUE, n=1)
        raise Unfit(f"a probe that there is{f', did you mean {similar[0]!r}?' if similar else ''}", name)
    choice = Choice(
        is_enabled=_given(values, "is_enabled", boolean, None),
        every=_given(values, "interval", _interval, None),
        timeout=_given(values, "timeout", seconds, None),
        retention=_given(values, "retention", seconds, None),
    )
    scope = _of("scope", one_of({each: each for each in ("server", *_SCOPES)}), values["scope"])
    return ProbeRow(scope, _given(values, "of", label, None), name, choice)

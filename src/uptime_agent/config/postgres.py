"""[[postgres]]: servers that are probed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from attrs import evolve

from ..libpq import NoDriver, Server, auth_methods, read_dsn
from ..postgres import CATALOGUE, Choice, Layer, PostgresTarget
from ..tables import POLL, SCHEMA, TablesPlace
from ..toml import Reader, Section, Unfit, Unset, boolean, label, labels, seconds, text, text_of_file, whole

HIGHEST_PORT: Final = 65_535
MOST_CONNECTIONS: Final = 100
MOST_DATABASES: Final = 10_000
SHORTEST: Final = 1.0
"""Seconds. No probe is configured to run more often."""
LONGEST_TIMEOUT: Final = 300.0
_OF_LIBPQ: Final = {
    "sslmode": "how the connection is encrypted",
    "sslrootcert": "a file with the certificates that are trusted",
    "sslcert": "a file with our certificate",
    "sslkey": "a file with the key of our certificate",
    "target_session_attrs": "which of several servers will do",
    "options": "settings of the session",
    "require_auth": "which ways to log in are allowed",
}

_OF_SERVER: Final = ("host", "port", "user", "password", "database", *_OF_LIBPQ)


def read_postgres(
    sections: list[Section],
    folder: Path,
    environment: Mapping[str, str],
    inherited: tuple[Layer, ...] = (),
    *,
    needs_secrets: bool = True,
) -> tuple[PostgresTarget, ...]:
    """Read servers. Without `needs_secrets`, servers that lack secrets are left out."""
    lines: dict[str, int] = {}
    found: list[PostgresTarget] = []
    for section in sections:
        own = section if needs_secrets else Section(section.table, section.path, section.name, section.lines)
        target = _target(own, _secret(folder, environment))
        if target is None:
            continue
        if target.name in lines:
            section.complain(f"the name is taken by the server on line {lines[target.name]}: give one another name")
        lines.setdefault(target.name, section.lines.get(section.path, 1))
        found.append(evolve(target, inherited=inherited))
    return tuple(found)


def _target(section: Section, secret: Reader[str]) -> PostgresTarget | None:
    before = len(section.problems)
    server = _server(section, secret)
    default = PostgresTarget(name="", server=Server())
    name = section.take(
        "name",
        label,
        "" if server is None else str(server),
        "by which `timerqueue doctor` and what is stored call it. By default `USER@HOST:PORT`",
    )
    target = PostgresTarget(
        name=name,
        server=server or default.server,
        include=section.take(
            "databases",
            labels,
            default.include,
            "patterns of the databases that are probed, of those that we may enter",
        ),
        exclude=section.take("exclude", labels, default.exclude, "patterns of databases that are left out"),
        most_databases=section.take(
            "most_databases",
            whole(1, MOST_DATABASES),
            default.most_databases,
            "no more databases than that are probed; the log says how many are left out",
        ),
        limit=section.take(
            "limit",
            whole(1, MOST_CONNECTIONS),
            default.limit,
            "connections to the server, idle ones included, as the server counts them",
        ),
        wait=section.take(
            "wait",
            seconds,
            default.wait,
            "how long a probe may wait for a connection. This counts against no other time",
        ),
        budget=section.take(
            "budget",
            _share,
            default.budget,
            "how much of one core of the server our queries may take. Beyond that the costliest probes are run less "
            "often, by up to 16 times",
        ),
        probes=_choices(section),
        tags=section.take("tags", labels, (), "texts by which servers are chosen"),
        is_enabled=section.take("enabled", boolean, True, "whether the server is probed"),  # noqa: FBT003 - the default
    )
    section.end()
    return None if len(section.problems) > before else target


def read_tables(
    section: Section, folder: Path, environment: Mapping[str, str], copy: Path | None
) -> TablesPlace | None:
    """Read where the tables are that name servers and probes. `copy`: the file with the last rows of these tables."""
    server = section.take(
        "from",
        _dsn(_secret(folder, environment)),
        None,
        "a database with [tables](watching-postgres.md#configure-it-from-tables) that name servers, and say of probes "
        'what holds for a server, a cluster, a group or all: `"postgresql://USER@HOST/DATABASE"`',
    )
    password = section.take("password", _secret(folder, environment), None, "of the role that reads the tables")
    schema = section.take("schema", label, SCHEMA, "where the tables are")
    poll = section.take("poll", seconds, POLL, "how often the tables are read if nobody says that they have changed")
    if server is None:
        return None
    known = server if password is None else _with_password(server, password)
    return TablesPlace(server=known, schema=schema, poll=poll, folder=folder, environment=environment, copy=copy)


def _server(section: Section, secret: Reader[str]) -> Server | None:
    dsn = section.take(
        "dsn",
        _dsn(secret),
        None,
        "one URL or `key=value` text with one host, in place of `host`, `port`, `user`, `database` and the settings of "
        "libpq",
    )
    password = section.take("password", secret, None, "of the role that we log in as")
    if section.has("dsn"):
        for key in _OF_SERVER:
            if key != "password" and section.has(key):
                section.take(key, lambda _: None, None)
                section.complain(f"{key}: there is a dsn too: keep one of them", key)
        return dsn if dsn is None or password is None else _with_password(dsn, password)
    host = section.require(
        "host", text, "a name, an address, or the folder of the server's socket, unless there is a `dsn`"
    )
    readers = {"require_auth": auth_methods}
    options = {
        key: section.take(
            key, readers.get(key, text), "", f"{meaning}, as libpq has it, and by default {_default(key)}"
        )
        for key, meaning in _OF_LIBPQ.items()
    }
    return Server(
        host=host or "",
        port=section.take("port", whole(1, HIGHEST_PORT), 5432, "the server's port"),
        user=section.take(
            "user", text, None, "the role that we log in as. By default libpq's: the user of this process"
        ),
        password=password,
        database=section.take("database", text, "postgres", "where probes of the whole server run"),
        options={key: value for key, value in options.items() if value},
    )


def _default(key: str) -> str:
    return "none that sends the password as it is without TLS" if key == "require_auth" else "as libpq finds it"


def _with_password(server: Server, password: str) -> Server:
    return Server(
        host=server.host,
        port=server.port,
        user=server.user,
        password=password,
        database=server.database,
        options=server.options,
    )


def _dsn(secret: Reader[str]) -> Reader[Server]:
    def read(value: Any) -> Server:
        found = secret(value)
        try:
            return read_dsn(found)
        except (ValueError, NoDriver) as exc:
            raise Unfit(f'a server such as "postgresql://USER@HOST/DATABASE": {exc}', value, is_secret=True) from None

    return read


def _secret(folder: Path, environment: Mapping[str, str]) -> Reader[str]:

    def read(value: Any) -> str:
        match value:
            case {"env": str(variable), **others} if not others:
                if variable not in environment:
                    raise Unset(variable, environment)
                return environment[variable]
            case {"file": str(path), **others} if not others:
                found = text_of_file(folder / path).rstrip("\r\n")
                if not found:
                    raise Unfit(f"text in the file {Path(path).name}", "", is_secret=True)
                return found
            case str() if value:
                return value
            case _:
                raise Unfit('text, { env = "NAME" } or { file = "PATH" }', value, is_secret=True)

    return read


def _share(value: Any) -> float:
    if isinstance(value, str) and value.rstrip().endswith("%"):
        with suppress(ValueError):
            value = float(value.rstrip()[:-1]) / 100
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
        raise Unfit('a share of one core such as "1 %" or 0.01', value)
    return float(value)


def _choices(section: Section) -> dict[str, Choice]:
    return read_choices(section.section("probes", "what holds for probes on this server: see [`[probes]`](#probes)"))


def read_choices(probes: Section) -> dict[str, Choice]:
    """Read a scope's choices, by probe."""
    found = {}
    for name in [each for each in probes.table if not probes.is_asked(each)]:
        if name in CATALOGUE:
            found[name] = _choice_of(probes, name)
            continue
        similar = get_close_matches(name, CATALOGUE, n=1)
        probes.take(
            name,
            _choice,
            None,
            "one of [these probes](postgres-probes.md): on, off, with an interval, which turns it on, or a table of "
            "`enabled`, `interval`, `timeout` (at most 5 minutes) and `age`, which says for how long samples are kept",
        )
        probes.complain(f"there is no probe '{name}'{f', did you mean {similar[0]!r}?' if similar else ''}", name)
    probes.end()
    return found


def _choice_of(probes: Section, name: str) -> Choice:
    """Read true, false, an interval, which turns the probe on, or a table."""
    if not isinstance(probes.table[name], dict):
        return probes.take(name, _choice, Choice())
    section = probes.section(name)
    every = section.take("interval", read_interval, None)
    found = Choice(
        is_enabled=section.take("enabled", boolean, None if every is None else True),
        every=every,
        timeout=section.take("timeout", read_timeout, None),
        retention=section.take("age", seconds, None),
    )
    section.end()
    return found


def _choice(value: Any) -> Choice:
    if isinstance(value, bool):
        return Choice(is_enabled=value)
    try:
        return Choice(is_enabled=True, every=read_interval(value))
    except Unfit as exc:
        if isinstance(value, str):
            raise
        raise Unfit('true, false, an interval such as "30s", or { interval = "30s", age = "90d" }', value) from exc


def read_interval(value: Any) -> float:
    """Read a probe's interval."""
    every = seconds(value)
    if every < SHORTEST:
        raise Unfit(f"an interval of at least {SHORTEST:g} s", value)
    return every


def read_timeout(value: Any) -> float:
    """Read a probe's timeout."""
    found = seconds(value)
    if found > LONGEST_TIMEOUT:
        raise Unfit(f"a timeout of at most {LONGEST_TIMEOUT:g} s", value)
    return found

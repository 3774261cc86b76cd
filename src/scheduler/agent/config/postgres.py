"""The [[postgres]] tables of a configuration: which servers are probed, as whom, and what for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from ..libpq import NoDriver, Server, read_dsn
from ..postgres import CATALOGUE, Choice, PostgresTarget
from ..toml import Reader, Section, Unfit, Unset, boolean, label, labels, seconds, text, whole

HIGHEST_PORT: Final = 65_535
MOST_CONNECTIONS: Final = 100
MOST_DATABASES: Final = 10_000
SHORTEST: Final = 1.0
"""Seconds. No probe is run more often by a configuration; a burst does so for a minute."""
LARGEST_SECRET: Final = 64_000
_OF_LIBPQ: Final = ("sslmode", "sslrootcert", "sslcert", "sslkey", "target_session_attrs", "options")
_OF_SERVER: Final = ("host", "port", "user", "password", "database", *_OF_LIBPQ)


def read_postgres(
    sections: list[Section], folder: Path, environment: Mapping[str, str], *, needs_secrets: bool = True
) -> tuple[PostgresTarget, ...]:
    """Read all servers. Without `needs_secrets`, those whose secrets are not there are left out."""
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
        found.append(target)
    return tuple(found)


def _target(section: Section, secret: Reader[str]) -> PostgresTarget | None:
    before = len(section.problems)
    server = _server(section, secret)
    default = PostgresTarget(name="", server=Server())
    name = section.take("name", label, "" if server is None else str(server))
    target = PostgresTarget(
        name=name,
        server=server or default.server,
        include=section.take("databases", labels, default.include),
        exclude=section.take("exclude", labels, default.exclude),
        most_databases=section.take("most_databases", whole(1, MOST_DATABASES), default.most_databases),
        limit=section.take("limit", whole(1, MOST_CONNECTIONS), default.limit),
        wait=section.take("wait", seconds, default.wait),
        budget=section.take("budget", _share, default.budget),
        probes=_choices(section),
        tags=section.take("tags", labels, ()),
        is_enabled=section.take("enabled", boolean, default=True),
    )
    section.end()
    return None if len(section.problems) > before else target


def _server(section: Section, secret: Reader[str]) -> Server | None:
    """Read where the server is: a dsn, or its parts; a password may stand beside either."""
    password = section.take("password", secret, None)
    if section.has("dsn"):
        for key in _OF_SERVER:
            if key != "password" and section.has(key):
                section.take(key, lambda _: None, None)
                section.complain(f"{key}: there is a dsn too: keep one of them", key)
        found = section.take("dsn", _dsn(secret), None)
        return found if found is None or password is None else _with_password(found, password)
    host = section.require("host", text)
    options = {key: section.take(key, text, "") for key in _OF_LIBPQ}
    return Server(
        host=host or "",
        port=section.take("port", whole(1, HIGHEST_PORT), 5432),
        user=section.take("user", text, None),
        password=password,
        database=section.take("database", text, "postgres"),
        options={key: value for key, value in options.items() if value},
    )


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
    """Make a reader of texts that may stand elsewhere: { env = "NAME" }, or { file = "PATH" } beside the file."""

    def read(value: Any) -> str:
        match value:
            case {"env": str(variable), **others} if not others:
                if variable not in environment:
                    raise Unset(variable, environment)
                return environment[variable]
            case {"file": str(path), **others} if not others:
                try:
                    with (folder / path).open(encoding="utf-8") as file:
                        return file.read(LARGEST_SECRET).rstrip("\r\n")
                except (OSError, ValueError) as exc:
                    why = os.strerror(exc.errno).lower() if isinstance(exc, OSError) and exc.errno else "not UTF-8"
                    raise Unfit(f"a file that can be read ({why})", path) from None
            case str() if value:
                return value
            case _:
                raise Unfit('text, { env = "NAME" } or { file = "PATH" }', value, is_secret=True)

    return read


def _share(value: Any) -> float:
    """Read a share of a core: "1 %", or 0.01."""
    if isinstance(value, str) and value.rstrip().endswith("%"):
        with suppress(ValueError):
            value = float(value.rstrip()[:-1]) / 100
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
        raise Unfit('a share of one core such as "1 %" or 0.01', value)
    return float(value)


def _choices(section: Section) -> dict[str, Choice]:
    """Read [postgres.probes]: a probe is on or off (true, false), or has an interval."""
    probes = section.section("probes")
    found = {}
    for name in probes.table:
        if name in CATALOGUE:
            found[name] = probes.take(name, _choice, Choice())
            continue
        similar = get_close_matches(name, CATALOGUE, n=1)
        probes.take(name, lambda _: None, None)
        probes.complain(f"there is no probe '{name}'{f', did you mean {similar[0]!r}?' if similar else ''}", name)
    probes.end()
    return found


def _choice(value: Any) -> Choice:
    if isinstance(value, bool):
        return Choice(is_enabled=value)
    try:
        every = seconds(value)
    except Unfit:
        raise Unfit('true, false or an interval such as "30s"', value) from None
    if every < SHORTEST:
        raise Unfit(f"an interval of at least {SHORTEST:g} s", value)
    return Choice(every=every)

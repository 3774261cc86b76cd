"""Servers and roles, as values that show no password."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from attrs import field, frozen

from ..text import masked
from ..toml import Unfit
from .errors import NoDriver

HIGHEST_PORT: Final = 65_535

APPLICATION: Final = "timerqueue"
"""Probes leave out backends of that application_name."""

DEFAULTS: Final = {
    "application_name": APPLICATION,
    "client_encoding": "UTF8",
    "connect_timeout": "0",
    "gssencmode": "disable",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}
"""TCP notices a dead machine within half a minute."""

METHODS: Final = frozenset({"password", "md5", "gss", "sspi", "scram-sha-256", "oauth", "none"})
"""Ways to log in. `password` is sent unencrypted."""
_IN_CLEAR: Final = "password"
_NOT_IN_CLEAR: Final = "!password"
_ENCRYPTED: Final = frozenset({"require", "verify-ca", "verify-full"})
"""They send nothing without TLS."""


@frozen(repr=False, kw_only=True)
class Server:
    """A PostgreSQL server and a role. `host`: a name, an address, or a Unix socket's folder.

    `options`: other libpq settings. `database`: for probes of the whole server.
    """

    host: str = "localhost"
    port: int = 5432
    user: str | None = None
    password: str | None = None
    database: str = "postgres"
    options: Mapping[str, str] = field(factory=dict)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.user}@{host}:{self.port}" if self.user else f"{host}:{self.port}"

    __repr__ = __str__

    @property
    def place(self) -> tuple[str, int]:
        """Host and port."""
        return self.host, self.port

    @property
    def is_local(self) -> bool:
        """Whether a Unix socket reaches it."""
        return self.host.startswith(("/", "@"))

    @property
    def secrets(self) -> frozenset[str]:
        """Texts never to show."""
        hidden = (self.password, self.options.get("sslpassword"))
        return frozenset(each for each in hidden if each)

    @property
    def may_send_in_clear(self) -> bool:
        """Whether the user allows an unencrypted password."""
        methods = self.options.get("require_auth")
        return methods is not None and not self._is_safe and _allows(methods, _IN_CLEAR)

    @property
    def _is_safe(self) -> bool:
        mode = self.options.get("sslmode") or os.environ.get("PGSSLMODE")  # as libpq finds it
        return self.is_local or mode in _ENCRYPTED

    def conninfo(self, database: str | None = None, address: str | None = None) -> str:
        """Write libpq's settings. `address` is dialled; TLS checks the host's name."""
        rules = {} if self._is_safe else {"require_auth": _NOT_IN_CLEAR}
        settings = DEFAULTS | rules | dict(self.options) | {"host": self.host, "port": str(self.port)}
        settings["dbname"] = self.database if database is None else database
        own = {"user": self.user, "password": self.password, "hostaddr": None if self.is_local else address}
        settings |= {name: value for name, value in own.items() if value is not None}
        return " ".join(f"{name}={_quoted(value)}" for name, value in settings.items())


def _allows(methods: str, method: str) -> bool:
    named = [each.strip() for each in methods.split(",")]
    if any(each.startswith("!") for each in named):
        return f"!{method}" not in named
    return method in named or named == [""]


def auth_methods(value: Any) -> str:
    """Read libpq's require_auth: all allowed methods, or all refused. Raises Unfit."""
    named = [each.strip() for each in value.split(",")] if isinstance(value, str) else []
    refused = [each.startswith("!") for each in named]
    if not named or any(refused) is not all(refused) or not {each.removeprefix("!") for each in named} <= METHODS:
        raise Unfit(
            'ways to log in such as "scram-sha-256" or "scram-sha-256,md5,password" (or "!md5": all others)', value
        )
    return ",".join(named)


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def read_dsn(text: str) -> Server:
    """Read a URL or "key=value" text as libpq does. Raises ValueError, NoDriver."""
    try:
        from psycopg import ProgrammingError  # noqa: PLC0415
        from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415
    except ImportError as exc:
        raise no_driver(exc) from None
    try:
        found: dict[str, Any] = conninfo_to_dict(text)
    except ProgrammingError as exc:
        raise ValueError(masked(str(exc).strip())) from None
    if "," in str(found.get("host", "")) or "hostaddr" in found:
        raise ValueError(
            "one host for each target, and no hostaddr (a fixed address is the host, or stands in [hosts])"
        )
    port = str(found.pop("port", "5432"))
    if not port.isdigit() or not 1 <= int(port) <= HIGHEST_PORT:
        raise ValueError(f"a port from 1 to 65535, not {port}")
    try:
        auth_methods(found.get("require_auth", "none"))
    except Unfit as exc:
        raise ValueError(f"require_auth: {exc}") from None
    return Server(
        host=found.pop("host", "localhost"),
        port=int(port),
        user=found.pop("user", None),
        password=found.pop("password", None),
        database=found.pop("dbname", "postgres"),
        options={
            name: str(value) for name, value in found.items() if name not in {"application_name", "connect_timeout"}
        },
    )


def no_driver(error: ImportError) -> NoDriver:
    """Say what to install."""
    return NoDriver(
        f"PostgreSQL needs psycopg 3, which cannot be imported here ({error}): pip install timerqueue[postgres]"
    )

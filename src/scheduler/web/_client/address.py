"""Where an API is: a URL, or the path of a Unix socket."""

from __future__ import annotations

import socket
from http.client import HTTPConnection, HTTPSConnection
from urllib.parse import SplitResult, urlsplit

from attrs import frozen

from schedule import shown

_UNIX = "unix:"
_SUCH_AS = "such as http://127.0.0.1:8000/control or unix:/run/jobs.sock"


class _UnixConnection(HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        try:
            self.sock.connect(self._path)
        except BaseException:
            self.sock.close()
            raise


@frozen
class Address:
    """`text`: as it was given. `prefix`: the path under which the API is mounted. `socket_path`: None: TCP."""

    text: str
    prefix: str
    host: str = ""
    port: int | None = None
    is_tls: bool = False
    socket_path: str | None = None

    def connection(self, timeout: float) -> HTTPConnection:
        """Return a connection that is not open yet."""
        if self.socket_path is not None:
            return _UnixConnection(self.socket_path, timeout)
        kind = HTTPSConnection if self.is_tls else HTTPConnection
        return kind(self.host, self.port, timeout=timeout)


def address_of(text: object) -> Address:
    """Read `http://HOST:PORT/PREFIX`, `https://...`, `unix:/PATH` or `unix:/PATH:/PREFIX`. Raises ValueError."""
    if isinstance(text, str) and text.startswith(f"{_UNIX}/") and text.isprintable():
        path, _, prefix = text.removeprefix(_UNIX).partition(":")
        if not prefix or prefix.startswith("/"):
            return Address(text, prefix.rstrip("/"), socket_path=path)
    elif isinstance(text, str) and text.isascii() and text.isprintable() and " " not in text:
        found = _split(text)
        if found is not None:
            prefix, is_tls = found.path.rstrip("/"), found.scheme == "https"
            return Address(text, prefix, found.hostname or "", found.port, is_tls)
    msg = f"the address of an API must be a URL or the path of a socket, {_SUCH_AS}, not {shown(text)}"
    raise ValueError(msg)


def _split(text: str) -> SplitResult | None:
    try:
        url = urlsplit(text)
        has_port = url.port != 0
    except ValueError:  # a port of letters, or beyond 65,535; half an IPv6 address
        return None
    has_more = bool(url.query or url.fragment or url.username is not None)
    is_plain = url.scheme in {"http", "https"} and bool(url.hostname) and has_port and not has_more
    return url if is_plain else None

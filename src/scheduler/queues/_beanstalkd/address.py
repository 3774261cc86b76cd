from __future__ import annotations

from attrs import frozen

from .._queue import QueueError

PORT = 11_300


@frozen
class Address:
    path: str = ""
    host: str = ""
    port: int = PORT

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"unix:{self.path}" if self.path else f"{host}:{self.port}"


def address_of(text: str) -> Address:
    """Read `host`, `host:port`, `[::1]:port`, `unix:/path` or `/path`. Raises QueueError."""
    path = text.removeprefix("unix:")
    if path.startswith("/"):
        return Address(path=path)
    host, bracket, rest = text.removeprefix("[").partition("]") if text.startswith("[") else text.rpartition(":")
    if bracket == "]":
        port = rest.removeprefix(":")
    elif bracket == ":":
        port = rest
    else:
        host, port = text, ""
    number = int(port or PORT) if (port or str(PORT)).isascii() and (port or str(PORT)).isdigit() else 0
    if not host or ("[" in host) or (bracket != "]" and ":" in host) or not 0 < number < 2**16:
        msg = f"no address of a beanstalkd: {text!r}; write host, host:port, [IPv6]:port or unix:/path"
        raise QueueError(msg)
    return Address(host=host, port=number)

"""One client of greenstalk, for one thread at a time.

After an impossible answer the stream may be out of step. So the connection is closed, and the command counts as
unanswered. Silence is the same.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, TypeVar

try:
    import greenstalk
except ModuleNotFoundError as error:
    msg = f"a BeanstalkdQueue needs greenstalk, which cannot be imported ({error}): pip install timerqueue[beanstalkd]"
    raise ModuleNotFoundError(msg, name="greenstalk") from error

from .._queue import QueueUnavailable
from .address import Address
from .wire import BeanstalkWire, Reply, StrangeAnswer

__all__ = ["ANSWERS", "LONGEST_WAIT", "PATIENCE", "BeanstalkConnection", "Client", "greenstalk"]

Client = greenstalk.Client[bytes]

PATIENCE: Final = 5.0
"""Seconds. A silent server then counts as gone."""

LONGEST_WAIT: Final = 5
"""Whole seconds for a tick."""

ANSWERS: Final = (
    greenstalk.BuriedError,
    greenstalk.DeadlineSoonError,
    greenstalk.DrainingError,
    greenstalk.JobTooBigError,
    greenstalk.NotFoundError,
    greenstalk.OutOfMemoryError,
    greenstalk.TimedOutError,
)
"""The stream is in step. Any other error ends the connection."""

DEFAULT: Final = "default"

T = TypeVar("T")


class BeanstalkConnection:
    """A method that raises QueueUnavailable has closed it.

    `instance`: which start of the server. `longest`: bytes in a body. `wait`: seconds that the server may wait.
    """

    def __init__(self, address: Address, watch: Sequence[str], wait: float = LONGEST_WAIT) -> None:
        self._address = address
        self._socket = self._speak(lambda: _connected(address, PATIENCE + wait))
        self._client = self._speak(lambda: greenstalk.Client(self._socket, None))
        self._wire = BeanstalkWire(self._socket)
        # not by the client: if the server ends meanwhile, a half-made client would not be closed
        if DEFAULT not in watch:
            self.exchange([b"watch %s\r\n" % tube.encode() for tube in watch] + [b"ignore %s\r\n" % DEFAULT.encode()])
        self._tube = ""
        found = self.ask(lambda client: client.stats())
        self.instance = str(found["id"])  # hexadecimal: without a letter in it, greenstalk reads a number
        self.longest = found["max-job-size"]

    def ask(self, what: Callable[[Client], T]) -> T:
        """Raises one of ANSWERS, or QueueUnavailable."""
        return self._speak(lambda: what(self._client))

    def exchange(self, commands: Sequence[bytes]) -> list[Reply]:
        """Raises QueueUnavailable."""
        return self._speak(lambda: list(self._wire.exchange(commands)))

    def use(self, tube: str) -> None:
        if tube != self._tube:
            self.ask(lambda client: client.use(tube))
            self._tube = tube

    def close(self) -> None:
        """The server gives our unsettled ticks to others."""
        with suppress(OSError):
            self._socket.close()
        client = getattr(self, "_client", None)
        if client is not None:
            with suppress(OSError, ValueError):
                client.close()
        wire = getattr(self, "_wire", None)
        if wire is not None:
            wire.close()

    def break_off(self) -> None:
        """End another thread's wait: it gets QueueUnavailable."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _speak(self, what: Callable[[], T]) -> T:
        try:
            return what()
        except ANSWERS:
            raise
        except Exception as error:
            if hasattr(self, "_socket"):
                self.close()
            msg = f"beanstalkd at {self._address}: {_told(error)}"
            raise QueueUnavailable(msg) from error


def _connected(address: Address, patience: float) -> socket.socket:
    if address.path:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        made.settimeout(PATIENCE)
        try:
            made.connect(address.path)
        except BaseException:
            made.close()
            raise
    else:
        made = socket.create_connection((address.host, address.port), timeout=PATIENCE)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    made.settimeout(patience)
    return made


def _told(error: Exception) -> str:
    match error:
        case greenstalk.UnknownResponseError(status=status):
            return f"an unreadable answer: {status[:80]!r}"
        case greenstalk.BeanstalkdError():
            return f"it answered {type(error).__name__.removesuffix('Error')}, and the connection was dropped"
        case OSError() | StrangeAnswer():
            return str(error) or type(error).__name__
        case _:
            return f"an unreadable answer ({type(error).__name__}: {error})"

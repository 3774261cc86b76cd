"""The system's lookup of names, in a bounded number of threads.

A lookup blocks its thread, cannot be cancelled, and holds a socket. An abandoned lookup keeps its place until it
returns. So that names that hang do not block others, names that worked last time have their own places. Names that hung
are refused while no place is free.
"""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

import anyio
from anyio.from_thread import run_sync
from anyio.lowlevel import EventLoopToken, current_token
from attrs import define, field

Ask = Callable[[str], Sequence[str]]
"""Blocks until it has a name's addresses. Raises OSError."""

PLACES: Final = 64
PLACES_OF_PROVEN: Final = 32
MOST_PROVEN: Final = 10_000
"""Redirects may lead to more names."""


class NotLookedUp(OSError):
    """A thread or a place is lacking."""


@define(eq=False)
class _Lane:
    size: int
    used: int = 0
    waiting: deque[_Lookup] = field(factory=deque)


@define(eq=False)
class _Lookup:
    host: str
    lane: _Lane
    done: anyio.Event = field(factory=anyio.Event)
    askers: int = 0
    has_begun: bool = False
    addresses: Sequence[str] = ()
    error: OSError | None = None


def _ask_system(host: str) -> Sequence[str]:
    try:
        answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise socket.gaierror(socket.EAI_NONAME, "no name at all") from None
    return [str(sockaddr[0]) for *_, sockaddr in answers]


class SystemLookup:
    """The system's lookup, in threads, for one event loop. `ask` blocks."""

    def __init__(self, ask: Ask = _ask_system) -> None:
        self._ask = ask
        self._places = _Lane(PLACES)
        self._of_proven = _Lane(PLACES_OF_PROVEN)
        self._proven: dict[str, None] = {}
        self._hung: dict[str, None] = {}
        self._under_way: dict[str, _Lookup] = {}

    async def __call__(self, host: str) -> Sequence[str]:
        """Look up addresses, best first. Raises OSError, such as socket.gaierror."""
        if host in self._hung and self._places.used >= self._places.size:
            raise NotLookedUp(f"{self._threads()} lookups have not come back")
        lookup = self._under_way.get(host) or self._enter(host)
        lookup.askers += 1
        try:
            await lookup.done.wait()
        finally:
            lookup.askers -= 1
            if not lookup.askers and not lookup.done.is_set():
                self._given_up(lookup)
        if lookup.error is not None:
            raise lookup.error
        return lookup.addresses

    def why_late(self, host: str) -> str:
        """Words after "cannot look it up in time"."""
        lookup = self._under_way.get(host)
        if lookup is not None and lookup.has_begun:
            return ""
        return f": {self._threads()} lookups of other names have not come back"

    def _threads(self) -> int:
        return self._places.used + self._of_proven.used

    def _enter(self, host: str) -> _Lookup:
        lane = self._of_proven if host in self._proven else self._places
        lookup = self._under_way[host] = _Lookup(host, lane)
        lane.waiting.append(lookup)
        self._begin_next(lane)
        return lookup

    def _begin_next(self, lane: _Lane) -> None:
        while lane.used < lane.size and lane.waiting:
            self._begin(lane.waiting.popleft())

    def _begin(self, lookup: _Lookup) -> None:
        lookup.has_begun = True
        lookup.lane.used += 1
        thread = threading.Thread(target=self._run, args=(lookup, current_token()), name="lookup", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            self._returned(lookup, (), NotLookedUp("this machine can start no more threads"))

    def _run(self, lookup: _Lookup, token: EventLoopToken) -> None:
        """Runs in the lookup's thread."""
        error: OSError | None = None
        addresses: Sequence[str] = ()
        try:
            addresses = self._ask(lookup.host)
        except OSError as exc:
            error = exc
        with suppress(RuntimeError):  # the loop has ended: no caller waits
            run_sync(self._returned, lookup, addresses, error, token=token)

    def _returned(self, lookup: _Lookup, addresses: Sequence[str], error: OSError | None) -> None:
        lookup.lane.used -= 1
        lookup.addresses, lookup.error = addresses, error
        del self._under_way[lookup.host]
        if lookup.askers or lookup.host not in self._hung:
            self._hung.pop(lookup.host, None)
            _remember(self._proven, lookup.host)
        lookup.done.set()
        self._begin_next(lookup.lane)

    def _given_up(self, lookup: _Lookup) -> None:
        if lookup.has_begun:
            self._proven.pop(lookup.host, None)
            _remember(self._hung, lookup.host)
            return
        del self._under_way[lookup.host]
        lookup.lane.waiting.remove(lookup)


def _remember(names: dict[str, None], name: str) -> None:
    names.pop(name, None)
    names[name] = None
    if len(names) > MOST_PROVEN:
        del names[next(iter(names))]

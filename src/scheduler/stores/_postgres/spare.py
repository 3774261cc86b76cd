"""The one more connection that a node may have: who needs it gets it, and who hears the neighbour lets go of it.

Hearing tells of a death some seconds before the lease does. It can do without for as long as rows are loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from threading import Lock
from typing import Final

from .._store import StoreUnavailable
from .connection import Connection

LONGEST_WAIT: Final = 60.0
"""Seconds that one who needs it waits for another."""


class Spare:
    """One more connection to a store. `connect`: makes it."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._one_at_a_time = Lock()
        self._needed_by: set[object] = set()
        self._patient: set[object] = set()
        """Those of them that give way to the others."""
        self._heard_over: Connection | None = None

    def need(self, who: object) -> None:
        """Let nobody hear over it from now on: there are as many connections without it. Any thread."""
        self._needed_by.add(who)

    def let_be(self, who: object) -> None:
        """Need it no more. Any thread."""
        self._needed_by.discard(who)

    @contextmanager
    def lend(self, connect: Callable[[], Connection] | None = None, *, gives_way: bool = False) -> Iterator[Connection]:
        """Lend a new connection, once nobody has one, and close it. `connect`: makes another kind of it.

        `gives_way`: it is broken off when others need it, which raises psycopg.Error, and is asked for again later.
        """
        who = object()
        if gives_way:
            self._patient.add(who)
        self.need(who)
        try:
            if not self._one_at_a_time.acquire(timeout=LONGEST_WAIT):
                msg = f"others have been reading rows for {LONGEST_WAIT:g} s"
                raise StoreUnavailable(msg)
            try:
                self.close()
                with closing((connect or self._connect)()) as connection:
                    if gives_way:
                        connection.why_unwanted = self._why_to_give_way  # type: ignore[method-assign]
                    yield connection
            finally:
                self._one_at_a_time.release()
        finally:
            self.let_be(who)
            self._patient.discard(who)

    @contextmanager
    def hear(self, prepare: Callable[[Connection], object], is_over: Callable[[], bool]) -> Iterator[Connection]:
        """Lend a connection that is kept, until `is_over` or somebody needs it. Raises StoreUnavailable if so.

        `prepare`: told of each new one.
        """
        if self._needed_by or not self._one_at_a_time.acquire(blocking=False):
            msg = "the connection over which the neighbour is heard is needed for something else"
            raise StoreUnavailable(msg)
        try:
            connection = self._heard_over
            if connection is None or connection.closed:
                self._heard_over = connection = self._connect()
                connection.why_unwanted = partial(self._why_unwanted, is_over)  # type: ignore[method-assign]
                prepare(connection)
            connection.why_unwanted = partial(self._why_unwanted, is_over)  # type: ignore[method-assign]
            yield connection
        except BaseException:
            self.close()
            raise
        finally:
            self._one_at_a_time.release()

    def _why_unwanted(self, is_over: Callable[[], bool]) -> str:
        if is_over():
            return "somebody else is the neighbour by now"
        return "the connection is needed for something else" if self._needed_by else ""

    def _why_to_give_way(self) -> str:
        return "the connection is needed for something else" if self._needed_by - self._patient else ""

    def close(self) -> None:
        """Let go of the connection over which somebody hears. Any thread."""
        if self._heard_over is not None:
            self._heard_over.close()
            self._heard_over = None

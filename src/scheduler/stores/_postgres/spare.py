"""A node's one more connection. It hears the neighbour, unless needed for more.

Hearing only tells of a death some seconds before the lease. It stops while the node breaks off a session that stops a
burial, and while two sessions renew its lease. An exclusive node reads all rows over it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from threading import Lock
from typing import Final

from .._store import StoreBusy
from .connection import StoreConnection

NEEDED: Final = "the connection over which the neighbour is heard is needed for something else"

LONGEST_WAIT: Final = 6.0
"""Seconds: the hearing thread may connect."""


class Spare:
    def __init__(self, connect: Callable[[], StoreConnection]) -> None:
        self._connect = connect
        self._one_at_a_time = Lock()
        self._needed_by: set[object] = set()
        self._heard_over: StoreConnection | None = None
        self._lent: StoreConnection | None = None

    def need(self, who: object) -> None:
        """Stop hearing. Any thread."""
        self._needed_by.add(who)
        one_at_a_time = self._one_at_a_time  # `end` may put another in its place
        if one_at_a_time.acquire(blocking=False):  # else the hearing thread notices in a moment
            self.close()
            one_at_a_time.release()

    def let_be(self, who: object) -> None:
        """Undo `need`. Any thread."""
        self._needed_by.discard(who)

    @contextmanager
    def lend(self) -> Iterator[StoreConnection]:
        """Lend a new connection, and no other meanwhile. Raises StoreBusy if another caller needs it."""
        if self._needed_by:
            raise StoreBusy(NEEDED)
        who = object()
        self.need(who)
        try:
            one_at_a_time = self._one_at_a_time
            if not one_at_a_time.acquire(timeout=LONGEST_WAIT):
                msg = f"the connection over which the neighbour is heard was not let go within {LONGEST_WAIT:g} s"
                raise StoreBusy(msg)
            try:
                self.close()
                with closing(self._connect()) as connection:
                    self._lent = connection
                    yield connection
            finally:
                self._lent = None
                one_at_a_time.release()
        finally:
            self.let_be(who)

    @contextmanager
    def hear(
        self, prepare: Callable[[StoreConnection], object], is_over: Callable[[], bool]
    ) -> Iterator[StoreConnection]:
        """Lend a kept connection until `is_over`. Raises StoreBusy when another caller needs it. `prepare`: for a new
        one.
        """
        one_at_a_time = self._one_at_a_time
        if self._needed_by or not one_at_a_time.acquire(blocking=False):
            raise StoreBusy(NEEDED)
        try:
            connection = self._heard_over
            if connection is None or connection.closed:
                self._heard_over = connection = self._connect()
                prepare(connection)
            connection.why_unwanted = partial(self._why_unwanted, is_over)  # type: ignore[method-assign]
            yield connection
        except BaseException:
            self.close()
            raise
        finally:
            one_at_a_time.release()

    def _why_unwanted(self, is_over: Callable[[], bool]) -> str:
        if is_over():
            return "another node is the neighbour now"
        return NEEDED if self._needed_by else ""

    def end(self) -> None:
        """Close also what is lent: a waiting or resting reader is broken off. Any thread."""
        self.close()
        lent, self._lent = self._lent, None
        if lent is None:
            return
        lent.why_unwanted = lambda: "the store is being closed"  # type: ignore[method-assign]
        self._one_at_a_time, self._needed_by = Lock(), set()  # for a store that is opened again
        if lent.lock.acquire(blocking=False):
            lent.close()
            lent.lock.release()

    def close(self) -> None:
        """Close the hearing connection. Any thread."""
        connection, self._heard_over = self._heard_over, None
        if connection is not None:
            connection.close()

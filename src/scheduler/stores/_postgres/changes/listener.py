"""The thread that waits for PostgreSQL to say that something has changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from logging import getLogger
from threading import Event, Lock, Thread
from typing import Final

from psycopg import Notify

from timerqueue import boottime

from ...._values import Backoff
from ..._store import StoreError
from ..beside import Beside
from ..connection import Connection, sql

logger = getLogger(__name__)

RETRY: Final = Backoff(0.1, 1.0)
"""The delays before it connects again: the renewal of the lease relies on it."""

TURN: Final = 0.1
"""Seconds after which it checks whether it must end, and whether the connection is another one now."""

PAUSE: Final = 0.1
AT_ONCE: Final = {"": 1, "news": 2}
"""How many hints come at once within a PAUSE when rows were changed: by hand, and by a node.

All further hints share one at its end: a look costs more than the change that it is for. For nodes it is two: a node
that asks another for a run hears its own request before the answer.
"""


class Listener:
    """Calls `hint` after each NOTIFY, and whenever there is a new connection: changes may have come before.

    A payload in `others` has a hint of its own instead. `is_for_us` says whether a payload concerns us. Any thread that
    uses that connection may call these. The listener needs a session of its own, which PgBouncer gives only in mode
    "session". Without it changes are found a little later by looking.
    """

    def __init__(
        self,
        beside: Beside,
        channel: str,
        hint: Callable[[], None],
        others: Mapping[str, Callable[[], None]] | None = None,
        is_for_us: Callable[[str], bool] | None = None,
    ) -> None:
        self._beside = beside
        self._listen = sql.SQL("LISTEN {}").format(sql.Identifier(channel))
        self._hint = hint
        self._others = others or {}
        self._is_for_us = is_for_us
        self._pace = Pace()
        self._ended = Event()
        self._failures = 0
        beside.prepare_with(self._prepare)
        self._thread = Thread(target=self._run, name="timerqueue-postgres-listener", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread. While connecting it ends some seconds later, and calls nothing any more."""
        self._ended.set()
        self._thread.join(1.0)

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self._beside.listen(TURN)
            except StoreError as error:
                if not self._ended.is_set():
                    logger.info("not listening to PostgreSQL, changes by others are seen a little later: %s", error)
                self._failures += 1
                self._ended.wait(RETRY.after(self._failures))
            if self._pace.has_more(boottime()):
                self._tell(self._hint)

    def _prepare(self, connection: Connection) -> None:
        if self._ended.is_set():
            return
        connection.add_notify_handler(self._heard)
        connection.execute(self._listen)
        self._failures = 0
        for hint in (self._hint, *self._others.values()):
            self._tell(hint)

    def _heard(self, said: Notify) -> None:
        """Give a hint at once for changed rows, and for more of them at the end of a pause."""
        if self._is_for_us is not None and not self._is_for_us(said.payload):
            return
        most = AT_ONCE.get(said.payload)
        if most is None:
            self._tell(self._others.get(said.payload, self._hint))
        elif self._pace.may_tell(most, boottime()):
            self._tell(self._hint)

    def _tell(self, hint: Callable[[], None]) -> None:
        if not self._ended.is_set():
            hint()


class Pace:
    """How many hints are given within a PAUSE. Pure, except for its lock: several threads hear."""

    def __init__(self) -> None:
        self._given = 0
        self._until = 0.0
        self._has_more = False
        self._lock = Lock()

    def may_tell(self, most: int, now: float) -> bool:
        """Whether to give a hint now, if `most` may come at once. Else one is due at the end of the pause."""
        with self._lock:
            if now >= self._until and not self._has_more:
                self._given = 0
            if self._given >= most:
                self._has_more = True
                return False
            self._given += 1
            if self._given == 1:
                self._until = now + PAUSE
            return True

    def has_more(self, now: float) -> bool:
        """Whether a pause is over and its hint is due. Another pause begins then."""
        with self._lock:
            if not self._has_more or now < self._until:
                return False
            self._given, self._until, self._has_more = 1, now + PAUSE, False
            return True

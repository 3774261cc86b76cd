from __future__ import annotations

from collections.abc import Callable, Mapping
from logging import getLogger
from threading import Event, Lock, Thread
from typing import Final

from psycopg import Notify

from timerqueue import boottime

from ...._values import Backoff
from ..._store import StoreError
from ..beside import LentConnection
from ..connection import StoreConnection, sql

logger = getLogger(__name__)

RETRY: Final = Backoff(0.1, 1.0)

TURN: Final = 0.1
"""Seconds."""

PAUSE: Final = 0.1
AT_ONCE: Final = {"": 1, "news": 2}
"""Hints at once per PAUSE, after changes by hand and by a node; later ones share one.

A look costs more than the change. A node that asks for a run hears its own request before the answer: two.
"""


class Listener:
    """Calls `hint` after each NOTIFY, and for each new connection, because changes may have come before.

    A payload in `others` has its own hint. `is_for_us`: whether a payload concerns us. The thread that uses the
    connection calls them. Through PgBouncer this needs mode "session"; else changes are seen a little later.
    """

    def __init__(
        self,
        beside: LentConnection,
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
        """End the thread, some seconds later while it connects."""
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

    def _prepare(self, connection: StoreConnection) -> None:
        if self._ended.is_set():
            return
        connection.add_notify_handler(self._heard)
        connection.execute(self._listen)
        self._failures = 0
        for hint in (self._hint, *self._others.values()):
            self._tell(hint)

    def _heard(self, said: Notify) -> None:
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
    """Limits hints per PAUSE. Any thread."""

    def __init__(self) -> None:
        self._given = 0
        self._until = 0.0
        self._has_more = False
        self._lock = Lock()

    def may_tell(self, most: int, now: float) -> bool:
        """Whether to hint now. Otherwise `has_more` does at the pause's end."""
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
        """Whether a delayed hint is due. Begins the next pause."""
        with self._lock:
            if not self._has_more or now < self._until:
                return False
            self._given, self._until, self._has_more = 1, now + PAUSE, False
            return True

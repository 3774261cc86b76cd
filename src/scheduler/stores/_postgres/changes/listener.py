"""The thread that waits for PostgreSQL to say that something has changed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from logging import getLogger
from threading import Event, Thread
from typing import Final

from ...._values import Backoff
from ..connection import Connection, connect, psycopg, sql

logger = getLogger(__name__)

RETRY: Final = Backoff(0.1, 10.0)
"""How long after a failure it connects again."""

PAUSE: Final = 0.1
AT_ONCE: Final = {"": 1, "news": 2}
"""What is said when rows have changed, by hand and by an agent: how many hints of it come at once within a PAUSE, in
seconds. All that follow share one at its end, for a look costs more than the change that it is for.

Of agents two: one that asks another one for a run hears its own request before the answer.
"""


class Listener:
    """Calls `hint` after each NOTIFY, and whenever it has connected: something may have happened before.

    What has a hint of its own among `others`, by what is said with NOTIFY, gets that instead. `is_for_us` says of
    what is said whether it concerns us.

    It needs a session of its own, which PgBouncer gives in no mode but "session": elsewhere it hears nothing, and the
    changes are found a little later by looking.
    """

    def __init__(
        self,
        dsn: str,
        channel: str,
        hint: Callable[[], None],
        others: Mapping[str, Callable[[], None]] | None = None,
        is_for_us: Callable[[str], bool] | None = None,
    ) -> None:
        self._dsn = dsn
        self._listen = sql.SQL("LISTEN {}").format(sql.Identifier(channel))
        self._hint = hint
        self._others = others or {}
        self._is_for_us = is_for_us
        self._ended = Event()
        self._failures = 0
        self._thread = Thread(target=self._run, name="timerqueue-postgres-listener", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread. Where it is just connecting it ends some seconds later, and calls nothing any more."""
        self._ended.set()
        self._thread.join(1.0)

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self._hear()
            except psycopg.Error as error:
                if not self._ended.is_set():
                    logger.info("not listening to PostgreSQL, changes by others are seen a little later: %s", error)
            self._failures += 1
            self._ended.wait(RETRY.after(self._failures))

    def _hear(self) -> None:
        with closing(connect(self._dsn)) as connection:
            connection.is_unwanted = self._ended.is_set  # type: ignore[method-assign]
            connection.execute(self._listen)
            connection.patience = sys.maxsize  # silence is what it expects from now on
            self._failures = 0
            for hint in (self._hint, *self._others.values()):
                self._tell(hint)
            self._heed(connection)

    def _heed(self, connection: Connection) -> None:
        """Give hints for all that is said: for changed rows at once, and for more of them at the end of a pause."""
        given, has_more = 0, False
        while not self._ended.is_set():
            is_pause = given > 0
            for said in connection.notifies(timeout=PAUSE if is_pause else None, stop_after=None if is_pause else 1):
                if self._is_for_us is not None and not self._is_for_us(said.payload):
                    continue
                if (most := AT_ONCE.get(said.payload)) is None:
                    self._tell(self._others.get(said.payload, self._hint))
                elif given < most:
                    given += 1
                    self._tell(self._hint)
                else:
                    has_more = True
            if is_pause:  # it is over, and another one begins if it had more
                given = int(has_more)
                if has_more:
                    self._tell(self._hint)
                has_more = False

    def _tell(self, hint: Callable[[], None]) -> None:
        if not self._ended.is_set():
            hint()

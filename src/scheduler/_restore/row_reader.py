"""Sanitize rows, with one warning for each value that makes no sense."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from logging import getLogger
from typing import Final

from .._journal import Wrong, sound_job, sound_pause, sound_state, sound_tick
from .._values import shown
from ..stores import StoredJob, StoredPause, StoredState, StoredTick

logger = getLogger(__name__)

REMEMBERED: Final = 10_000
"""Warnings. After this many they begin again."""


class RowReader:
    def __init__(self) -> None:
        self._said: set[tuple[str, ...]] = set()

    def job(self, row: StoredJob) -> StoredJob | None:
        """None: it can be no job."""
        sound, wrong = sound_job(row)
        if wrong:
            self._say("job", wrong, row.id)
        return sound

    def state(self, row: StoredState | None) -> StoredState | None:
        if row is None:
            return None
        sound, wrong = sound_state(row)
        if wrong:
            self._say("job_state", wrong, row.job_id)
        return sound

    def pause(self, row: StoredPause) -> StoredPause | None:
        """None: it pauses nothing."""
        sound, wrong = sound_pause(row)
        self._say("pause", wrong, row.scope)
        return sound

    def ticks(self, rows: Iterable[StoredTick]) -> Iterator[StoredTick]:
        for row in rows:
            sound, wrong = sound_tick(row)
            self._say("tick", wrong, row.job_id, row.due_us)
            if sound is not None:
                yield sound

    def _say(self, table: str, wrong: list[Wrong], *key: object) -> None:
        for each in wrong:
            said = (table, *map(shown, key), each.column, shown(each.value))
            if said in self._said:
                continue
            if len(self._said) >= REMEMBERED:
                self._said.clear()
            self._said.add(said)
            where = ", ".join(map(shown, key))
            logger.warning("%s %s: %s is %s: %s", table, where, each.column, shown(each.value), each.taken)

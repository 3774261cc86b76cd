"""The answer from a store alone, for a process that runs no scheduler. Another process may have the store open."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Protocol

from schedule import Schedule
from timerqueue import Clock, SystemClock

from .._journal import columns_of, pause_of, sound_job, sound_pause, sound_state
from .._plan import aware, instant_at, instant_of, us_of
from .._values import EVERYTHING, NO_REASON, InvalidJob, Pause, scope_of, scope_of_job
from ..stores import Stood, StoredJob, StoredState, StoredTick
from .answer import why
from .facts import MOST_TICKS, Facts, Standing
from .meant import sound
from .verdict import Why

_SECOND_US: Final = 1_000_000
_LONG_AGO = instant_of(0)


class ReadableStore(Protocol):
    """A store that answers without being open, such as SQLiteStore and PostgresStore."""

    def history(
        self, job_id: str | None = None, *, limit: int = 100, before_us: int | None = None
    ) -> list[StoredTick]: ...

    def standing(self, job_id: str) -> Stood:
        """Return a job's row and state, and all pauses."""


def why_from(store: ReadableStore, job_id: str, at: datetime | None = None, *, clock: Clock | None = None) -> Why:
    """Return why a stored job did or did not run at an instant, like `Scheduler.why`.

    Blocks. What waits in a running process is not in the store: such a tick is not known yet. Raises StoreError, and
    InvalidJob for a naive datetime.
    """
    now = instant_at((SystemClock() if clock is None else clock).wall())
    at = None if at is None else aware("at", at)
    until_us = us_of(now if at is None else at) + _SECOND_US
    ticks = sound(store.history(job_id, limit=MOST_TICKS, before_us=until_us))
    stood = store.standing(job_id)
    facts = Facts(
        job_id=job_id,
        now=now,
        standing=None if stood.job is None else _standing(stood, stood.job),
        ticks=ticks,
        has_later=not ticks and bool(store.history(job_id, limit=1)),
    )
    return why(facts, at)


def _standing(stood: Stood, row: StoredJob) -> Standing:
    sound_row, _ = sound_job(row)
    state = None if stood.state is None else sound_state(stood.state)[0]
    next_start = None if state is None or state.next_us is None else instant_of(state.next_us)
    try:
        columns = columns_of(row if sound_row is None else sound_row)
    except InvalidJob as exc:
        return Standing(schedule=None, fault=str(exc), pauses=_pauses(stood, row, frozenset()), next_start=next_start)
    schedule: Schedule = columns.schedule.bind(columns.policy.key_of(row.id))
    pauses = _pauses(stood, row, columns.tags)
    return Standing(
        schedule=schedule,
        pauses=pauses,
        left_out_from=next_start if pauses else None,
        rests_from=next_start,
        rests_until=None if state is None or state.not_before_us is None else instant_of(state.not_before_us),
        next_start=None if pauses else next_start,
        last_start=_last_start(state),
    )


def _pauses(stood: Stood, row: StoredJob, tags: frozenset[str]) -> list[Pause]:
    own = []
    if row.paused is not None:
        until = None if row.paused_until_us is None else instant_of(row.paused_until_us)
        own = [Pause(scope_of_job(row.id), row.paused or NO_REASON, _LONG_AGO, until)]
    scopes = {EVERYTHING, *map(scope_of, tags)}
    found = [pause for each in stood.pauses if (pause := sound_pause(each)[0]) is not None]
    return [*own, *(pause_of(each) for each in found if each.scope in scopes)]


def _last_start(state: StoredState | None) -> datetime | None:
    return None if state is None or state.last_start_us is None else instant_of(state.last_start_us)

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import chain
from typing import Final, TypeVar

from attrs import Factory, define

from .._jobs import JobAttempt
from ..stores import Batch, StoredChange

T = TypeVar("T")

_DICTS: Final = ("jobs", "paused", "finished", "states", "released", "planned", "added", "begun")
_LISTS: Final = ("ended", "missed", "marks", "placed", "lost", "requests", "done")
"""Dicts by job id, and lists of records with a `job_id`."""

_OF_NEW_ROWS: Final = frozenset({"added", "begun"})
"""They say more of rows that `jobs` has."""

_STANDINGS: Final = frozenset({"states", "ended", "missed", "marks"})

Flushed = Callable[[Exception | None], object]
"""Gets None when all is durable, or the error that lost a part."""


@define
class Sealed:
    batch: Batch
    runs: list[JobAttempt]
    flushed: list[Flushed]
    together: Collection[str] = Factory(tuple)

    @property
    def size(self) -> int:
        """How many notes it has."""
        noted = (getattr(self.batch, name) for name in (*_DICTS, *_LISTS, "pauses") if name not in _OF_NEW_ROWS)
        return len(self.flushed) + len(self.batch.made) + sum(map(len, noted))

    def job_ids(self) -> list[str]:
        batch = self.batch
        of_dicts = [job_id for name in _DICTS for job_id in getattr(batch, name)]
        return list(dict.fromkeys([*of_dicts, *(each.job_id for name in _LISTS for each in getattr(batch, name))]))

    def by_job(self) -> list[Sealed]:
        """Return a batch for the pauses and the changes of no job, and one per job. Callers wait for the last."""
        parts = self._parts([[job_id] for job_id in self.job_ids()])
        made = self._made_of_others(self.job_ids())
        if self.batch.pauses or made:
            parts.insert(0, Sealed(Batch(pauses=self.batch.pauses, made=made), [], []))
        return self._told_last(parts)

    def pieces(self, most: int) -> list[Sealed]:
        """Return one batch of requests and what belongs together, and others with `most` jobs each."""
        batch = self.batch
        asked = chain(batch.jobs, batch.paused, batch.finished, batch.added, batch.begun)
        requested = (*(each.job_id for each in batch.requests), *(each.job_id for each in batch.done))
        whole = dict.fromkeys(chain(asked, requested, self.together))
        ids = [job_id for job_id in self.job_ids() if job_id not in whole]
        groups = [ids[first : first + most] for first in range(0, len(ids), most)]
        made = self._made_of_others(self.job_ids())
        if not whole and not batch.pauses and not made:
            return self._told_last(self._parts(groups))
        parts = self._parts([[*whole], *groups])
        parts[0].batch.pauses = batch.pauses
        parts[0].batch.made += made
        parts[0].together = self.together
        return self._told_last(parts)

    def apart(self, job_ids: Collection[str]) -> tuple[Sealed | None, Sealed | None]:
        """Divide into these jobs and the rest. Jobs that belong together stay together.

        No caller waits for either part.
        """
        chosen = set(job_ids)
        if not chosen.isdisjoint(self.together):
            chosen.update(self.together)
        ids = self.job_ids()
        ours, others = ([id for id in ids if (id in chosen) is is_ours] for is_ours in (True, False))
        first, rest = self._parts([ours, others])
        rest.batch.pauses = self.batch.pauses
        rest.batch.made += self._made_of_others(self.job_ids())
        for part, part_ids in ((first, ours), (rest, others)):
            part.together = [id for id in self.together if id in part_ids]
        return first if ours else None, rest if others or rest.batch.pauses or rest.batch.made else None

    def extend(self, later: Sealed) -> bool:
        """Add a later batch. False: it must come after this one."""
        ours, theirs = self.batch, later.batch
        ended, marked = ({(tick.job_id, tick.due_us) for tick in ticks} for ticks in (theirs.ended, ours.marks))
        rows = any(getattr(theirs, name) for name in (*_DICTS, *_LISTS) if name not in _STANDINGS)
        if rows or theirs.made or not ended.isdisjoint(marked):
            return False
        ours.states.update(theirs.states)
        for name in ("ended", "missed", "marks"):
            getattr(ours, name).extend(getattr(theirs, name))
        self.runs += later.runs
        self.together = [*dict.fromkeys([*self.together, *later.together])]
        return True

    def _parts(self, groups: Sequence[Sequence[str]]) -> list[Sealed]:
        """Walk once for all groups: there may be thousands of records."""
        batch = self.batch
        parts = [Sealed(Batch(is_news=batch.is_news), [], []) for _ in groups]
        by_id = {job_id: part for part, ids in zip(parts, groups, strict=True) for job_id in ids}
        for job_id, part in by_id.items():
            for name in _DICTS:
                _copy(getattr(batch, name), getattr(part.batch, name), job_id)
        for job_id in batch.changed:
            by_id[job_id].batch.changed.add(job_id)
        for name in _LISTS:
            for each in getattr(batch, name):
                getattr(by_id[each.job_id].batch, name).append(each)
        for run in self.runs:
            by_id[run.job.id].runs.append(run)
        for made in batch.made:
            if (found := by_id.get(made.job_id or "")) is not None:
                found.batch.made.append(made)
        return parts

    def _made_of_others(self, job_ids: Collection[str]) -> list[StoredChange]:
        """Return changes of scopes, and of jobs of which the batch has nothing else."""
        known = {*job_ids}
        return [made for made in self.batch.made if made.job_id not in known]

    def _told_last(self, parts: list[Sealed]) -> list[Sealed]:
        if parts:
            parts[-1].flushed = self.flushed
        return parts


def _copy(source: dict[str, T], target: dict[str, T], key: str) -> None:
    if key in source:
        target[key] = source[key]

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from threading import RLock

from .._values import InvalidJob, JobNotFound, Policy
from ..stores import shard_of
from .job import Job
from .ownership import Ownership


def shard_of_job(job: Job) -> int:
    return shard_of(job.policy.place or job.id, job.policy.where)


def _nobody(whole: str) -> None: ...


class JobList:
    """Jobs in the order of their addition. Any thread.

    `by_id` is changed with `lock` held, and may be read without.
    """

    def __init__(self, ownership: Ownership) -> None:
        self.ownership = ownership
        self.by_id: dict[str, Job] = {}
        self.lock = RLock()
        self._parts: dict[str, dict[str, None]] = {}
        self._on_part_gone: Callable[[str], object] = _nobody
        self._number = 1
        self._offered = ""
        """The id that `free_id` returned last. Perhaps no job has taken it."""

    def __len__(self) -> int:
        return len(self.by_id)

    def get(self, id: str) -> Job:
        """Raises JobNotFound."""
        try:
            return self.by_id[id]
        except KeyError:
            msg = f"there is no job {id!r}: it was never added, was removed, or its schedule has ended"
            raise JobNotFound(msg) from None

    def find(self, id: str) -> Job | None:
        return self.by_id.get(id)

    def is_elsewhere(self, job: Job) -> bool:
        return job.task is not None and self.is_others(job.id, job.policy)

    def is_others(self, id: str, policy: Policy) -> bool:
        """Return whether other nodes have the job. A job in parts has no owner; its parts do."""
        ours = self.ownership
        return not ours.holds(id, policy.place, policy.where) or (policy.agents is not None and ours.is_shared)

    def begins_elsewhere(self, job: Job, *, at_once: bool) -> bool:
        """Return whether another node begins the new job. `at_once`: the job has a start now."""
        if job.task is None:
            return False
        policy, ours = job.policy, self.ownership
        if policy.agents is not None and ours.is_shared:
            return True
        return not ours.begin(job.id, policy.place, policy.where, at_once=at_once)

    def is_asked_elsewhere(self, job: Job) -> bool:
        return job.is_elsewhere and not job.is_removed and self.ownership.are_asked

    def agent_of(self, job: Job) -> str | None:
        if job.task is None or job.policy.agents is not None:
            return None
        return self.ownership.agent_of(job.id, job.policy.place, job.policy.where)

    def check_placement(self, policy: Policy, *, is_stored: bool) -> None:
        """Raise InvalidJob if the policy chooses nodes and this store cannot."""
        where, agents, ours = policy.where, policy.agents, self.ownership
        if where is None and agents is None:
            return
        has_parts = agents is not None or policy.is_part
        if is_stored and ours.know_labels and (ours.know_parts or not has_parts):
            return
        if is_stored and ours.know_labels:
            why = "one node takes each start of a job that stands in a queue, and where= says among which"
        else:
            why = "it is for stored jobs of nodes that share a store: PostgresStore(dsn, shared=True, labels={...})"
        asked = f"where={where!r}" if agents is None else f"agents={agents!r}"
        msg = f"{asked} chooses among nodes, and there is no choice: {why}"
        raise InvalidJob(msg)

    def lacks(self, job: Job) -> str | None:
        where, view = job.policy.where, self.ownership.view
        if where is None or view is None or not view.lacks(where):
            return None
        return None if job.policy.is_part and view.owner_of(shard_of_job(job)) else where

    def jobs(self) -> list[Job]:
        with self.lock:
            return list(self.by_id.values())

    def entered_after(self, id: str | None) -> list[Job]:
        """Return the jobs added after the job `id`, without replacements. None: all jobs."""
        with self.lock:
            later = list(takewhile(lambda each: each != id, reversed(self.by_id)))
            return [self.by_id[each] for each in reversed(later)]

    def enter(self, job: Job) -> None:
        with self.lock:
            self.by_id[job.id] = job
        if job.policy.is_part:
            self.note_part(job)

    def watch_parts(self, on_part_gone: Callable[[str], object]) -> None:
        """Call `on_part_gone` with the whole job's id when a part is removed. Any thread."""
        self._on_part_gone = on_part_gone

    def note_part(self, job: Job) -> None:
        with self.lock:
            self._parts.setdefault(job.policy.place or "", {})[job.id] = None

    def parts_of(self, id: str) -> list[Job]:
        with self.lock:
            found = [self.by_id.get(part) for part in self._parts.get(id, ())]
        return [part for part in found if part is not None and part.policy.is_part and part.policy.place == id]

    def discard(self, job: Job) -> None:
        with self.lock:
            job.is_removed, job.is_plain = True, False
            if self.by_id.get(job.id) is job:
                del self.by_id[job.id]
                if not self.by_id:
                    self.by_id.clear()  # else the table of 100,000 jobs would keep 5 MiB
            if job.id == self._offered:  # the job had taken the offered id
                self._number += 1
        if job.policy.is_part:
            self._forget_part(job)

    def _forget_part(self, job: Job) -> None:
        whole = job.policy.place or ""
        with self.lock:
            parts = self._parts.get(whole, {})
            if job.id not in self.by_id:
                parts.pop(job.id, None)
            if not parts:
                self._parts.pop(whole, None)
        self._on_part_gone(whole)

    def free_id(self) -> str:
        """Return an unused id. Call it with `lock` held."""
        while (id := f"job-{self._number}") in self.by_id:
            self._number += 1
        self._offered = id
        return id

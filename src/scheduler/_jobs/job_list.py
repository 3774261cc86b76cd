"""The jobs of one scheduler, by id: the dict, its lock, and numbers for jobs that are given no id."""

from __future__ import annotations

from itertools import takewhile
from threading import RLock

from .._values import InvalidJob, JobNotFound
from ..stores import Shares, shard_of
from .job import Job


def shard_of_job(job: Job) -> int:
    """The shard of a stored job, where agents share the store."""
    return shard_of(job.policy.place or job.id, job.policy.where)


class JobList:
    """All jobs of a scheduler, in the order in which they were added. Any thread.

    `by_id` is changed with `lock` held, and may be looked into without. `shares`: which of the stored jobs are ours,
    where other agents have the rest; None: all are.
    """

    def __init__(self, shares: Shares | None = None) -> None:
        self.shares = shares
        self.by_id: dict[str, Job] = {}
        self.lock = RLock()
        self._number = 1
        self._offered = ""
        """The last id that was made up. It is offered again unless a job has taken it."""

    def __len__(self) -> int:
        return len(self.by_id)

    def get(self, id: str) -> Job:
        """The job of that id. Raises JobNotFound."""
        try:
            return self.by_id[id]
        except KeyError:
            msg = f"there is no job {id!r}: it was never added, was removed, or its schedule has ended"
            raise JobNotFound(msg) from None

    def find(self, id: str) -> Job | None:
        """The job of that id; None: there is none."""
        return self.by_id.get(id)

    def is_elsewhere(self, job: Job) -> bool:
        """Whether another agent has that job."""
        if self.shares is None or job.task is None:
            return False
        return not self.shares.holds(job.id, job.policy.place, job.policy.where)

    def begins_elsewhere(self, job: Job, *, at_once: bool) -> bool:
        """Whether another agent is to have that job, which is added here. `at_once`: it has a start now."""
        return (
            self.shares is not None
            and job.task is not None
            and not self.shares.begin(job.id, job.policy.place, job.policy.where, at_once=at_once)
        )

    def is_asked_elsewhere(self, job: Job) -> bool:
        """Whether another agent has the job, and is to be asked for what concerns it."""
        return job.is_elsewhere and not job.is_removed and self.shares is not None and self.shares.are_asked

    def agent_of(self, job: Job) -> str | None:
        """The name of the agent that has the job; None: no other could have it."""
        if self.shares is None or job.task is None:
            return None
        return self.shares.agent_of(job.id, job.policy.place, job.policy.where)

    def check_where(self, where: str | None, *, is_stored: bool) -> None:
        """Raise InvalidJob for labels where none are looked at."""
        if where is None or (is_stored and self.shares is not None and self.shares.know_labels):
            return
        if is_stored and self.shares is not None:
            why = "whichever agent is free takes a job whose starts stand in a queue"
        else:
            why = "it is for stored jobs of agents that share a store: PostgresStore(dsn, shared=True, labels={...})"
        msg = f"where={where!r} chooses among agents, and there is no choice: {why}"
        raise InvalidJob(msg)

    def lacks(self, job: Job) -> str | None:
        """The labels that the job asks for and no agent has, as was seen last; None: it lacks none."""
        where, view = job.policy.where, None if self.shares is None else self.shares.view
        return None if where is None or view is None or not view.lacks(where) else where

    def jobs(self) -> list[Job]:
        """All of them at this moment."""
        with self.lock:
            return list(self.by_id.values())

    def entered_after(self, id: str | None) -> list[Job]:
        """Jobs that were entered after the one of that id was, but for those in the place of another. None: all."""
        with self.lock:
            later = list(takewhile(lambda each: each != id, reversed(self.by_id)))
            return [self.by_id[each] for each in reversed(later)]

    def enter(self, job: Job) -> None:
        """Put the job in, in the place of one of its id."""
        with self.lock:
            self.by_id[job.id] = job

    def discard(self, job: Job) -> None:
        """Take the job out, and mark it as removed; another one of its id stays."""
        with self.lock:
            job.is_removed, job.is_plain = True, False
            if self.by_id.get(job.id) is job:
                del self.by_id[job.id]
                if not self.by_id:
                    self.by_id.clear()  # the table of 100,000 jobs takes 5 MiB, and stays until somebody does this
            if job.id == self._offered:  # it had it
                self._number += 1

    def free_id(self) -> str:
        """An id that no job has or was given here. Call it with `lock` held."""
        while (id := f"job-{self._number}") in self.by_id:
            self._number += 1
        self._offered = id
        return id

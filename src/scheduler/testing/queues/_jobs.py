"""The jobs of a fake beanstalkd, without socket or clock: each call gets the instant, in seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from itertools import count
from typing import Any, Final, Literal

from attrs import Factory, define

State = Literal["ready", "delayed", "reserved", "buried"]
MARGIN: Final = 1.0
"""Seconds before a job's time to run ends, in which its holder gets a warning instead of a job."""

Owner = object


@define(eq=False)
class ServerJob:
    """A job. `until`: the end of its delay or time to run. `order`: of arrival."""

    number: int
    tube: str
    body: bytes
    priority: int
    delay: int
    ttr: int
    made: float
    state: State = "ready"
    until: float = 0.0
    order: int = 0
    owner: Owner | None = None
    counts: Counter[str] = Factory(Counter)

    def statistics(self, now: float) -> dict[str, Any]:
        waits = self.state in {"delayed", "reserved"}
        return {
            "id": self.number,
            "tube": self.tube,
            "state": self.state,
            "pri": self.priority,
            "age": int(now - self.made),
            "delay": self.delay,
            "ttr": self.ttr,
            "time-left": max(int(self.until - now), 0) if waits else 0,
            "file": 0,
            **{name: self.counts[name] for name in ("reserves", "timeouts", "releases", "buries", "kicks")},
        }


class ServerJobs:
    def __init__(self) -> None:
        self.by_number: dict[int, ServerJob] = {}
        self.paused: dict[str, float] = {}
        self.pauses: dict[str, int] = {}
        """Seconds of each tube's last pause."""
        self.totals: Counter[str] = Counter()
        self.deletions: Counter[str] = Counter()
        self.pauses_asked: Counter[str] = Counter()
        self.timeouts = 0
        self._numbers = count(1)
        self._orders = count(1)

    def put(self, now: float, tube: str, body: bytes, *, priority: int, delay: int, ttr: int) -> ServerJob:
        job = ServerJob(next(self._numbers), tube, body, priority, delay, max(ttr, 1), now)
        self.by_number[job.number] = job
        self.totals[tube] += 1
        self._wait(job, now, delay)
        return job

    def pass_time(self, now: float) -> None:
        """Make jobs ready whose delay or time to run has ended."""
        for job in self.by_number.values():
            if job.state == "reserved" and job.until <= now:
                job.counts["timeouts"] += 1
                self.timeouts += 1
                self._ready(job)
            elif job.state == "delayed" and job.until <= now:
                self._ready(job)

    def next_ready(self, now: float, tubes: Collection[str]) -> ServerJob | None:
        ready = [
            job
            for job in self.by_number.values()
            if job.state == "ready" and job.tube in tubes and self.paused.get(job.tube, now) <= now
        ]
        return min(ready, key=lambda job: (job.priority, job.order), default=None)

    def reserve(self, job: ServerJob, now: float, owner: Owner) -> None:
        job.state, job.owner, job.until = "reserved", owner, now + job.ttr
        job.counts["reserves"] += 1

    def held(self, number: int, owner: Owner) -> ServerJob | None:
        job = self.by_number.get(number)
        return job if job is not None and job.state == "reserved" and job.owner is owner else None

    def held_by(self, owner: Owner) -> list[ServerJob]:
        return [job for job in self.by_number.values() if job.state == "reserved" and job.owner is owner]

    def release(self, job: ServerJob, now: float, priority: int, delay: int) -> None:
        job.priority, job.delay = priority, delay
        job.counts["releases"] += 1
        self._wait(job, now, delay)

    def give_back(self, owner: Owner) -> None:
        for job in self.held_by(owner):
            self._ready(job)

    def bury(self, job: ServerJob, priority: int) -> None:
        job.state, job.priority, job.owner = "buried", priority, None
        job.order = next(self._orders)
        job.counts["buries"] += 1

    def delete(self, number: int, owner: Owner) -> bool:
        job = self.by_number.get(number)
        if job is None or (job.state == "reserved" and job.owner is not owner):
            return False
        del self.by_number[number]
        self.deletions[job.tube] += 1
        return True

    def first(self, tube: str, state: State) -> ServerJob | None:
        """Return the job in that state that leaves the tube first."""
        found = [job for job in self.by_number.values() if job.tube == tube and job.state == state]
        match state:
            case "ready":
                return min(found, key=lambda job: (job.priority, job.order), default=None)
            case "delayed" | "reserved":
                return min(found, key=lambda job: job.until, default=None)
            case "buried":
                return min(found, key=lambda job: job.order, default=None)

    def kick(self, tube: str, most: int) -> int:
        """Make `most` buried jobs ready; if there are none, delayed ones."""
        kind: State = "buried" if self.first(tube, "buried") else "delayed"
        kicked = 0
        while kicked < most and (job := self.first(tube, kind)) is not None:
            self.kick_job(job)
            kicked += 1
        return kicked

    def kick_job(self, job: ServerJob) -> None:
        job.counts["kicks"] += 1
        self._ready(job)

    def pause(self, tube: str, now: float, seconds: int) -> None:
        self.paused[tube], self.pauses[tube] = now + seconds, seconds
        self.pauses_asked[tube] += 1

    def pause_left(self, tube: str, now: float) -> int:
        return max(int(self.paused.get(tube, now) - now), 0)

    def next_deadline(self, now: float) -> float | None:
        """Return when a delay or time to run ends, or a holder must be warned."""
        jobs = self.by_number.values()
        waiting = [job.until for job in jobs if job.state in {"delayed", "reserved"}]
        warnings = [job.until - MARGIN for job in jobs if job.state == "reserved" and job.until - MARGIN > now]
        return min((*waiting, *warnings, *self.paused.values()), default=None)

    def tubes(self) -> Iterator[str]:
        return (job.tube for job in self.by_number.values())

    def counts(self, tube: str | None = None) -> dict[str, int]:
        states = Counter(job.state for job in self.by_number.values() if tube in {None, job.tube})
        urgent = sum(job.state == "ready" and job.priority < 1_024 for job in self.by_number.values())  # noqa: PLR2004
        named = {f"current-jobs-{state}": states[state] for state in ("ready", "reserved", "delayed", "buried")}
        return {"current-jobs-urgent": urgent, **named}

    def _wait(self, job: ServerJob, now: float, delay: int) -> None:
        job.owner = None
        if delay:
            job.state, job.until = "delayed", now + delay
        else:
            self._ready(job)

    def _ready(self, job: ServerJob) -> None:
        job.state, job.owner, job.order = "ready", None, next(self._orders)

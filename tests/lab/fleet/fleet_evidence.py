"""The evidence by which a fleet is judged: what its tasks wrote, what its operator did, and what the store recorded.

All times are microseconds of CLOCK_MONOTONIC; due instants are turned into it by `wall`, what has to be added to get
UTC.
"""

from collections import defaultdict
from functools import cached_property
from typing import NamedTuple

ENDS = {"kill", "lose", "exit"}
"""Troubles after which a process is no more."""

STANDS_STILL = {"stop", "freeze"}

PROMPT = {"once", "again", "long", "many", "queued"}
"""Jobs that wait for nothing but their time."""


class Begun(NamedTuple):
    """A run has begun. `process`: whose log it stands in."""

    job: str
    due: int
    attempt: int
    fence: int
    at: int
    process: int

    @property
    def incarnation(self):
        """The epoch of the agent that began it."""
        return self.fence >> 32


class Trouble(NamedTuple):
    """The operator has troubled a process, or all by a server, from one instant to another: "kill", "cut" and so on."""

    kind: str
    process: int
    since: int
    until: int
    in_flight: bool = False
    lost: int | None = None
    """From when on the store has lost what it had committed, until `since`: a standby was behind. None: from never."""


class Record(NamedTuple):
    """A tick that the store has a record of, and that did not simply succeed. A missed one may stand for several.

    `ended`: when it ended, or was found to have died. Unlike other instants, in UTC; 0: it has not.
    """

    job: str
    due: int
    outcome: str
    fence: int
    last_due: int
    reason: str
    ended: int = 0


class Event(NamedTuple):
    """An agent has told of something: "lost", that it was taken for dead, or "unpruned", that nothing was forgotten."""

    kind: str
    at: int
    process: int


class Edit(NamedTuple):
    """An edit of a job: asked for at one instant, and durable at another; None: nobody knows whether it is."""

    verb: str
    job: str
    every: int
    asked: int
    done: int | None


class Evidence:
    """All that there is to judge by. `quiet`: when the last trouble was over.

    `on_time`: seconds after its due instant at which a start is still on time; as far away as the agents are.
    `within`: seconds after the return of a server in which all starts are to be on time again.
    """

    def __init__(
        self,
        *,
        begun,
        ended,
        cut_off=(),
        troubles=(),
        records=(),
        edits=(),
        gone=(),
        quarantined=(),
        events=(),
        names=None,
        every,
        limit,
        batch,
        quiet,
        wall=0,
        on_time=1.0,
        within=2.0,
    ):
        self.begun = sorted(begun, key=lambda each: each.at)
        self.ended = {(job, due, fence): at for job, due, fence, at in ended}
        self.cut_off = {(job, due, fence): at for job, due, fence, at in cut_off}
        self.troubles = sorted(troubles, key=lambda each: each.since)
        self.records = list(records)
        self.edits = sorted(edits, key=lambda each: each.asked)
        self.gone = dict(gone)
        self.quarantined = set(quarantined)
        self.events = sorted(events, key=lambda each: each.at)
        self.names = names or {}
        self.every = every
        self.limit = limit
        self.batch = batch
        self.quiet = quiet
        self.wall = wall
        self.on_time = on_time
        self.within = within
        self.by_tick = defaultdict(list)
        for each in self.begun:
            self.by_tick[each.job, each.due].append(each)

    @cached_property
    def late(self):
        """The first begin of each tick that was not on time, with when it was due, by the clock of `Begun.at`.

        Of jobs that wait for nothing else: not for units of a limit, nor for room, nor for one agent.
        """
        found = ((first, due - self.wall) for (job, due), (first, *_) in self.by_tick.items() if kind_of(job) in PROMPT)
        return [(first, was_due) for first, was_due in found if first.at - was_due > self.on_time * 1e6]

    def troubled(self, process, kinds, since, until):
        """Whether a process was in such trouble at any time between the two."""
        return any(
            each.process == process and each.kind in kinds and each.since <= until and each.until >= since
            for each in self.troubles
        )


def kind_of(job):
    """Return what the job is, which its id begins with."""
    return job.partition("-")[0]


def is_edited(job):
    """Whether it is a job that is edited: held by an agent, or with its executions in a broker."""
    return kind_of(job) in {"edited", "queued_edited"}


def whole_of(job):
    """Return the job of which that is one of several numbered parts, or itself."""
    return job.partition("#")[0]


def agent_of(job):
    """Return the name of the agent whose part the job is, or nothing."""
    return job.partition("@")[2]


def seconds(at, evidence):
    """Where an instant lies, from the first run on."""
    return f"at {(at - evidence.begun[0].at) / 1e6:.1f} s"


# -- what is read, and counted -----------------------------------------------------------------------------------------


def read_log(path, process):
    """Return what one process wrote: runs that have begun, that have ended, and that were cut off, and its events."""
    begun, ended, cut_off, events = [], [], [], []
    for line in path.read_text().splitlines():
        word, job, *numbers = line.split()
        if word == "x":
            events.append(Event(job, int(numbers[0]), process))
            continue
        due, attempt, fence, at = map(int, numbers)
        if word == "b":
            begun.append(Begun(job, due, attempt, fence, at, process))
        else:
            (ended if word == "e" else cut_off).append((job, due, fence, at))
    return begun, ended, cut_off, events


def lateness(evidence, kind="", since=0):
    """Return the seconds by which runs were begun late, sorted: of that kind of jobs, or of all but edited ones.

    `since`: when they were due at the earliest, by the clock of `Begun.at`.
    """
    first = (each[0] for each in evidence.by_tick.values() if each[0].due - evidence.wall >= since)
    wanted = (each for each in first if kind_of(each.job) == kind or not (kind or is_edited(each.job)))
    return sorted((each.at + evidence.wall - each.due) / 1e6 for each in wanted)

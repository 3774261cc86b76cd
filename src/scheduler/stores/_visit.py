"""The seam of a visit: somebody audits the rows of a store who is no agent, beside those that are, or where none is.

A visitor takes nothing over, has no jobs and holds no lease. What is wrong in the tables alone it mends there. A job
that should have begun long ago stands in some agent's heap, or it does not: only that agent can tell, so it is asked.
Rows are looked at part by part, each under the try-lock that all audits of this store take.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple, Protocol

from attrs import frozen

from ._executions import Executions
from ._rows import Placed
from ._store import StoreUnusable

LATE: Final = 60.0
"""Seconds after which a start that has not begun makes one doubt whether anybody has it."""


class NoTables(StoreUnusable):
    """The schema of a store holds no tables of ours. `elsewhere`: schemas of the same database that do."""

    def __init__(self, schema: str, elsewhere: Iterable[str]) -> None:
        self.elsewhere = tuple(elsewhere)
        there = ", ".join(map(repr, self.elsewhere[:3])) + (" and others" if self.elsewhere[3:] else "")
        advice = f"there are some in {there}" if there else "let an agent open the store first"
        super().__init__(f"schema {schema!r} holds no tables of timerqueue: {advice}")


class Doubt(Enum):
    """Why one doubts of a job whether the agent that has it knows what the rows say."""

    LATE = "late"
    """It was to start long ago, and no run of it has begun. It may wait for room."""
    NOT_PLANNED = "without a next start"
    """It is to start by itself, and the rows do not say when."""
    NOBODY_RUNS = "run by nobody"
    """A record says that it runs, in an agent that is gone."""

    @property
    def key(self) -> str:
        """The doubt as a word without spaces, for JSON: "nobody_runs"."""
        return self.name.lower()


class Doubted(NamedTuple):
    """A job that is doubted. `owner`: the epoch of the agent that has it; None: nobody has, or nobody can be asked."""

    job_id: str
    doubt: Doubt
    due_us: int | None
    owner: int | None


class Audience(NamedTuple):
    """An answer of the agent that was asked about a job. `reason`: what was wrong, and is mended; None: nothing."""

    job_id: str
    is_done: bool
    reason: str | None


@frozen
class Looked:
    """The findings in one part of all jobs: how many that are not paused are in it, and which of them are doubted."""

    jobs: int
    doubted: tuple[Doubted, ...] = ()


class Visit(Protocol):
    """The verbs of a visitor. Synchronous; they raise what those of a Store raise. One thread at a time."""

    @property
    def executions(self) -> Executions:
        """The executions, of which a visitor takes none."""

    def now_us(self) -> int:
        """Return what time it is by the store's clock."""

    def is_queued(self) -> bool:
        """Tell whether jobs stand in a queue outside of every agent."""

    def ended(self) -> dict[int, int]:
        """Return the agents whose leases ended long ago by the store's clock, by their epochs, and when each ended, in
        UTC microseconds. Just after a step of that clock these may be agents in good health, which renew their leases.
        """

    def bury(self, ended: Mapping[int, int]) -> list[str]:
        """Remove those of these agents whose leases ended then and have not been renewed. Return their names."""

    def look(self, part: int, *, late_us: int) -> Looked | None:
        """Look for jobs to doubt in one part, and stamp what was looked at. None: somebody else is at this part."""

    def ask(self, doubted: Iterable[Doubted]) -> list[int]:
        """Ask the agents that have these jobs to look at them. Return the numbers of the requests."""

    def answers(self, numbers: Sequence[int]) -> list[Audience]:
        """Return what has become of these requests."""

    def withdraw(self, numbers: Sequence[int]) -> None:
        """Take back what nobody has answered."""

    def placed(self, rows: Iterable[Placed]) -> None:
        """Write where executions stand in their queue."""

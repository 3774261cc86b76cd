"""The seam of executions: which next start of a job waits in a queue outside of every agent, and who has taken it.

With such a queue a job belongs to nobody between two of its ticks. What waits for it there is an execution: a row of
the store, and the queue holds no more than its name, which is the job and the instant. So the row is written first, in
the transaction that writes the job's state; it is put into the queue after that, and what the queue calls it is written
into the row with the next commit. Whatever comes out of the queue is asked of the row: only the live one is taken.

    pending -> scheduled -> taken -> done         it waits for the queue, in the queue, or its job is with an agent
    pending | scheduled -> skipped | superseded   it will not run: somebody has skipped it, or another has its place

A job has at most one live execution, which is pending or scheduled, and at most one that is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, NamedTuple, Protocol

from attrs import frozen

from ._rows import DONE, PENDING, SCHEDULED, SKIPPED, SUPERSEDED, Execution, Planned, StoredJob, StoredState, StoredTick

LIVE: Final = frozenset({PENDING, SCHEDULED})

PARTS: Final = 16
"""Parts of all jobs that are audited one by one, each by whoever comes first."""


@frozen
class Taken:
    """A job that is ours until it is released: its row, its state, and the ticks that its last agent was cut off at."""

    job: StoredJob
    state: StoredState | None
    running: tuple[StoredTick, ...] = ()
    owed: tuple[StoredTick, ...] = ()


class NotTaken(Enum):
    """Why an execution that has come out of a queue must not run."""

    SUPERSEDED = SUPERSEDED
    SKIPPED = SKIPPED
    DONE = DONE
    RUNNING = "running"
    """Its job is with an agent that lives, and that may be we."""
    LOCKED = "locked"
    """Somebody else has locked a row of its job just now."""
    UNKNOWN = "unknown"
    """There is no such execution, or no such job, any more."""


class Standing(NamedTuple):
    """Where a job stands. `job`: None, if there is none of that id. `live`: its live execution. `owes`: a tick of it is
    to be tried again.
    """

    id: str
    job: StoredJob | None
    state: StoredState | None
    live: Execution | None
    owes: bool = False


@frozen(kw_only=True)
class Fetched:
    """A job that is ours out of its turn, until it is released. `due_us`: the execution that says so, which is in no
    queue. `live`: the one that waits meanwhile as it did before.
    """

    taken: Taken
    due_us: int
    live: Execution | None


Decide = Callable[[Standing], Planned | None]
"""What is to be planned for a job that stands so; None: all is well. It does not raise and asks nobody."""


@frozen(kw_only=True)
class Mended:
    """The changes that `reconcile` or `audit` has made. `planned`: executions that are new. `gone`: those that gave way
    to them, or to none.
    """

    planned: tuple[Execution, ...] = ()
    gone: tuple[Execution, ...] = ()


@frozen(kw_only=True)
class Audited(Mended):
    """The findings of an audit of one part, and what it has mended. `jobs`: how many that are not paused are in it.

    `orphans`: executions that are pending once more, because their server has lost them or their agent has died.
    """

    jobs: int = 0
    orphans: int = 0


class Executions(Protocol):
    """The verbs of executions. Synchronous; they raise what those of a Store raise, and have then changed nothing.

    The thread that commits calls them. `Batch.planned`, `.placed`, `.lost` and `.released` write executions too.
    """

    def take(self, ticks: Sequence[tuple[str, int]]) -> list[Taken | NotTaken]:
        """Take the executions of these ticks, (job id, due in microseconds), with their jobs.

        The answers stand in the order of the ticks. Taking again what we have is answered in the same way. One row that
        is locked keeps no other execution waiting.
        """

    def fetch(self, job_ids: Sequence[str], now_us: int) -> list[Fetched | NotTaken]:
        """Take these jobs, each given once, though no execution of theirs has come out: there is something to be done.

        The answers stand in the order of the ids. What waits for such a job in a queue stays there, and is live. A job
        that is ours already is answered in the same way.
        """

    def waiting(
        self, status: str, *, before_us: int, after: tuple[int, str] = (-1, ""), limit: int = 1_000
    ) -> list[Execution]:
        """Return live executions in this status, PENDING or SCHEDULED, due before `before_us`, first due first.

        `after`: the (due_us, job_id) of the last one of the page before.
        """

    def taken(self) -> list[Execution]:
        """Return the executions that we have, by their rows."""

    def of_job(self, job_id: str) -> list[Execution]:
        """Return the executions of a job that are still known, latest due first."""

    def wheres(self, job_ids: Sequence[str]) -> dict[str, str]:
        """Return the labels that these jobs ask for, of those that ask for any."""

    def reconcile(self, job_ids: Sequence[str], decide: Decide) -> Mended:
        """Let `decide` say for each of these jobs what is to be live, unless an agent that lives has taken it.

        Waits for who writes these jobs. What `decide` plans is there, and its job stands as it was seen, or nothing is.
        """

    def audit(self, part: int, *, now_us: int, instance: str | None, decide: Decide) -> Audited | None:
        """Find what is broken in one part of all jobs, and mend it. None: somebody else is at this part.

        `part`: 0 to PARTS - 1. `instance`: the server that is the queue; an execution in another one is lost. None: no
        one is, for a server with a log is another one once it has restarted, and has what it had: look there. One whose
        agent has died is lost, too, and what that had planned further gives way to it: its tick may not have begun, or
        be tried again, and it may stand in no queue. Lost ones are pending once more. `decide` is asked
        for jobs that are not paused and have no live execution, that are paused and have one, and whose live one
        followed from another schedule. Live executions of jobs that are gone are superseded. Rows that somebody else is
        writing are passed over. Jobs that are not paused are stamped with `now_us`.
        """

    def last_audit(self, job_id: str) -> int | None:
        """Return when the job was last audited; None: never."""

    def unaudited(self, since_us: int, *, limit: int = 100) -> list[tuple[str, int | None]]:
        """Return jobs that are not paused and were not audited since then: ids, and when they were, never first."""

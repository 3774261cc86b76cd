"""The protocol of executions: starts of jobs that wait in a queue outside of the nodes.

With such a queue a job has no node between two of its ticks. What waits for it is an execution: a row of the store. The
queue holds only its name, the job and the instant. The row is written first, in the transaction that writes the job's
state. Then the execution is put into the queue, and the next commit writes its position there into the row. When an
execution comes out of the queue, its row decides: only the live execution is taken.

    pending -> scheduled -> taken -> done         it waits for the queue, then in it, then a node has its job
    pending | scheduled -> skipped | superseded   it will not run: it was skipped, or another replaces it

A job has at most one live execution, which is pending or scheduled, and at most one taken execution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, NamedTuple, Protocol

from attrs import frozen

from ._rows import DONE, PENDING, SCHEDULED, SKIPPED, SUPERSEDED, Execution, Planned, StoredJob, StoredState, StoredTick

LIVE: Final = frozenset({PENDING, SCHEDULED})

PARTS: Final = 16
"""Parts of all jobs, audited one by one by whichever node comes first."""


@frozen
class Taken:
    """A job that is ours until it is released: its row, its state, and the ticks that were cut off."""

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
    """A living node has its job, perhaps this one."""
    LOCKED = "locked"
    """Another session has locked a row of its job."""
    UNKNOWN = "unknown"
    """The execution, or its job, no longer exists."""


class Standing(NamedTuple):
    """The rows of a job. `job`: None if there is none of that id. `live`: its live execution.

    `owes`: it has a tick that must be tried again.
    """

    id: str
    job: StoredJob | None
    state: StoredState | None
    live: Execution | None
    owes: bool = False


@frozen(kw_only=True)
class Fetched:
    """A job that is ours out of its turn, until it is released. `due_us`: its execution, which is in no queue.

    `live`: the execution that waits meanwhile as before.
    """

    taken: Taken
    due_us: int
    live: Execution | None


Decide = Callable[[Standing], Planned | None]
"""Returns what to plan for a job with these rows; None: nothing. It does not raise and does no I/O."""


@frozen(kw_only=True)
class Mended:
    """The changes that `reconcile` or `audit` has made. `planned`: new executions. `gone`: executions that gave way."""

    planned: tuple[Execution, ...] = ()
    gone: tuple[Execution, ...] = ()


@frozen(kw_only=True)
class Audited(Mended):
    """The findings of an audit of one part, and what it has mended. `jobs`: how many jobs in it are not paused.

    `orphans`: executions that are pending again, because their server lost them or their node died.
    """

    jobs: int = 0
    orphans: int = 0


class Executions(Protocol):
    """The verbs of executions. Synchronous. Each raises what Store's verbs raise, and has then changed nothing.

    The thread that commits calls them. `Batch.planned`, `.placed`, `.lost` and `.released` write executions too.
    """

    def take(self, ticks: Sequence[tuple[str, int]]) -> list[Taken | NotTaken]:
        """Take the executions of these ticks, (job id, due in microseconds), with their jobs.

        The answers are in the order of the ticks. Taking again what we have gets the same answer. A locked row delays
        no other execution.
        """

    def fetch(self, job_ids: Sequence[str], now_us: int) -> list[Fetched | NotTaken]:
        """Take these jobs, each given once, though no execution of theirs has come out: an act waits for them.

        The answers are in the order of the ids. An execution of such a job in a queue stays there, and is live. A job
        that is ours already gets the same answer.
        """

    def waiting(
        self, status: str, *, before_us: int, after: tuple[int, str] = (-1, ""), limit: int = 1_000
    ) -> list[Execution]:
        """Return live executions in this status, PENDING or SCHEDULED, due before `before_us`, first due first.

        `after`: the (due_us, job_id) of the last execution of the page before.
        """

    def taken(self) -> list[Execution]:
        """Return the executions that we have, by their rows."""

    def of_job(self, job_id: str) -> list[Execution]:
        """Return the known executions of a job, latest due first."""

    def wheres(self, job_ids: Sequence[str]) -> dict[str, str]:
        """Return the labels of these jobs, by job id, if a job has labels."""

    def reconcile(self, job_ids: Sequence[str], decide: Decide) -> Mended:
        """Let `decide` plan the live execution of each of these jobs, unless a living node has taken it.

        Waits for other writers of these jobs. Either a plan is written while its job is as `decide` saw it, or nothing
        is.
        """

    def audit(self, part: int, *, now_us: int, instance: str | None, decide: Decide) -> Audited | None:
        """Find what is broken in one part of all jobs, and mend it. None: another audit is at this part.

        `part`: 0 to PARTS - 1. `instance`: the server that is the queue; an execution in another server is lost. None:
        none is lost. (A server with a log has another instance after a restart, and its ticks: `look` there.)

        An execution whose node has died is lost, too, and so is what that node planned further: it gives way. The tick
        may not have begun, may have to be tried again, and may be in no queue. Lost executions are pending again.

        `decide` is asked for jobs without a pause and without a live execution, and for paused jobs with one. Also for
        jobs whose live execution followed from another schedule. Live executions of deleted jobs are superseded. Rows
        that another session writes are passed over. Jobs without a pause are stamped with `now_us`.
        """

    def last_audit(self, job_id: str) -> int | None:
        """Return when the job was last audited; None: never."""

    def unaudited(self, since_us: int, *, limit: int = 100) -> list[tuple[str, int | None]]:
        """Return jobs without a pause and without an audit since then: ids, and when they had one. None comes first."""

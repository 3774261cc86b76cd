"""A job that stands in the queue comes here out of its turn, because of a request.

The request is a row of the store first. The next commit says that it is done, and that the job may go. Its execution
stays in the queue. If we die, the node with the job's shard finds the request. On the loop.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from logging import getLogger
from typing import Final

from timerqueue import LifecycleError

from ..._commits import Writer
from ..._restore import Lost, RowParts, let_go_of
from ...stores import SCHEDULED, Act, Executions, Fetched, NotTaken, StoredRequest, where_of
from .claims import Claim, Claims, is_being_removed
from .next_execution import after_pause
from .routing import Routing

RETRY_S: Final = 1.0
"""Seconds before a job that is being released is fetched again."""

logger = getLogger(__name__)

Asked = dict[str, list[StoredRequest]]

CarryOut = Callable[[StoredRequest], object]


class Fetching:
    """`carry_out`: gets a request for a job that is here."""

    def __init__(
        self,
        executions: Executions,
        held: Claims,
        rows: RowParts,
        *,
        carry_out: CarryOut,
        routing: Routing,
        store_line: Writer,
    ) -> None:
        self._carry_out = carry_out
        self._routing = routing
        self._executions = executions
        self._held = held
        self._core = rows.core
        self._store_line = store_line
        self._reconciler = rows.reconciler
        self._row_reader = rows.row_reader

    def fetch(self, requests: Iterable[StoredRequest]) -> None:
        """Carry out durable requests for jobs that no node has, if their labels fit us."""
        asked: Asked = defaultdict(list)
        for request in requests:
            job = self._core.jobs.find(request.job_id)
            if job is None or job.unfit is not None or not self._routing.is_for_us(job.id):
                continue  # no node can do it, or only another
            if job.is_elsewhere:
                asked[job.id].append(request)
            else:
                self._carry_out(request)
        if asked:
            ids, now_us = list(asked), self._core.timeline.us(self._core.monotonic(), steady=False)
            self._store_line.submit(
                lambda: self._executions.fetch(ids, now_us),
                lambda found, error: self._fetched(asked, now_us, found, error),
            )

    def _fetched(
        self, asked: Asked, now_us: int, answers: Sequence[Fetched | NotTaken] | None, error: Exception | None
    ) -> None:
        if answers is None:
            logger.warning("what is asked of %d jobs waits until the store answers: %s", len(asked), error)
            for job_id in asked:
                self._let_go(job_id, now_us)  # the fetch may have succeeded
            return
        for (job_id, requests), answer in zip(asked.items(), answers, strict=True):
            try:
                self._heed(job_id, requests, answer)
            except Exception:
                logger.exception("what is asked of job %r waits for the node that has its shard", job_id)
                self._back_out(job_id, answer)

    def _heed(self, job_id: str, requests: list[StoredRequest], answer: Fetched | NotTaken) -> None:
        if isinstance(answer, Fetched):
            if self._is_leaving(job_id, answer.due_us):
                self._fetch_again(requests)
                return
            self._take_up(job_id, answer, is_resumed=any(each.act == Act.RESUME.value for each in requests))
        else:
            logger.debug("job %r is not fetched: %s", job_id, answer.value)
        job = self._core.jobs.find(job_id)
        if job is None or job.is_elsewhere:
            return  # its node finds the requests
        for request in requests:
            self._carry_out(request)
        self._core.journal.touch(job)  # so that the next commit releases it

    def _back_out(self, job_id: str, answer: Fetched | NotTaken) -> None:
        hold, job = self._held.by_id.get(job_id), self._core.jobs.find(job_id)
        if isinstance(answer, Fetched) and hold is not None and hold.taken_us == answer.due_us:
            del self._held.by_id[job_id]
            if job is not None:
                let_go_of(job, self._core.queue)
            self._let_go(job_id, answer.due_us)

    def _is_leaving(self, job_id: str, taken_us: int) -> bool:
        leaving = self._held.leaving.get(job_id) or self._held.strays.get(job_id)
        return leaving is not None and leaving.taken_us == taken_us

    def _fetch_again(self, requests: list[StoredRequest]) -> None:
        with suppress(LifecycleError):  # the loop has ended: others find the request
            self._core.queue.push(self._core.monotonic() + RETRY_S, self.fetch, requests)

    def _let_go(self, job_id: str, taken_us: int) -> None:
        if job_id not in self._held.by_id:
            self._held.strays.setdefault(job_id, Claim(taken_us, taken_us=taken_us))
            self._core.journal.flush(lambda _lost: None)

    def _take_up(self, job_id: str, fetched: Fetched, *, is_resumed: bool) -> None:
        taken, live = fetched.taken, fetched.live
        row, state = self._row_reader.job(taken.job), self._row_reader.state(taken.state)
        if row is None or is_being_removed(self._core.journal, job_id) or not self._held.fits(where_of(row.options)):
            self._let_go(job_id, fetched.due_us)
            return
        if row.id in self._held.by_id:
            return
        due_us = None if live is None else live.due_us
        state, left_out_us = after_pause(row, state, due_us, is_resumed=is_resumed)
        hold = self._held.by_id[row.id] = Claim(fetched.due_us, taken_us=fetched.due_us, is_fetched=True)
        if live is not None:
            hold.planned = (live.due_us, live.schedule)
            hold.placed_us = live.due_us if live.status == SCHEDULED else None
            is_behind = state is not None and state.next_us is not None and state.next_us < live.due_us
            if state is not None and is_behind and row.paused is None:
                state = state._replace(next_us=live.due_us)  # earlier ticks were paused
        lost = Lost(list(self._row_reader.ticks(taken.running)), list(self._row_reader.ticks(taken.owed)))
        self._reconciler.take_over(row, state, lost)
        job = self._core.jobs.find(job_id)
        if job is not None and left_out_us is not None:
            self._core.starts.left_out.go_on(job, left_out_us)

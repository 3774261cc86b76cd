"""Which jobs our labels allow us to run, and where other executions go.

A queue gives executions to nodes that listen to the text of their labels. A job's labels may have changed, so each
delivery is checked, and sent on. On the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from timerqueue import LifecycleError

from ..._loop import Core
from ...queues import Delivery, Queue, Tick
from ...stores import Execution, Executions, View, where_of
from .claims import Claims
from .publisher import Publisher

RETRY_S: Final = 1
"""Seconds before an execution that the queue refused is sent on."""

Wheres = Mapping[str, str] | None
"""Labels of jobs in the store. None: as known here."""


class Routing:
    def __init__(self, queue: Queue, executions: Executions, held: Claims, publisher: Publisher, core: Core) -> None:
        self._queue = queue
        self._executions = executions
        self._held = held
        self._publisher = publisher
        self._core = core
        self._heard: set[str] | None = None
        self.sent_on = 0

    def see(self, view: View) -> None:
        heard = self._heard or set()
        texts = {found.where for found in view.labelled.values()} - heard
        new = {text for text in texts if self._held.fits(text)}
        if new or (self._heard is None and self._held.has_labels()):
            self._heard = heard | new
            self._queue.listen(self._heard)

    def is_for_us(self, job_id: str) -> bool:
        """An unknown job is for us."""
        return self._held.fits(self.where_of(job_id))

    def where_of(self, job_id: str) -> str | None:
        job = self._core.jobs.find(job_id)
        if job is None:
            return None
        return job.policy.where if job.unfit is None else where_of(job.unfit.row.options)

    def tick(self, execution: Execution, wheres: Wheres) -> Tick:
        job_id = execution.job_id
        return Tick(job_id, execution.due_us, where=self.where_of(job_id) if wheres is None else wheres.get(job_id))

    def read(self, call: Callable[[], Sequence[Execution]]) -> tuple[Sequence[Execution], Wheres]:
        """In the store's line."""
        rows = call()
        return rows, self.asked(rows)

    def asked(self, rows: Sequence[Execution]) -> Wheres:
        """In the store's line."""
        view = self._held.view
        return self._executions.wheres([row.job_id for row in rows]) if rows and view and view.labelled else None

    def send_on(self, delivery: Delivery) -> None:
        self.sent_on += 1
        if (delivery.tick.job_id, delivery.tick.due_us) in self._publisher.here:
            with suppress(LifecycleError):  # the loop has ended: the execution is pending in the store
                self._core.queue.push(self._core.monotonic() + RETRY_S, self._send, delivery)
        else:
            self._send(delivery)

    def _send(self, delivery: Delivery) -> None:
        job_id, due_us = delivery.tick.job_id, delivery.tick.due_us
        if self._publisher.is_on_way(delivery.tick):  # the queue may be about to refuse it
            delivery.release(RETRY_S)
            return
        self._publisher.here.discard((job_id, due_us))
        self._publisher.put([(Tick(job_id, due_us, where=self.where_of(job_id)), None)])
        delivery.done()

"""Ask the store for others' changes, when it hints at them and every second or so.

A node that shares the store learns of news with its lease. It polls then, while the store is in trouble, and once in a
long while.

Jobs follow rows some at a time. Later notes here win: see `Journal.unfollowed`. A shared store is asked next to its
commits, because a page may take longer. Rows written here meanwhile are read again, in line with the commits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from logging import getLogger
from math import inf
from typing import Final

from attrs import evolve

from timerqueue import LifecycleError

from .._commits import Commits, Writer
from .._journal import LocalWrites
from .._restore import RowParts, pauses_to_follow
from .._starts import in_slices
from ..stores import (
    MOST_REQUESTS,
    Changes,
    Store,
    StoreBusy,
    StoredJob,
    StoredPause,
    StoredRequest,
    StoredState,
)
from .membership import Others
from .rereading import Rereading

logger = getLogger(__name__)

TOLD: Final = 1.0
"""Seconds: the lease tells of news this often. A shorter interval polls."""

TOLD_POLL_S: Final = 300.0
"""Seconds between a told node's polls."""

RETRY_S: Final = 1.0
"""Seconds after a failure."""


class Polling:
    """`every`: seconds. On the loop, except `hint`."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        rows: RowParts,
        *,
        commits: Commits,
        others: Others,
        every: float,
    ) -> None:
        self._store = store
        self._writer = writer
        self._core = core = rows.core
        self._journal = core.journal
        self._commits = commits
        self._reconciler = rows.reconciler
        self._row_reader = rows.row_reader
        self._every = every
        self._others = others
        self._left: list[StoredRequest] = []
        self._rereading = Rereading(store, others.asker, core, follow=self._take_up, failed=commits.failed)
        self._noting = ExitStack()
        self._reading_again = 0
        self._states: dict[str, StoredState] = {}
        self._has_begun = False
        self._is_over = False
        self._is_asking = False
        self._is_more = False
        self._asked_at = -inf
        self._answered_at = -inf

    def begin(self) -> None:
        self._has_begun = True
        self._look()

    def end(self) -> None:
        self._is_over = True
        self._rereading.end()

    def close(self) -> None:
        """Any thread."""
        self._others.close()

    def hint(self) -> None:
        """Ask soon. Any thread."""
        self._core.loop.call_soon(self.poll)

    def poll(self) -> None:
        """Not while an answer is on its way."""
        if self._has_begun and not self._is_asking and not self._is_over and not self._is_following_some:
            self._is_asking = True
            self._others.before_poll()
            self._asked_at = self._core.monotonic()
            noted = self._noting.enter_context(self._others.noting())
            self._others.asker.submit(self._store.changes, partial(self._polled, noted))

    @property
    def _is_following_some(self) -> bool:
        return self._is_more and bool(self._journal.unfollowed)

    def _look(self) -> None:
        if self._is_over or self._store.is_immediate:
            return
        now = self._core.monotonic()
        self._commits.look(now)
        if self._is_told(now):
            self._others.look()
        else:
            self.poll()
        with suppress(LifecycleError):
            self._core.queue.push(now + self._every, self._look)

    def _is_told(self, now: float) -> bool:
        is_told = self._others.tell_of_news and self._every >= TOLD
        return is_told and self._commits.trouble is None and now - self._asked_at < TOLD_POLL_S

    def _polled(self, noted: LocalWrites, changes: Changes | None, error: Exception | None) -> None:
        self._is_asking = False
        self._noting.close()
        if isinstance(error, StoreBusy):  # other calls of ours have the connection: that says nothing of the server
            logger.debug("what others have changed is asked for again in a moment: %s", error)
            return
        if error is not None:
            self._commits.failed(error)
            return
        if changes is not None:
            changes = self._without_what_we_wrote(changes, noted)
        self._commits.answered()
        self._answered_at = self._asked_at
        self._others.look()
        self._is_more = changes is not None and changes.is_more
        if changes is None or not (changes or self._left):
            self._have_followed()
            return
        self._commits.changed(len(changes.jobs) + len(changes.pauses))
        if changes.is_behind:
            self._rereading.begin()
            return
        self._take_up(changes)
        self._carry_out(changes.requests)

    def _without_what_we_wrote(self, changes: Changes, noted: LocalWrites) -> Changes:
        """Read rows again that were written here during the poll."""
        jobs, scopes = noted.ids.intersection(changes.jobs), noted.scopes.intersection(changes.pauses)
        if jobs:
            self._read_again(jobs)
        if scopes:
            self._read_pauses_again()
        if not (jobs or scopes):
            return changes
        return evolve(
            changes,
            jobs={id: row for id, row in changes.jobs.items() if id not in jobs},
            states={id: state for id, state in changes.states.items() if id not in jobs},
            pauses={scope: pause for scope, pause in changes.pauses.items() if scope not in scopes},
        )

    def _read_again(self, jobs: Collection[str]) -> None:
        def answered(changes: Changes | None, error: Exception | None) -> None:
            self._have_read_again(partial(self._read_again, jobs), changes, error)

        if not self._is_over:
            self._reading_again += 1
            self._writer.submit(lambda: self._others.reread(jobs), answered)

    def _read_pauses_again(self) -> None:
        def answered(pauses: Collection[StoredPause] | None, error: Exception | None) -> None:
            changes = Changes(pauses=pauses_to_follow(self._core, pauses or ()))
            self._have_read_again(self._read_pauses_again, changes, error)

        if not self._is_over:
            self._reading_again += 1
            self._writer.submit(self._store.pauses, answered)

    def _have_read_again(self, again: Callable[[], object], changes: Changes | None, error: Exception | None) -> None:
        self._reading_again -= 1
        if error is not None:
            self._commits.failed(error)
            with suppress(LifecycleError):
                self._core.queue.push(self._core.monotonic() + RETRY_S, again)
        elif changes is not None and not self._is_over:
            self._take_up(changes)
            self._have_followed()

    def _have_followed(self) -> None:
        if self._journal.unfollowed or self._reading_again:
            return
        if self._is_more:
            self.poll()
        else:
            self._reconciler.has_followed(self._answered_at)

    def _take_up(self, changes: Changes) -> None:
        self._states |= changes.states
        for scope, pause in changes.pauses.items():
            self._reconciler.pause_scope(scope, None if pause is None else self._row_reader.pause(pause))
        unfollowed = self._journal.unfollowed
        is_going_on = bool(unfollowed)
        for id, row in changes.jobs.items():
            if not self._journal.is_newer(id, row):
                unfollowed[id] = self._journal.as_it_will_be(id, None if row is None else self._row_reader.job(row))
        if not is_going_on:
            in_slices(self._core.queue, self._rows_to_follow(), self._follow)

    def _carry_out(self, asked: Collection[StoredRequest]) -> None:
        """Jobs follow their rows first."""
        unfollowed = self._journal.unfollowed
        for each in asked:
            if each.job_id in unfollowed:
                self._follow((each.job_id, unfollowed.pop(each.job_id)))
            if not self._others.carry_out(each):
                self._left.append(each)
        if len(asked) == MOST_REQUESTS:
            self.poll()  # there may be more
            return
        left, self._left = self._left, []
        self._others.leave(left)

    def _rows_to_follow(self) -> Iterator[tuple[str, StoredJob | None]]:
        unfollowed = self._journal.unfollowed
        while unfollowed:
            id = next(iter(unfollowed))
            yield id, unfollowed.pop(id)
        self._have_followed()

    def _follow(self, changed: tuple[str, StoredJob | None]) -> None:
        """An error must not stop the next row."""
        id, row = changed
        state = self._states.pop(id, None)
        try:
            self._reconciler.change(id, row, None if state is None else self._row_reader.state(state))
        except Exception:
            logger.exception("the changed row of job %r cannot be followed", id)

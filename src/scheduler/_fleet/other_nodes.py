"""Other nodes, as polls deal with them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager

from .._commits import Writer
from .._journal import Journal, LocalWrites
from ..stores import Changes, Sharing, StoredRequest
from .answers import RequestAnswers
from .requests import Requests


class OtherNodes:
    """`leave`: handles requests for jobs that are not ours."""

    tell_of_news = True

    def __init__(
        self,
        sharing: Sharing,
        asker: Writer,
        journal: Journal,
        *,
        requests: Requests,
        answers: RequestAnswers,
        leave: Callable[[list[StoredRequest]], object],
    ) -> None:
        self.asker = asker
        self._sharing = sharing
        self._journal = journal
        self._requests = requests
        self._answers = answers
        self._leave = leave

    def noting(self) -> AbstractContextManager[LocalWrites]:
        return self._journal.noting_rows()

    def before_poll(self) -> None:
        self._sharing.begun = self._requests.begun()

    def look(self) -> None:
        self._answers.look()

    def carry_out(self, request: StoredRequest) -> bool:
        return self._requests.carry_out(request)

    def leave(self, requests: list[StoredRequest]) -> None:
        self._leave(requests)

    def reread(self, job_ids: Collection[str]) -> Changes:
        return self._sharing.reread(job_ids)

    def close(self) -> None:
        self.asker.close(0.0, _nothing)


class Unheeded:
    def __init__(self) -> None:
        self._once: set[int] = set()

    def still(self, left: Iterable[StoredRequest]) -> list[StoredRequest]:
        """Return requests that the last call saw, too. They count as new again."""
        left = list(left)
        before, self._once = self._once, {each.number for each in left} - self._once
        return [each for each in left if each.number in before]


def fetched_if_unheeded(fetch: Callable[[list[StoredRequest]], object]) -> Callable[[list[StoredRequest]], None]:
    unheeded = Unheeded()

    def leave(left: list[StoredRequest]) -> None:
        if still := unheeded.still(left):
            fetch(still)

    return leave


def leave_to_owners(requests: list[StoredRequest]) -> None:
    """Do nothing: the jobs' owners find the requests."""


def _nothing() -> None:
    """Do nothing."""

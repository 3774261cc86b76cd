from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from attrs import frozen

EVERYTHING: Final = "*"

NO_REASON: Final = "paused"

TAG: Final = "tag:"
JOB: Final = "job:"


@frozen
class Pause:
    """Jobs in `scope` do not start by themselves from `since` until `until`; None: until resumed.

    `scope`: "*" for all jobs, "tag:" and a tag, or "job:" and an id. Instants are aware, in UTC.
    """

    scope: str
    reason: str
    since: datetime
    until: datetime | None = None

    @property
    def text(self) -> str:
        """The pause as a sentence for people."""
        if self.scope.startswith(JOB):
            return self.reason
        what = "all jobs are" if self.scope == EVERYTHING else f"tag {self.scope.removeprefix(TAG)!r} is"
        return f"{what} paused" if self.reason == NO_REASON else f"{what} paused: {self.reason}"


def scope_of(tag: str | None) -> str:
    return EVERYTHING if tag is None else TAG + tag


def scope_of_job(id: str) -> str:
    return JOB + id


def job_of_scope(scope: str) -> str | None:
    """Return the id of the job that the scope names. None: it names none, or many."""
    return scope.removeprefix(JOB) if scope.startswith(JOB) else None


class Pauses:
    """Pauses of all jobs and of tags, one per scope. Changed by one thread, read by any."""

    def __init__(self) -> None:
        self._by_scope: dict[str, Pause] = {}
        self.any = False
        self._covering: dict[frozenset[str], Pause | None] = {}

    def __iter__(self) -> Iterator[Pause]:
        return iter(tuple(self._by_scope.values()))

    def put(self, pause: Pause) -> None:
        self._by_scope[pause.scope] = pause
        self.any = True
        self._covering = {}  # a new dict: another thread may be about to put an outdated answer into the old one

    def take(self, scope: str) -> Pause | None:
        pause = self._by_scope.pop(scope, None)
        self.any = bool(self._by_scope)
        self._covering = {}
        return pause

    def covering(self, tags: frozenset[str]) -> Pause | None:
        """Return the pause that holds jobs with these tags. Of several, always the same one."""
        known, by_scope = self._covering, self._by_scope
        if not by_scope:
            return None
        if tags not in known:
            scopes = (EVERYTHING, *map(scope_of, sorted(tags)))
            known[tags] = next((pause for scope in scopes if (pause := by_scope.get(scope)) is not None), None)
        return known[tags]

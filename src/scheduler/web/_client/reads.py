"""Answers that a client asks for, about jobs, runs, limits and the scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from attrs import frozen

from timerqueue import LimitStatistics

from ..._memory import Record
from ..._plan import aware
from ..._shape import count_of, to_json
from ..._values import FleetStatistics, JobNotFound, JobState, MissedReason, Outcome, StoreStatistics
from .job import Api, RemoteJob, path_of_job
from .transport import Answered, Transport
from .values import value_of

_PAGE: Final = 500
"""Jobs and records that one request asks for."""


@frozen(kw_only=True)
class Summary:
    """A scheduler at one moment, as `SchedulerStatistics` tells it, with counts of jobs by state and by owner.

    `owners`: "code" stands for the program's own jobs. `lateness`, `durations`: sums and quantiles, by kind.
    """

    jobs: int
    active_jobs: int
    active_tasks: int
    waiting_tasks: int
    runs: int
    missed: int
    missed_is_exact: bool
    stalls: int
    states: Mapping[JobState, int]
    owners: Mapping[str, int]
    outcomes: Mapping[str, Mapping[Outcome, int]]
    missed_by_reason: Mapping[MissedReason, int]
    lateness: Mapping[str, object]
    durations: Mapping[str, object]
    store: StoreStatistics | None
    fleet: FleetStatistics | None


class Reads(Api):
    """Answers about jobs. None of them changes anything."""

    _transport: Transport

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answered:
        """Send a request to any route, such as `client.ask("GET", "/v1/summary").body`. None in a query is left out.

        Lists in the query repeat their key. Raises the errors of a scheduler, NotAllowed, ApiError and Unreachable.
        """
        pairs = [(key, each) for key, value in (query or {}).items() for each in _all_of(value)]
        return self._transport.ask(method, f"{path}?{urlencode(pairs)}" if pairs else path, body, headers)

    def get(self, id: str) -> RemoteJob:
        """Return the job of that id. Raises JobNotFound."""
        return RemoteJob(self, id, self.ask("GET", path_of_job(id)).body)

    def __contains__(self, job: object) -> bool:
        if not isinstance(job, (str, RemoteJob)):
            return False
        try:
            self.get(job if isinstance(job, str) else job.id)
        except JobNotFound:
            return False
        return True

    def jobs(
        self,
        *,
        q: str | None = None,
        tags: Iterable[str] = (),
        states: Iterable[JobState] = (),
        owner: str | None = None,
        sort: str = "id",
    ) -> list[RemoteJob]:
        """Return all jobs, or those with this text, with all these tags, in one of these states, of this owner.

        `owner`: "code" for the program's own jobs. `sort`: "id", "name" or "next_start"; "-id" for the other order.
        """
        words = [state.value for state in states]
        query = {"limit": _PAGE, "q": q, "tag": [*tags], "state": words, "owner": owner, "sort": sort}
        return [RemoteJob(self, each["id"], each) for page in self._pages("/v1/jobs", query) for each in page["jobs"]]

    def history(self, job_id: str, *, limit: int = 100, before: datetime | None = None) -> list[Record]:
        """Return how ticks of a job ended, latest first. The job may be gone. Empty without a store.

        `outcome` None: the run goes on. `before`: only ticks due before that.
        """
        most, found = count_of("limit", limit), list[Record]()
        start = None if before is None else to_json(aware("before", before))
        for page in self._pages(path_of_job(job_id, "/runs"), {"limit": min(most, _PAGE), "before": start}):
            found += [value_of(Record, each) for each in page["runs"]]
            if len(found) >= most:
                break
        return found[:most]

    def limits(self) -> dict[str, LimitStatistics]:
        """Return each limit: its size, the units in use, and the tasks that wait."""
        found = self.ask("GET", "/v1/limits").body["limits"]
        return {name: value_of(LimitStatistics, each) for name, each in found.items()}

    def summary(self) -> Summary:
        """Count all jobs by state and owner, and runs, missed ticks and waiting tasks."""
        return value_of(Summary, self.ask("GET", "/v1/summary").body)

    def _pages(self, path: str, query: Mapping[str, Any]) -> Iterator[Any]:
        """Yield all pages of a list."""
        asked: Mapping[str, Any] = query
        while True:
            page = self.ask("GET", path, query=asked).body
            yield page
            if (following := page.get("next")) is None:
                return
            asked = _repeated(parse_qsl(following.removeprefix("?"), keep_blank_values=True))


def _all_of(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _repeated(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found

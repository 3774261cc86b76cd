"""A job of another process, with the verbs of a job of this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NoReturn, Protocol, TypeVar, Unpack
from urllib.parse import quote

from schedule import Schedule, parse

from ..._jobs import Handle, JobChanges
from ..._plan import aware
from ..._shape import JobInfo, JobSpec, SomeSchedule, to_json
from ..._values import InvalidJob, JobState, JobStatistics, Pause, Policy
from .errors import NotAllowed
from .run import RemoteRun
from .transport import Answered
from .values import value_of

T = TypeVar("T")


class Api(Protocol):
    """The verbs that a job needs of its client."""

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answered:
        """Send a request."""

    def change(self, id: str, changes: Mapping[str, Any]) -> None:
        """Change options of a job."""

    def remove(self, id: str) -> None:
        """Remove a job."""

    def run_now(self, id: str) -> RemoteRun:
        """Run a job once."""


class RemoteJob(Handle):
    """A job as `Client` returns it. Call its verbs from any thread.

    Its properties are as the job was when it was last read: `info()`, `statistics()` and each verb read it again.
    """

    __slots__ = ("_api", "_id", "_read")

    def __init__(self, api: Api, id: str, read: Mapping[str, Any] | None = None) -> None:
        self._api = api
        self._id = id
        self._read = read

    def __repr__(self) -> str:
        return f"<RemoteJob {self._id!r}>"

    @property
    def id(self) -> str:
        """The job's name in its scheduler."""
        return self._id

    def info(self) -> JobInfo:
        """Read the job again: its definition, and how it stands. Raises JobNotFound."""
        self._read = None
        return self.snapshot

    @property
    def snapshot(self) -> JobInfo:
        """The job as it was when it was last read."""
        data = self._data
        said = data.get("spec")
        if said is not None and "args" not in said:
            hidden = 'a caller needs the scope "operate" to see arguments'
            return value_of(JobInfo, {**data, "spec": None, "spec_error": hidden})
        return value_of(JobInfo, data)

    @property
    def _data(self) -> Mapping[str, Any]:
        if self._read is None:
            self._read = self._api.ask("GET", self._path()).body
        return self._read

    @property
    def _said(self) -> Mapping[str, Any]:
        """The definition as JSON, perhaps without arguments."""
        data = self._data
        if data.get("spec") is None:
            raise InvalidJob(data.get("spec_error") or f"job {self._id!r} has no definition that can be told")
        found: Mapping[str, Any] = data["spec"]
        return found

    def _seen(self, key: str) -> Any:
        said = self._said
        if key not in said:
            msg = f'{key} of job {self._id!r} is shown to callers with the scope "operate": this token lacks it'
            raise NotAllowed(msg)
        return said[key]

    @property
    def spec(self) -> JobSpec:
        """The job's definition. Raises InvalidJob if it cannot be told, and NotAllowed if it is not shown."""
        self._seen("args")
        return value_of(JobSpec, self._said)

    @property
    def policy(self) -> Policy:  # type: ignore[override] # read-only here
        """The options, checked."""
        return value_of(JobSpec, self._said).policy

    @property
    def name(self) -> str | None:
        """The job's name for people, if any."""
        found: str | None = self._said["name"]
        return found

    @property
    def tags(self) -> frozenset[str]:
        """Tags by which jobs are paused together."""
        return frozenset(self._said["tags"])

    @property
    def schedule(self) -> Schedule:
        """The schedule."""
        return parse(self._said["schedule"])

    @property
    def func(self) -> NoReturn:
        """Raises TypeError: the function is in the other process."""
        msg = f"job {self._id!r} runs {self._data['func']} in another process: its function cannot be had here"
        raise TypeError(msg)

    @property
    def args(self) -> tuple[Any, ...]:
        """The callable's positional arguments."""
        return tuple(self._seen("args"))

    @property
    def kwargs(self) -> Mapping[str, Any]:
        """The callable's keyword arguments."""
        return dict(self._seen("kwargs"))

    @property
    def state(self) -> JobState:
        """The job's state."""
        return self.snapshot.state

    @property
    def agent(self) -> str | None:
        """The name of the node that has the job. None: the store is not shared."""
        return self.snapshot.node

    @property
    def is_ours(self) -> bool:
        """Whether the scheduler that answers has the job."""
        return self.snapshot.is_ours

    @property
    def error(self) -> str | None:
        """Why the job does not start by itself. None: it does."""
        return self.snapshot.error

    @property
    def pauses(self) -> tuple[Pause, ...]:
        """The pauses that hold the job."""
        return self.snapshot.pauses

    @property
    def next_start(self) -> datetime | None:
        """The next start, retries included. None: the job does not start by itself."""
        return self.snapshot.next_start

    def next_starts(self, count: int) -> list[datetime]:
        """Return the next `count` regular starts, at most 100, or fewer if the schedule ends."""
        found = self._api.ask("GET", self._path("/next"), query={"count": count}).body
        return [*map(datetime.fromisoformat, found["starts"])]

    def statistics(self) -> JobStatistics:
        """Read the job again, and return its counts."""
        return self.info().statistics

    # -- verbs: each returns when the change is durable ---------------------------------------------------------------

    def remove(self) -> None:
        """Remove the job, and cancel its run. Removing it again changes nothing."""
        self._after(lambda: self._api.remove(self._id))

    def pause(self, reason: str | None = None, *, until: datetime | None = None) -> None:
        """Start the job no more until `resume`, or until `until`. Raises InvalidJob and JobNotFound."""
        self._act("pause", {"reason": reason, "until": None if until is None else _instant("until", until)})

    def resume(self) -> None:
        """Start the job again from its next tick on. Raises JobNotFound."""
        self._act("resume")

    def set_next_start(self, at: datetime) -> None:
        """Replace the job's next regular start, and any retry, by `at`. Raises InvalidJob and JobNotFound."""
        self._act("set-next-start", {"at": _instant("at", at)})

    def skip(self) -> None:
        """Leave out the next regular start. Raises JobNotFound."""
        self._act("skip")

    def supersede(self) -> None:
        """Replace a next start set or skipped by hand with the schedule's. Raises JobNotFound."""
        self._act("supersede")

    def run_now(self) -> RemoteRun:
        """Run the job once, now. For the outcome, call `result()` of the returned run: it needs a store.

        Raises JobNotFound.
        """
        return self._after(lambda: self._api.run_now(self._id))

    def update(self, *, schedule: SomeSchedule | None = None, **changes: Unpack[JobChanges]) -> None:
        """Change the schedule, the task or any option of `Client.add`; the others stay.

        Raises InvalidJob, ScheduleError, WrongOwner or JobNotFound; then nothing has changed.
        """
        said: dict[str, Any] = {**changes} if schedule is None else {**changes, "schedule": schedule}
        self._after(lambda: self._api.change(self._id, said))

    def _act(self, act: str, body: Mapping[str, Any] | None = None) -> None:
        self._after(lambda: self._api.ask("POST", self._path(f"/{act}"), body))

    def _after(self, verb: Callable[[], T]) -> T:
        try:
            return verb()
        finally:
            self._read = None  # also after an error: the change may have been made

    def _path(self, more: str = "") -> str:
        return path_of_job(self._id, more)


def path_of_job(id: str, more: str = "") -> str:
    return f"/v1/jobs/{quote(id, safe='')}{more}"


def _instant(name: str, value: datetime) -> Any:
    return to_json(aware(name, value))

"""Client: the verbs of a scheduler in another process, over its control API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, Final, Literal, Never
from urllib.parse import quote

from schedule import Missed, shown
from timerqueue import Clock, SystemClock

from ..._control import OnConflict, check_conflict, duplicate
from ..._fleet import Fleet, Rate
from ..._sets import Synced
from ..._shape import JobSpec, SomeSchedule, flag_of, limit_of, options_text, read_json, seconds_of, to_json
from ..._values import OPTIONS, Delivery, DuplicateJob, InvalidJob, JobNotFound, MissedReason, Overlap, Retry, RunMissed
from ..._words import refuse_options
from .address import address_of
from .errors import ApiError
from .job import RemoteJob, path_of_job
from .reads import Reads
from .run import RemoteRun
from .transport import Transport
from .values import value_of

_TRIES: Final = 10
"""How often a change begins again because another has changed the job meanwhile."""

_RECORDS: Final = 100
"""Records among which a run that was asked for is looked up."""

_CREATE: Final = {"If-None-Match": "*"}
_KEYS: Final = tuple(name for name in JobSpec.__annotations__ if name != "policy")


class Client(Reads):
    """The jobs of a scheduler in another process, with the verbs of `Scheduler` and of its jobs. Any thread.

    - `address`: where the control API is: "http://127.0.0.1:8000/control", or "unix:/run/jobs.sock". After a socket's
      path, ":/control" names the path under which the API is mounted.
    - `token`: is sent as `Authorization: Bearer`. `owner`: whose jobs these are; it changes no others.
    - `timeout`: the longest wait for an answer. A change is answered when it is durable.

    A request is sent again only if it may be carried out twice. Raises the errors of `Scheduler` in the same words,
    Unreachable, NotAllowed for a wrong token, and ApiError.
    """

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        owner: str = "api",
        timeout: timedelta | float | str = "15s",
        clock: Clock | None = None,
    ) -> None:
        self._clock: Clock = SystemClock() if clock is None else clock
        self._transport = Transport(address_of(address), token, seconds_of("timeout", timeout), self._clock)
        self._owner = owner

    def __repr__(self) -> str:
        return f"<Client of {self._transport.address.text}>"

    def add(
        self,
        func: str,
        schedule: SomeSchedule,
        *,
        id: str,
        args: Iterable[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        needs: str | Iterable[str] | Mapping[str, int] = (),
        priority: float = 0,
        timeout: timedelta | float | str | None = None,
        retry: Retry | None = None,
        overlap: Overlap | str = Overlap.SKIP,
        max_running: int | None = None,
        missed: Missed | str = Missed.LATEST,
        grace: timedelta | float | str = 1.0,
        catch_up: int = 100,
        delivery: Delivery | str = Delivery.AT_MOST_ONCE,
        place: str | None = None,
        where: str | None = None,
        agents: int | Literal["all"] | None = None,
        apart: str | None = None,
        inline: bool = False,
        on_conflict: OnConflict = "error",
        tags: Iterable[str] = (),
        name: str | None = None,
        **unknown: Never,
    ) -> RemoteJob:
        """Add a job: `func` is the name of a registered task. The options are those of `Scheduler.add`.

        Returns when the job is durable. Raises as `Scheduler.add`, and WrongOwner for another owner's job.
        """
        if unknown:
            refuse_options("add", unknown)
        if not isinstance(func, str):
            msg = f'func must be the name of a registered task, such as "check", not {shown(func)}'
            raise InvalidJob(msg)
        check_conflict(on_conflict)
        spec = JobSpec(
            id, func, schedule, args=args, kwargs=kwargs, needs=needs, priority=priority, timeout=timeout, retry=retry,
            overlap=overlap, max_running=max_running, missed=missed, grace=grace, catch_up=catch_up, delivery=delivery,
            place=place, where=where, agents=agents, apart=apart, inline=inline, tags=tags, name=name,
            owner=self._owner,
        )  # fmt: skip
        return self._put(spec, on_conflict)

    def _put(self, spec: JobSpec, on_conflict: OnConflict) -> RemoteJob:
        body, path = to_json(spec), path_of_job(spec.id)
        if on_conflict in {"update", "replace"}:
            answer = self.ask("PUT", path, body)
            if on_conflict == "replace" and answer.status is not HTTPStatus.CREATED:
                self.remove(spec.id)  # only now: what is wrong with the new job has been said
                answer = self.ask("PUT", path, body)
            return RemoteJob(self, spec.id, answer.body)
        try:
            return RemoteJob(self, spec.id, self.ask("PUT", path, body, headers=_CREATE).body)
        except ApiError as exc:
            if exc.status != HTTPStatus.PRECONDITION_FAILED:
                raise
        except DuplicateJob:  # another node was first
            pass
        if on_conflict == "error":
            raise duplicate(spec.id)
        return self.get(spec.id)

    def sync(self, specs: Iterable[JobSpec], *, owner: str, prune: bool = True, dry_run: bool = False) -> Synced:
        """Make the owner's jobs those of `specs`: add, change and remove what differs. See `Scheduler.sync`."""
        prune, dry_run = flag_of("prune", prune), flag_of("dry_run", dry_run)
        body = {"jobs": [*map(to_json, specs)]}
        query = {"dry_run": int(dry_run), "prune": int(prune)}
        return value_of(Synced, self.ask("PUT", f"/v1/sets/{quote(owner, safe='')}", body, query=query).body)

    def change(self, id: str, changes: Mapping[str, Any]) -> None:
        """Change options of a job, as its `update` does."""
        if "start" in changes:
            msg = "start: a client changes the next start with set_next_start"
            raise InvalidJob(msg)
        given = {"task" if name == "func" else name: value for name, value in changes.items()}
        for _ in range(_TRIES):
            answer = self.ask("GET", path_of_job(id))
            spec = _changed(RemoteJob(self, id, answer.body).spec, given)
            held = {"If-Match": answer.headers["etag"]} if "etag" in answer.headers else {}
            try:
                self.ask("PUT", path_of_job(id), to_json(spec), query={"owner": self._owner}, headers=held)
            except ApiError as exc:
                if exc.status != HTTPStatus.PRECONDITION_FAILED:
                    raise
            else:
                return
        msg = f"job {id!r} has been changed by others {_TRIES} times meanwhile: nothing has changed"
        raise InvalidJob(msg)

    def remove(self, id: str) -> None:
        """Remove a job, and cancel its run. Removing it again changes nothing."""
        with suppress(JobNotFound):
            self.ask("DELETE", path_of_job(id), query={"owner": self._owner})

    def run_now(self, id: str) -> RemoteRun:
        """Run a job once, now. For the outcome, call `result()` of the returned run."""
        due, after, missed = None, None, None
        try:
            answer = self.ask("POST", path_of_job(id, "/run")).body
            due, after = (answer.get(key) and datetime.fromisoformat(answer[key]) for key in ("due", "after"))
        except ApiError as exc:
            if exc.kind != "not-run":
                raise
            missed = _missed(id, exc.members)
        run = RemoteRun(id, due, after, lambda: self.history(id, limit=_RECORDS), self._clock)
        if missed is not None:
            run.settle(missed)
        return run

    def resize(self, limit: float | None = None, limits: Mapping[str, float | Fleet | Rate] | None = None) -> None:
        """Change the limit or named limits, or add some. A restart of the scheduler forgets it. Raises InvalidJob."""
        said: dict[str, Any] = {} if limit is None else {"limit": _size_of(limit_of("limit", limit))}
        if limits is not None:
            said["limits"] = {name: _size_of(size) for name, size in limits.items()}
        self.ask("PATCH", "/v1/limits", said)


def _changed(spec: JobSpec, changes: Mapping[str, Any]) -> JobSpec:
    """Options that were not said keep their defaults: `overlap` decides that of `max_running`."""
    said = read_json(options_text(spec.policy, spec.inline))
    values = {name: getattr(spec, name) for name in _KEYS if name not in OPTIONS or name in said}
    if unknown := changes.keys() - {*_KEYS}:
        refuse_options("update", {name: changes[name] for name in unknown})
    return JobSpec(**{**values, **changes})


def _size_of(size: Any) -> Any:
    match size:
        case Fleet(seconds=0):
            return {"units": size.units, "fleet": True}
        case Fleet():
            return {"units": size.units, "window": size.seconds, "fleet": True}
        case Rate():
            return {"units": size.units, "window": size.seconds}
        case _:
            return None if size == float("inf") else size


def _missed(id: str, problem: Mapping[str, Any]) -> RunMissed:
    due = datetime.fromisoformat(problem["due"])
    reason = next(each for each in MissedReason if problem["reason"] in {each.value, each.key})
    return RunMissed(id, due, due, 1, reason)

"""Answers that refuse, as problem+json of RFC 9457, in the words that `Scheduler.add` uses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from attrs import fields

from schedule import ScheduleError
from timerqueue import LifecycleError, UnknownLimit

from ..._shape import JobSpec
from ..._values import AlreadyStopped, DuplicateJob, InvalidJob, JobNotFound, UnknownTask, WrongOwner
from ...stores import StoreError

MEDIA_TYPE: Final = "application/problem+json"
_KIND: Final = "urn:timerqueue:problem:"
_OTHER_OWNER: Final = "other-owner"

_KEYS: Final = frozenset(
    {"at", "before", "limit", "limits", "reason", "until", *(each.name for each in fields(JobSpec))}
)
_WORD: Final = re.compile(r"[a-z_]+")

CODE: Final = "code"
"""What callers read as the owner of jobs that code has added."""

_FIRST: Final = "jobs[0]"
_IN_SET: Final = re.compile(r"jobs\[[0-9]+\](?=: )")

_DOWN: Final = (StoreError, AlreadyStopped, LifecycleError)

_AGAIN_S: Final = 5
"""Seconds after which a client may ask again."""


class Problem(Exception):
    """A request is refused. `kind`: a word for programs. `more`: members of the answer; `headers`: of its head."""

    def __init__(
        self, status: HTTPStatus, kind: str, detail: str, *, headers: Mapping[str, str] | None = None, **more: Any
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.headers: Mapping[str, str] = headers or {}
        self.body: Mapping[str, Any] = {
            "type": _KIND + kind,
            "title": status.phrase,
            "status": status.value,
            "detail": detail,
            **more,
        }

    @classmethod
    def of(cls, status: HTTPStatus, body: Mapping[str, Any]) -> Problem:
        """Return a problem with these members."""
        made = cls(status, "", body["detail"])
        made.body = body
        return made


def problem_of(error: Exception) -> Problem | None:
    """Return the answer to an error of a verb. None: the error is a defect."""
    match error:
        case Problem():
            return error
        case JobNotFound():
            return Problem(HTTPStatus.NOT_FOUND, "no-such-job", str(error))
        case DuplicateJob():
            return Problem(HTTPStatus.CONFLICT, "duplicate-job", str(error))
        case WrongOwner():
            return other_owner(str(error), error.owner)
        case UnknownTask():
            return invalid(str(error), _key_in_set(str(error), "task"), error="UnknownTask")
        case UnknownLimit():
            return invalid(str(error), _key_in_set(str(error), "needs"), error="UnknownLimit")
        case ScheduleError():
            return invalid(str(error), _key_in_set(str(error), "schedule"), error="ScheduleError")
        case InvalidJob():
            return invalid(str(error), error.path or key_of(str(error)))
        case StoreError() | AlreadyStopped() | LifecycleError():
            return unavailable(str(error), error=next(kind.__name__ for kind in _DOWN if isinstance(error, kind)))
        case _:
            return None


def invalid(detail: str, key: str | None = None, **more: Any) -> Problem:
    """`key`: the path of the value that is wrong."""
    members = more if key is None else {"key": key, **more}
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid", detail, **members)


def other_owner(detail: str, owner: str | None) -> Problem:
    """`owner`: whose the job is; None: code."""
    return Problem(HTTPStatus.CONFLICT, _OTHER_OWNER, detail, owner=CODE if owner is None else owner)


def of_other_owner(error: Exception, place: str) -> Problem | None:
    """Say where the job of another owner is defined. None: the error is about something else."""
    problem = problem_of(error)
    if problem is None or problem.body.get("type") != _KIND + _OTHER_OWNER:
        return None
    return Problem.of(problem.status, {**problem.body, "detail": f"{problem} (at {place})", "place": place})


def unavailable(detail: str, **more: Any) -> Problem:
    headers = {"Retry-After": str(_AGAIN_S)}
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", detail, headers=headers, **more)


def of_only_job(problem: Problem) -> Problem:
    """Leave out that the job was the first of a set: it was the only one."""
    members = dict(problem.body)
    detail, key = members["detail"].removeprefix(f"{_FIRST}: "), members.get("key", _FIRST)
    members = {**members, "detail": detail, "key": key.removeprefix(_FIRST).removeprefix(".")}
    return Problem.of(problem.status, {name: value for name, value in members.items() if value or name != "key"})


def _key_in_set(text: str, key: str) -> str:
    found = _IN_SET.match(text)
    return key if found is None else f"{found[0]}.{key}"


def key_of(text: str) -> str | None:
    """Return the key with which an error's text begins, if any."""
    found = _WORD.match(text)
    return found[0] if found is not None and found[0] in _KEYS else None

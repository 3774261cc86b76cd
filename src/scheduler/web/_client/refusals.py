"""Problems of the API become the errors that a scheduler in the same process raises, in the same words."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from schedule import ScheduleError, shown
from timerqueue import LifecycleError, UnknownLimit

from ..._values import AlreadyStopped, DuplicateJob, InvalidJob, JobNotFound, UnknownTask, WrongOwner
from ...stores import StoreError
from .errors import ApiError, NotAllowed

_CODE: Final = "code"
_NAMED: Final[Mapping[str, type[Exception]]] = {
    each.__name__: each
    for each in (AlreadyStopped, LifecycleError, ScheduleError, StoreError, UnknownLimit, UnknownTask)
}
"""Errors that a problem names in its member `error`."""


def refusal_of(status: HTTPStatus, body: Any) -> Exception:
    """Return the error to raise. `body`: a problem, or what a proxy answers."""
    problem: Mapping[str, Any] = body if isinstance(body, dict) else {}
    detail = problem.get("detail")
    if not isinstance(detail, str):
        said = f"the API answered {status.value} {status.phrase}: {shown(body)}"
        return _api_error(ApiError, status, problem, said)
    if (named := _NAMED.get(str(problem.get("error")))) is not None:
        return named(detail)
    match _kind_of(problem):
        case "no-such-job":
            return JobNotFound(detail)
        case "duplicate-job":
            return DuplicateJob(detail)
        case "other-owner":
            return _wrong_owner(detail, problem.get("owner"))
        case "invalid":
            return _invalid(detail, problem.get("key"))
        case "no-access" | "scope" | "other-site":
            return _api_error(NotAllowed, status, problem, detail)
        case _:
            return _api_error(ApiError, status, problem, detail)


def _invalid(detail: str, key: str | None) -> InvalidJob:
    error = InvalidJob(detail)
    error.path = key
    return error


def _wrong_owner(detail: str, owner: str | None) -> WrongOwner:
    error = WrongOwner(detail)
    error.owner = None if owner == _CODE else owner
    return error


def _api_error(made: type[ApiError], status: HTTPStatus, problem: Mapping[str, Any], detail: str) -> ApiError:
    error = made(detail)
    error.status, error.kind, error.members = status.value, _kind_of(problem), problem
    return error


def _kind_of(problem: Mapping[str, Any]) -> str:
    return str(problem.get("type", "")).rpartition(":")[2]

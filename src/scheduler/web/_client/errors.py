"""Errors of a client that a scheduler in the same process does not raise."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ..._values import SchedulerError


class Unreachable(SchedulerError, ConnectionError):
    """The API did not answer. The text says whether the request may have been carried out."""


class ApiError(SchedulerError):
    """The API refused a request for a reason that is no error of `Scheduler`, such as 503 or 413.

    `status`: of HTTP. `kind`: the word of the problem, such as "large-body". `members`: all of the problem.
    """

    status: int = 0
    kind: str = ""
    members: Mapping[str, Any] = MappingProxyType({})


class NotAllowed(ApiError, PermissionError):
    """The API does not know the token, or the token lacks a scope."""

    __str__ = Exception.__str__  # OSError would show a number of the system

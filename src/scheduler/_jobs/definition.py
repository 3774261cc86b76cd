from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

from attrs import frozen

from .._shape import DEFAULT, NO_KWARGS, NO_TAGS
from .._values import Policy
from ..stores import StoredJob

Call = Callable[[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]], Coroutine[Any, Any, Any]]


class Lasting(Protocol):
    has_ended: bool


@frozen
class Definition:
    func: Callable[..., Any]
    call: Call
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = NO_KWARGS
    policy: Policy = DEFAULT
    tags: frozenset[str] = NO_TAGS
    name: str | None = None


@frozen
class UnfitRow:
    """A row that keeps its job from running. `is_readable`: only its task is missing."""

    row: StoredJob
    is_readable: bool

"""The definition of a job: what it does and how, without its schedule, as one value."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

from attrs import frozen

from .._values import Policy
from ..stores import StoredJob
from .options import DEFAULT, NO_KWARGS, NO_TAGS

Call = Callable[[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]], Coroutine[Any, Any, Any]]
"""A function from a callable and its arguments to a coroutine."""


class Lasting(Protocol):
    """A call in a thread, which nothing can stop. It may outlive its run."""

    has_ended: bool


@frozen
class Definition:
    """A job's callable with its arguments, its rules, and how people find it. `call` makes a coroutine of the first
    two.
    """

    func: Callable[..., Any]
    call: Call
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = NO_KWARGS
    policy: Policy = DEFAULT
    tags: frozenset[str] = NO_TAGS
    name: str | None = None


@frozen
class Unfit:
    """The row that keeps its job from running until it is mended. `is_readable`: the job only waits for its task."""

    row: StoredJob
    is_readable: bool

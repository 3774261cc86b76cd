"""Who acts: a context variable, which the changes inside its block note."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from attrs import frozen

from .._shape import check_text
from .._values import InvalidJob, shown

LONGEST: Final = 500
"""Characters of a name or a reason."""


@frozen
class Acting:
    actor: str
    reason: str | None = None


_acting: Final[ContextVar[Acting | None]] = ContextVar("acting", default=None)


def acting() -> Acting | None:
    """Return who acts now. None: code."""
    return _acting.get()


@contextmanager
def acting_as(name: str, *, reason: str | None = None) -> Iterator[None]:
    """Note the changes of schedulers inside the block as made by `name`, for `reason`: see `Scheduler.changes`.

    The block holds for its task or thread, and for what these start inside it. Raises InvalidJob for a name or a reason
    that is no text, is empty, or has more than 500 characters.
    """
    _check("name", name)
    if reason is not None:
        _check("reason", reason)
    token = _acting.set(Acting(name, reason))
    try:
        yield
    finally:
        _acting.reset(token)


@contextmanager
def nobody() -> Iterator[None]:
    """Inside the block no actor acts: the act around it is noted as a whole."""
    token = _acting.set(None)
    try:
        yield
    finally:
        _acting.reset(token)


def _check(place: str, value: str) -> None:
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST:
        msg = f"{place} must be a text of 1 to {LONGEST} characters, not {shown(value)}"
        raise InvalidJob(msg)
    check_text(value, place)

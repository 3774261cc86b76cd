"""An option: a key of a check or a channel, which says itself what it means."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from attrs import frozen

from .readers import Reader

T = TypeVar("T")


@frozen
class Option(Generic[T]):
    """A reader of a key that says what the key means. `default`: what holds without it, as a file would say it.

    `is_required`: whoever makes something of the options refuses to do so without it.
    """

    read: Reader[T]
    meaning: str
    default: object = None
    is_required: bool = False

    def __call__(self, value: Any) -> T:
        """Read a value. Raises Unfit."""
        return self.read(value)

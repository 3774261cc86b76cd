"""An option of a check or a channel."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from attrs import frozen

from .readers import Reader

T = TypeVar("T")


@frozen
class Option(Generic[T]):
    """A key's reader and meaning. `default`: as written in a file."""

    read: Reader[T]
    meaning: str
    default: object = None
    is_required: bool = False

    def __call__(self, value: Any) -> T:
        """Read a value. Raises Unfit."""
        return self.read(value)

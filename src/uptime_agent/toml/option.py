"""An option: a key of a check or a channel, with its meaning."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from attrs import frozen

from .readers import Reader

T = TypeVar("T")


@frozen
class Option(Generic[T]):
    """A reader of a key, with the key's meaning. `default`: in the file's notation.

    `is_required`: the options are refused without it.
    """

    read: Reader[T]
    meaning: str
    default: object = None
    is_required: bool = False

    def __call__(self, value: Any) -> T:
        """Read a value. Raises Unfit."""
        return self.read(value)

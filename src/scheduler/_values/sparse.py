"""Attributes that nearly always have their usual value.

Of 100,000 jobs a handful are paused, tried again or late at a moment, and of all runs few have more to them than their
entry task. What only those need is kept in a dict, `special`, which everybody else does without: it costs them no
memory, no time when they are made, and a single look tells that nothing is the matter.
"""

from __future__ import annotations

from typing import Any, Generic, Protocol, Self, TypeVar, overload

T = TypeVar("T")


class HasSpecial(Protocol):
    """What may have rare attributes. `special`: those that are not as usual, by name; None: all of them are."""

    special: dict[str, Any] | None


class Rare(Generic[T]):
    """An attribute, with its usual value. Setting it to that takes it out of `special` again."""

    __slots__ = ("_name", "_usual")

    def __init__(self, usual: T) -> None:
        self._usual = usual

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: HasSpecial, owner: type) -> T: ...

    def __get__(self, instance: HasSpecial | None, owner: type) -> T | Self:
        if instance is None:
            return self
        special = instance.special
        return self._usual if special is None else special.get(self._name, self._usual)

    def __set__(self, instance: HasSpecial, value: T) -> None:
        special = instance.special
        if value is not self._usual:
            if special is None:
                instance.special = {self._name: value}
            else:
                special[self._name] = value
        elif special is not None:
            special.pop(self._name, None)
            if not special:
                instance.special = None

"""Attributes that nearly always have their usual value.

Of 100,000 jobs few are paused, retried or late. Only these have a dict, `sparse`, for their unusual values.
"""

from __future__ import annotations

from typing import Any, Generic, Protocol, Self, TypeVar, overload

T = TypeVar("T")


class HasSparse(Protocol):
    sparse: dict[str, Any] | None


class Sparse(Generic[T]):
    __slots__ = ("_name", "_usual")

    def __init__(self, usual: T) -> None:
        self._usual = usual

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: HasSparse, owner: type) -> T: ...

    def __get__(self, instance: HasSparse | None, owner: type) -> T | Self:
        if instance is None:
            return self
        sparse = instance.sparse
        return self._usual if sparse is None else sparse.get(self._name, self._usual)

    def __set__(self, instance: HasSparse, value: T) -> None:
        sparse = instance.sparse
        if value is not self._usual:
            if sparse is None:
                instance.sparse = {self._name: value}
            else:
                sparse[self._name] = value
        elif sparse is not None:
            sparse.pop(self._name, None)
            if not sparse:
                instance.sparse = None

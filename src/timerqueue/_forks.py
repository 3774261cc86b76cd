"""Forks: an object works only in the process that made it.

A forked child has one thread: locks stay held, and connections are shared. So a LeftBehind, which raises, replaces each
part of an object's copy.
"""

from __future__ import annotations

import os
from typing import Any, Final, NoReturn
from weakref import WeakKeyDictionary

from ._errors import LifecycleError

RECIPE: Final = (
    "make a new one after the fork (gunicorn: in post_fork, as docs/recipes.md shows; "
    "multiprocessing: in the function that the child runs)"
)


class LeftBehind:
    """Any use raises `error`, a LifecycleError. `kept` keeps the real parts from being closed."""

    def __init__(self, what: str, process: int, error: type[LifecycleError], kept: dict[str, Any]) -> None:
        self._message = (
            f"this {what} belongs to process {process}, and this is process {os.getpid()}, a fork of it, where it "
            f"does not run: {RECIPE}"
        )
        self._error = error
        self._kept = kept

    def refuse(self, *_args: object, **_options: object) -> NoReturn:
        raise self._error(self._message)

    __getattr__ = __call__ = __enter__ = __exit__ = __len__ = __iter__ = __contains__ = refuse


class Resident:
    def _bind_to_process(self, what: str, *keep: str, error: type[LifecycleError] = LifecycleError) -> None:
        """Make copies in forked children raise `error`. `what`: the object's name. `keep`: parts that stay."""
        _residents[self] = (what, keep, error)

    def _leave_behind(self, left: LeftBehind, keep: tuple[str, ...]) -> None:
        vars(self).update(dict.fromkeys(vars(self).keys() - keep, left))
        if hasattr(type(self), "close"):
            vars(self)["close"] = _nothing

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        msg = f"a {type(self).__name__} cannot be copied, nor sent to another process: make one there"
        raise LifecycleError(msg)


def _nothing() -> None: ...


_residents: WeakKeyDictionary[Resident, tuple[str, tuple[str, ...], type[LifecycleError]]] = WeakKeyDictionary()
_process = os.getpid()


def _leave_all() -> None:
    global _process
    parent, _process = _process, os.getpid()
    residents = list(_residents.items())
    _residents.clear()
    for resident, (what, keep, error) in residents:
        left = LeftBehind(what, parent, error, dict(vars(resident)))
        resident._leave_behind(left, keep)  # noqa: SLF001 - of this module's own class


if hasattr(os, "register_at_fork"):  # where there are forks
    os.register_at_fork(after_in_child=_leave_all)

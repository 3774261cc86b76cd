"""The callables that stored jobs may name. No name is ever imported."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from difflib import get_close_matches
from threading import Lock
from typing import Any, Final, TypeVar

from attrs import frozen

from .._shape import flag_of
from .._values import InvalidJob, UnknownTask
from .call import call_of
from .definition import Call

F = TypeVar("F", bound=Callable[..., Any])

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_SHOWN: Final = 200


@frozen
class Task:
    """`inline`: a `def` runs on the loop itself. `without_store`: runs begin even while the store does not answer."""

    name: str
    func: Callable[..., Any]
    inline: bool = False
    without_store: bool = False


class Tasks:
    """Callables by short names, which stay when code moves. Any thread."""

    def __init__(self, *, has_store: bool = False) -> None:
        self._has_store = has_store
        self._lock = Lock()
        self._tasks: dict[str, Task] = {}
        self._names: dict[Hashable, str] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def register(
        self,
        name: str,
        func: Callable[..., Any],
        *,
        inline: bool = False,
        replace: bool = False,
        without_store: bool = False,
    ) -> None:
        """Let `name` stand for `func`. Registering it again changes nothing. `replace`: replace another callable.

        A name is 1 to 128 of the characters A-Z a-z 0-9 . _ - and begins with a letter or a digit. Raises InvalidJob.
        """
        task = Task(_checked(name), func, flag_of("inline", inline), flag_of("without_store", without_store))
        replace = flag_of("replace", replace)
        if not callable(func):
            msg = f"func must be something that can be called, not {func!r}"
            raise InvalidJob(msg)
        with self._lock:
            present = self._tasks.get(name)
            if present is not None and present != task:
                if not replace:
                    msg = f"task {name!r} is {present.func!r} already: choose another name, or give replace=True"
                    raise InvalidJob(msg)
                self._forget(present)
            self._tasks[name] = task
            self._names.setdefault(_key(func), name)

    def name_of(self, func: Callable[..., Any]) -> str | None:
        """The first of several names. The methods of two objects are two callables."""
        return self._names.get(_key(func))

    def get(self, name: str) -> Callable[..., Any]:
        return self.task(name).func

    def task(self, name: str) -> Task:
        """Raises UnknownTask."""
        found = self._tasks.get(name) if isinstance(name, str) else None
        if found is None:
            raise UnknownTask(self._advice(name))
        return found

    def is_inline(self, name: str) -> bool:
        found = self._tasks.get(name)
        return found is not None and found.inline

    def goes_without_store(self, name: str) -> bool:
        found = self._tasks.get(name)
        return found is not None and found.without_store

    def resolve(self, func: Callable[..., Any] | str, *, inline: bool, durable: bool) -> tuple[str | None, Any, Call]:
        """Return the name to store, the callable, and how to call it.

        Raises UnknownTask, and InvalidJob if it cannot be called, or a `durable` job's callable has no name.
        """
        given = func
        if isinstance(func, str) and (self._has_store or self._tasks):
            task = self.task(func)
            func, inline = task.func, inline or task.inline
        if not self._has_store or not durable:
            return None, func, call_of(func, inline=inline)  # type: ignore[arg-type] # `call_of` refuses a text
        name = given if isinstance(given, str) else self.name_of(given)
        if name is None:
            msg = (
                f"{func!r} has no name by which a stored job could find it again: give it one, as in "
                f's.register("name", func), or add the job with durable=False'
            )
            raise InvalidJob(msg)
        return name, func, call_of(func, inline=inline)  # type: ignore[arg-type] # `func` is a callable here

    def names(self) -> list[str]:
        with self._lock:
            return sorted(self._tasks)

    def _forget(self, task: Task) -> None:
        del self._tasks[task.name]
        key = _key(task.func)
        if self._names.get(key) == task.name:
            del self._names[key]
            others = [other.name for other in self._tasks.values() if _key(other.func) == key]
            if others:
                self._names[key] = others[0]

    def _advice(self, name: object) -> str:
        shown = repr(name)[:_SHOWN]
        try:
            _checked(name)
        except InvalidJob as exc:
            return f"there is no task {shown}: {exc}"
        known = self.names()
        if similar := get_close_matches(str(name), known, n=1):
            return f"there is no task {shown}: did you mean {similar[0]!r}?"
        return f"there is no task {shown}: register it before the jobs that name it"


def name_of(func: Callable[..., Any]) -> str:
    """Raises InvalidJob if no task can have the function's name."""
    name = getattr(func, "__name__", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        msg = f'{repr(func)[:_SHOWN]} has no name that a task can have: give it one, as in @scheduler.task("check")'
        raise InvalidJob(msg)
    return name


def decorated(register: Callable[..., None], name: F | str | None, *, inline: bool) -> F | Callable[[F], F]:

    def decorate(func: F) -> F:
        register(name_of(func) if name is None or callable(name) else name, func, inline=inline)
        return func

    return decorate(name) if callable(name) else decorate


def _checked(name: object) -> str:
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    msg = (
        f"the name of a task must be 1 to 128 of the characters A-Z a-z 0-9 . _ - and begin with a letter or a digit, "
        f"not {repr(name)[:_SHOWN]}: it is a key that Tasks.register gives, not a path to import"
    )
    raise InvalidJob(msg)


def _key(func: Callable[..., Any]) -> Hashable:
    """Equal for one bound method looked up twice."""
    try:
        hash(func)
    except TypeError:
        return id(func)
    return func

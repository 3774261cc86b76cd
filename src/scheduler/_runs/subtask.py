"""Subtasks: a task returns them to have more done."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import CORO_CREATED, getcoroutinestate
from itertools import chain, islice, starmap
from types import AsyncGeneratorType, CoroutineType, GeneratorType, NoneType
from typing import Any, Final

from schedule import duration
from timerqueue import needs_of

from .._jobs import Call, call_of
from .._values import InvalidJob, NotASubtask, cut, shown


class Subtask:
    """Run `func(*args, **kwargs)` as its own task, once the task that returned it has ended.

    It takes one unit of the scheduler's limit and its `needs`, sees the context variables of its parent, and may return
    subtasks. The run ends with the last of them. `timeout`, for this subtask alone, in seconds or as a duration, ends
    the whole run.
    """

    __slots__ = ("args", "call", "func", "kwargs", "needs", "timeout")

    def __init__(
        self,
        func: Callable[..., Any],
        *args: Any,
        needs: str | Iterable[str] | Mapping[str, int] = (),
        timeout: Any = None,
        **kwargs: Any,
    ) -> None:
        self.func = func
        self.call: Call = call_of(func)
        self.args = args
        self.kwargs = kwargs
        self.needs = needs_of(needs) if needs != () else ()
        self.timeout = None if timeout is None else _timeout(timeout)

    def __repr__(self) -> str:
        return f"Subtask({self.func!r}, *{self.args!r})"

    @property
    def text(self) -> str:
        """The call, cut where long. Only plain values are shown: other reprs may hold anything."""
        plain = {**{str(index): each for index, each in enumerate(self.args)}, **self.kwargs}
        given = [f"{'' if name.isdecimal() else f'{name}='}{_told(each)}" for name, each in plain.items()]
        return cut(f"{getattr(self.func, '__name__', type(self.func).__name__)}({', '.join(given)})", LONGEST_CALL)


_NOTHING_ELSE: Final = {Subtask}
_PLAIN: Final = frozenset({NoneType, bool, int, float, str, bytes})
_HOLDS_THINGS: Final = (list, tuple, dict, set, frozenset, deque)
_PROMISES: Final = frozenset(
    {CoroutineType, GeneratorType, AsyncGeneratorType, map, filter, zip, enumerate, reversed, chain, islice, starmap}
)

LOOKED_AT: Final = 100
"""Most things in a result searched for lost subtasks."""

LONGEST_CALL: Final = 200
"""Characters."""

MOST_LOOKED_AT: Final = 10_000
"""Most items of a list searched for a subtask that is not first."""


def _told(value: object) -> str:
    return shown(value) if type(value) in _PLAIN else f"<{type(value).__name__}>"


def _timeout(value: Any) -> float:
    seconds = duration(value).total_seconds()
    if not seconds:
        msg = "timeout must be longer than nothing; for no timeout leave it out or give None"
        raise InvalidJob(msg)
    return seconds


def subtasks_in(value: object) -> list[Subtask] | None:
    """Return the subtasks that a task returned. None: a result.

    Raises NotASubtask for a mixture, or for wrapped work that nothing runs.
    """
    if type(value) is list and value and type(value[0]) is Subtask and set(map(type, value)) == _NOTHING_ELSE:
        return value.copy()
    if isinstance(value, Subtask):
        return [value]
    if type(value) in _PLAIN:
        return None
    if isinstance(value, (list, tuple)) and any(isinstance(item, Subtask) for item in islice(value, MOST_LOOKED_AT)):
        return _unmixed(value)
    if isinstance(value, _HOLDS_THINGS) or type(value) in _PROMISES:
        _refuse_lost_work(value)
    return None


def _unmixed(value: Iterable[object]) -> list[Subtask]:
    subtasks: list[Subtask] = []
    for item in value:
        if not isinstance(item, Subtask):
            _close_coroutines(value)
            msg = f"a task returned {shown(item)} among subtasks: return subtasks alone, or a result alone"
            raise NotASubtask(msg)
        subtasks.append(item)
    return subtasks


def _refuse_lost_work(value: object) -> None:
    lost = next((thing for thing in _within(value) if isinstance(thing, Subtask) or type(thing) in _PROMISES), None)
    if lost is None:
        return
    _close_coroutines(value)
    what = shown(lost) if lost is value else f"a {type(value).__name__} that holds {shown(lost)}"
    msg = f"a task returned {what}, which nothing runs: return a Subtask or a flat list of them, or await it first"
    raise NotASubtask(msg)


def _within(value: object) -> Iterator[object]:
    left = deque((value,))
    for _ in range(LOOKED_AT):
        if not left:
            return
        thing = left.popleft()
        yield thing
        if isinstance(thing, _HOLDS_THINGS):
            left.extend(each for each in _first_of(thing, LOOKED_AT - len(left)) if type(each) not in _PLAIN)


def _first_of(thing: Iterable[object], count: int) -> tuple[object, ...]:
    """Return the first items; none if another thread changes it: then it holds no subtasks."""
    try:
        return tuple(islice(chain(thing.values(), thing) if isinstance(thing, dict) else thing, count))
    except RuntimeError:
        return ()


def _close_coroutines(value: object) -> None:
    for thing in _within(value):
        if isinstance(thing, CoroutineType) and getcoroutinestate(thing) == CORO_CREATED:
            thing.close()

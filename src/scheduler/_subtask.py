"""What a task returns to have more done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from schedule import duration
from timerqueue import needs_of

from ._call import Call, call_of
from ._errors import InvalidJob, NotASubtask


class Subtask:
    """`func(*args, **kwargs)`, to be run as a task of its own once the task that returns it has ended.

    It takes one unit of the scheduler's limit and what it `needs`, sees the context variables that its parent set,
    and may return more subtasks. The run ends when all have ended. `timeout` is for this subtask alone, in seconds
    or as a duration.
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


_NOTHING_ELSE: Final = {Subtask}


def _timeout(value: Any) -> float:
    seconds = duration(value).total_seconds()
    if not seconds:
        msg = "timeout must be longer than nothing; for no timeout leave it out or give None"
        raise InvalidJob(msg)
    return seconds


def subtasks_in(value: object) -> list[Subtask] | None:
    """The subtasks that a task returned. None: `value` is a result. Raises NotASubtask for a mixture."""
    if type(value) is list and set(map(type, value)) == _NOTHING_ELSE:
        return value.copy()
    if isinstance(value, Subtask):
        return [value]
    if not isinstance(value, (list, tuple)) or not any(isinstance(item, Subtask) for item in value):
        return None
    for item in value:
        if not isinstance(item, Subtask):
            msg = f"a task returned {item!r} among subtasks: return subtasks alone, or a result alone"
            raise NotASubtask(msg)
    return list(value)

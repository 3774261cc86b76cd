"""Which functions are trusted to wait for nothing.

Work that waits needs its own task from the first line; other work is driven by hand, at a tenth of the cost. TRIALS
calls in a row without a wait earn trust. Each breach doubles the calls needed.
"""

from __future__ import annotations

from typing import Any, Final

TRIALS: Final = 8

LONGEST_TRIAL: Final = 2**16

MAX_FUNCTIONS: Final = 10_000
"""Functions remembered. Above it all are forgotten, so that none is kept for ever."""


class Habit:
    __slots__ = ("code", "is_quiet", "quiet_calls", "trials")

    def __init__(self, code: object) -> None:
        self.code = code
        self.is_quiet = False
        self.quiet_calls = 0
        """In a row. -1: the next call is not watched."""
        self.trials = TRIALS

    def kept_quiet(self) -> None:
        self.quiet_calls += 1
        self.is_quiet = self.quiet_calls >= self.trials and self.code is not None

    def broke_it(self) -> None:
        if self.is_quiet:
            self.trials = min(2 * self.trials, LONGEST_TRIAL)
        self.is_quiet = False
        self.quiet_calls = -1


UNKNOWN: Final = Habit(None)


class Habits:
    def __init__(self) -> None:
        self.are_trusted = True
        self._known: dict[int, Habit] = {}

    def of(self, func: Any) -> Habit:
        """Functions with the same code share a habit. A wrapper has its function's."""
        if not self.are_trusted or func is None:
            return UNKNOWN
        try:
            return self._known[id(func.__code__)]  # most functions have one
        except (AttributeError, KeyError):
            return self._of_code(_code_of(func))

    def _of_code(self, code: object) -> Habit:
        habit = self._known.get(id(code))
        if habit is None:
            if len(self._known) >= MAX_FUNCTIONS:
                self._known.clear()
            habit = self._known[id(code)] = Habit(code)  # the habit holds the code, so that its id stays its own
        return habit


def _code_of(func: Any) -> object:
    for _ in range(8):  # a chain of wrappers may end in itself
        inner = getattr(func, "__wrapped__", None) or (
            None if hasattr(func, "__code__") else getattr(func, "func", None)
        )
        if inner is None:
            break
        func = inner
    code = getattr(func, "__code__", None) or getattr(getattr(type(func), "__call__", None), "__code__", None)  # noqa: B004 - the class's
    return type(func) if code is None else code

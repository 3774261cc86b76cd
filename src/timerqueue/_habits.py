"""Which functions are known to wait for nothing.

What waits needs a task of its own from its first line on. What never does can be driven by hand, for a tenth of the
price. Nobody can tell beforehand which of the two a call will be, but functions have habits: one that has kept to
itself so many times in a row is believed that it does so again. Whenever it was wrong it has to do so twice as often.
"""

from __future__ import annotations

from typing import Any, Final

TRIALS: Final = 8
"""So many calls in a row that ended without a wait make a function quiet, until it waits once more."""

LONGEST_TRIAL: Final = 2**16
"""What that number grows to, when it has been wrong again and again."""

MOST: Final = 10_000
"""Functions whose habits are known. A program that makes more is learned anew, so that none is kept for ever."""


class Habit:
    """The habit of one function. `is_quiet`: it is believed that its next call waits for nothing."""

    __slots__ = ("code", "is_quiet", "quiet_calls", "trials")

    def __init__(self, code: object) -> None:
        self.code = code
        self.is_quiet = False
        self.quiet_calls = 0
        """In a row. -1: the last call was not quiet, so the next one is not watched: it will hardly be."""
        self.trials = TRIALS

    def kept_quiet(self) -> None:
        """A call has ended without a wait, and has left nothing at the task that it ran in."""
        self.quiet_calls += 1
        self.is_quiet = self.quiet_calls >= self.trials and self.code is not None

    def broke_it(self) -> None:
        """A call has waited, or has left something at its task."""
        if self.is_quiet:
            self.trials = min(2 * self.trials, LONGEST_TRIAL)
        self.is_quiet = False
        self.quiet_calls = -1


UNKNOWN: Final = Habit(None)
"""Of what nothing is known, or is to be known: it is never quiet."""


class Habits:
    """The habits of all functions. `are_trusted`: if not, each call is one that may wait."""

    def __init__(self) -> None:
        self.are_trusted = True
        self._known: dict[int, Habit] = {}

    def of(self, func: Any) -> Habit:
        """The habit of a function, which it shares with all that have the same code; of wrappers, what they wrap."""
        if not self.are_trusted or func is None:
            return UNKNOWN
        try:
            return self._known[id(func.__code__)]  # the usual ones have one
        except (AttributeError, KeyError):
            return self._of_code(_code_of(func))

    def _of_code(self, code: object) -> Habit:
        habit = self._known.get(id(code))
        if habit is None:
            if len(self._known) >= MOST:
                self._known.clear()
            habit = self._known[id(code)] = Habit(code)  # which holds the code, so that its id stays its own
        return habit


def _code_of(func: Any) -> object:
    for _ in range(8):  # a chain of wrappers may end in itself
        inner = getattr(func, "__wrapped__", None) or (
            None if hasattr(func, "__code__") else getattr(func, "func", None)
        )
        if inner is None:
            break
        func = inner
    code = getattr(func, "__code__", None) or getattr(getattr(type(func), "__call__", None), "__code__", None)  # noqa: B004 - of the class, not of the object
    return type(func) if code is None else code

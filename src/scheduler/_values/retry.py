"""Retries after failures. Pure: the random number is an argument."""

from __future__ import annotations

import enum
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, assert_never

from attrs import Attribute, converters, field, frozen

from schedule import ScheduleError, duration, shown

from .errors import InvalidJob

MAX_DELAY_S: Final = 100 * 365 * 86_400.0
"""Seconds. A later instant cannot be planned or stored."""

_DOUBLINGS: Final = 64
"""More change nothing: the smallest first delay has passed the longest."""


@frozen
class Backoff:
    """Waits of `first` seconds, twice that, four times that ... up to `longest`."""

    first: float
    longest: float = MAX_DELAY_S

    def after(self, failures: int) -> float:
        """Return the seconds after the `failures`-th failure in a row, from 1."""
        return min(self.first * 2.0 ** min(failures - 1, _DOUBLINGS), self.longest)


class Growth(enum.Enum):
    CONSTANT = "constant"
    LINEAR = "linear"
    EXPONENTIAL = "exponential"


LINEAR_STEPS: Final = 20
"""Failures after which a linear delay stops growing, as TimescaleDB's does."""


def _delay(value: timedelta | float | str) -> timedelta:
    delay = duration(value)
    if not delay:
        msg = f"base and cap of a Retry must be longer than nothing, not {value!r}: a failing job would never rest"
        raise ScheduleError(msg)
    return delay


def _must_be(what: str, is_right: Callable[[Any], bool]) -> Callable[[Any, Attribute[Any], Any], None]:

    def check(_retry: Any, attribute: Attribute[Any], value: Any) -> None:
        if not is_right(value):
            msg = f"{attribute.name} of a Retry must be {what}, not {shown(value)}"
            raise InvalidJob(msg)

    return check


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@frozen(kw_only=True)
class Retry:
    """When to try a failed tick again, at most `max_retries` times in a row (0: never, None: for ever).

    One more failure disables the job. Failures count over all ticks until a success. A regular start that comes first
    replaces the retry, unless `past_next_start`. No delay is longer than a hundred years. Use `exponential`, `linear`,
    `constant` or `timescaledb`.

    Raises InvalidJob, or ScheduleError for `base` and `cap`.
    """

    growth: Growth = field(
        validator=_must_be("a Growth, such as Growth.LINEAR", lambda value: isinstance(value, Growth))
    )
    base: timedelta = field(converter=_delay)
    cap: timedelta | None = field(default=None, converter=converters.optional(_delay))
    max_retries: int | None = field(
        default=None,
        validator=_must_be(
            "a whole number from 0, or None to try again for ever", lambda value: value is None or _is_whole(value, 0)
        ),
    )
    jitter: float = field(
        default=0.0,
        validator=_must_be("a share of the delay, from 0 to 1", lambda value: _is_number(value) and 0 <= value <= 1),
    )
    """Up to this share of the delay is taken off at random."""
    past_next_start: bool = field(
        default=False, validator=_must_be("True or False", lambda value: isinstance(value, bool))
    )
    cap_intervals: float | None = field(
        default=None,
        validator=_must_be(
            "a number above 0, or None", lambda value: value is None or (_is_number(value) and value > 0)
        ),
    )
    """A second cap, in intervals of the job, if its schedule has them."""
    jitter_steps: int | None = field(
        default=None,
        validator=_must_be("a whole number from 2, or None", lambda value: value is None or _is_whole(value, 2)),
    )
    """Jitter goes both ways, in this number of equal steps, from `+jitter` to one step above `-jitter`."""

    @classmethod
    def exponential(
        cls,
        base: timedelta | float | str,
        *,
        cap: timedelta | float | str | None = "5m",
        max_retries: int | None = None,
        jitter: float = 0.5,
        past_next_start: bool = False,
    ) -> Retry:
        """Wait base, 2 base, 4 base ... up to `cap`. By default up to half is taken off at random."""
        return cls(
            growth=Growth.EXPONENTIAL,
            base=base,
            cap=cap,
            max_retries=max_retries,
            jitter=jitter,
            past_next_start=past_next_start,
        )

    @classmethod
    def linear(
        cls,
        base: timedelta | float | str,
        *,
        cap: timedelta | float | str | None = None,
        max_retries: int | None = None,
        jitter: float = 0.0,
        past_next_start: bool = False,
    ) -> Retry:
        """Wait base, 2 base, 3 base ... up to 20 base and `cap`."""
        return cls(
            growth=Growth.LINEAR,
            base=base,
            cap=cap,
            max_retries=max_retries,
            jitter=jitter,
            past_next_start=past_next_start,
        )

    @classmethod
    def constant(
        cls,
        base: timedelta | float | str,
        *,
        max_retries: int | None = None,
        jitter: float = 0.0,
        past_next_start: bool = False,
    ) -> Retry:
        """Wait equally long every time."""
        return cls(
            growth=Growth.CONSTANT, base=base, max_retries=max_retries, jitter=jitter, past_next_start=past_next_start
        )

    @classmethod
    def timescaledb(cls, retry_period: timedelta | float | str = "5m", *, max_retries: int | None = None) -> Retry:
        """Wait as TimescaleDB does: 1, 2, 3 ... up to 20 times `retry_period`, at most 5 of the job's intervals.

        Jitter changes that by up to an eighth, in steps of 1/128. `max_retries`: 0 means none.
        """
        return cls(
            growth=Growth.LINEAR,
            base=retry_period,
            max_retries=max_retries,
            jitter=0.125,
            jitter_steps=32,
            cap_intervals=5.0,
        )

    def delay(self, failures: int, random: float, interval: float | None = None) -> float:
        """Return the seconds to wait after the `failures`-th failure in a row (from 1). `random` is in [0, 1).

        `interval`: seconds between the job's ticks, if its schedule has an interval. Jitter comes after both caps.
        No delay is longer than a hundred years.
        """
        seconds = self._grown(failures)
        if self.cap is not None:
            seconds = min(seconds, self.cap.total_seconds())
        if self.cap_intervals is not None and interval is not None:
            seconds = min(seconds, self.cap_intervals * interval)
        return min(min(seconds, MAX_DELAY_S) * (1 + self._jitter(random)), MAX_DELAY_S)

    def is_exhausted(self, failures: int) -> bool:
        """Whether no retry is left after that many failures in a row."""
        return self.max_retries is not None and failures > self.max_retries

    def _jitter(self, random: float) -> float:
        if self.jitter_steps is None:
            return -self.jitter * random
        return self.jitter * (1 - 2 * int(random * self.jitter_steps) / self.jitter_steps)

    def _grown(self, failures: int) -> float:
        base = self.base.total_seconds()
        match self.growth:
            case Growth.CONSTANT:
                return base
            case Growth.LINEAR:
                return base * min(failures, LINEAR_STEPS)
            case Growth.EXPONENTIAL:
                return Backoff(base).after(failures)
            case _ as never:
                assert_never(never)

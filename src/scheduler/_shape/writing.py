"""`to_json`: every value that a program may ask for, in one shape."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from attrs import has

from .._values import Retry, shown
from .forms import Form, form_of, key_text
from .info import Informed
from .options_text import plain
from .spec import JobSpec
from .spec_json import spec_values


def to_json(value: object) -> Any:
    """Return a value as JSON has it: dicts, lists, texts, numbers, booleans and None.

    `value`: a Job, JobSpec, JobInfo, Record, RunInfo, Pause, an event or statistics; or a list or dict of them.
    Instants are ISO 8601 in UTC, durations are seconds, members of an enum words in small letters. Infinity is None.
    An event says its kind as "event". Results that JSON cannot hold become text. A job whose arguments JSON cannot hold
    has the spec None, and a `spec_error`.

    Raises InvalidJob for a JobSpec with such arguments, and TypeError for other values.
    """
    match value:
        case None | bool() | str():
            return value
        case Retry():
            return plain(value)
        case JobSpec():
            return spec_values(value)
        case Informed():
            return to_json(value.info())
        case Mapping():
            return {key_text(key): to_json(item) for key, item in value.items()}
        case list() | tuple():
            return [to_json(item) for item in value]
        case _:
            return _form_of_value(value).write(value)


def _form_of_value(value: object) -> Form:
    kind: Any = type(value)
    if isinstance(value, int | float | enum.Enum | datetime | timedelta):
        return form_of(next((each for each in _SIMPLE if kind is each), kind))
    if has(kind) and kind.__module__.partition(".")[0] in _OURS:
        return form_of(kind)
    msg = f"to_json knows jobs, specs, records, events, pauses and statistics, not {shown(value)}"
    raise TypeError(msg)


_OURS: Final = frozenset({"scheduler", "timerqueue"})
_SIMPLE: Final = (int, float, datetime, timedelta)

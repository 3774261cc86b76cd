"""Forms: how values of each type are written as JSON, and the schema of what is written. Both come from type hints."""

from __future__ import annotations

import enum
import math
import types
import typing
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final

from attrs import NOTHING, evolve, fields, frozen, has

from timerqueue import LimitStatistics

from .._values import (
    Audit,
    DurationStatistics,
    InvalidJob,
    JobStatistics,
    LatenessStatistics,
    NumberedEvent,
    Retry,
    WatchdogStatistics,
)
from .info import JobInfo
from .options_text import plain
from .spec import JobSpec
from .spec_json import KEYS, REQUIRED, spec_values, told

Schema = dict[str, Any]

QUANTILES: Final = (0.5, 0.9, 0.99, 0.999)


@frozen
class Form:
    write: Callable[[Any], Any]
    schema: Schema


@cache
def form_of(hint: Any) -> Form:
    """Return the form of a type. Raises TypeError for a type that has none."""
    if (known := _KNOWN.get(hint)) is not None:
        return known
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return Form(_word, {"enum": list(map(_word, hint))})
    if hint is JobSpec:
        return _form_of_spec()
    if has(hint):
        return _form_of_class(hint)
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return Form(_same, {"enum": list(parts)})
    if origin in {types.UnionType, typing.Union}:
        return _form_of_union(parts)
    if origin in _LISTS and (len(parts) == 1 or parts[1:] == (...,)):
        return _form_of_list(form_of(parts[0]), is_sorted=origin is frozenset)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _form_of_mapping(form_of(parts[1]))
    msg = f"{hint!r} has no form as JSON"
    raise TypeError(msg)


def fields_of(kind: type) -> dict[str, Form]:
    """Return the form of each field of an attrs class."""
    hints = typing.get_type_hints(kind)
    names = [attribute.name for attribute in fields(kind)]
    return {name: _OWN.get((kind, name)) or form_of(hints[name]) for name in names}


def is_event(kind: type) -> bool:
    return kind.__module__.endswith("_values.events")


def object_schema(properties: Mapping[str, Schema], required: list[str] | None = None) -> Schema:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties) if required is None else required,
        "additionalProperties": False,
    }


def instant_text(value: datetime) -> str:
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _form_of_class(kind: type) -> Form:
    forms = fields_of(kind)
    event = {"event": kind.__name__} if is_event(kind) else {}

    def write(value: Any) -> Any:
        return event | {name: form.write(getattr(value, name)) for name, form in forms.items()}

    said: Schema = {name: {"const": text} for name, text in event.items()}
    writer = _with_spec_error(write) if kind is JobInfo else write
    return Form(writer, object_schema(said | {name: form.schema for name, form in forms.items()}))


def _with_spec_error(write: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def written(info: JobInfo) -> Any:
        """Leave out a spec that JSON cannot hold: with text in place of an argument it would be another job's."""
        try:
            return write(info)
        except InvalidJob as exc:
            return write(evolve(info, spec=None, spec_error=str(exc)))

    return written


def schema_to_read() -> Schema:
    """Return the schema of a JobSpec that `from_json` reads: more than is written."""
    hints = typing.get_type_hints(JobSpec)
    schemas = {key: _READ[key] if key in _READ else form_of(hints[key]).schema for key in KEYS}
    return object_schema(schemas, list(REQUIRED))


def _form_of_spec() -> Form:
    hints = typing.get_type_hints(JobSpec)
    schemas = {key: _WRITTEN[key] if key in _WRITTEN else form_of(hints[key]).schema for key in KEYS}
    return Form(spec_values, object_schema(schemas))


def retry_schema() -> Schema:
    hints = typing.get_type_hints(Retry)
    required = [attribute.name for attribute in fields(Retry) if attribute.default is NOTHING]
    return object_schema({name: form_of(hints[name]).schema for name in hints}, required)


def _form_of_union(parts: tuple[Any, ...]) -> Form:
    forms = [form_of(part) for part in parts if part is not types.NoneType]
    if types.NoneType not in parts or len(forms) != 1:
        plain_parts = [form.schema for form in forms] + [_NULL.schema] * (types.NoneType in parts)
        return Form(_same, {"anyOf": plain_parts})  # of texts and numbers only
    form = forms[0]
    return Form(lambda value: None if value is None else form.write(value), {"anyOf": [form.schema, _NULL.schema]})


def _form_of_list(form: Form, *, is_sorted: bool) -> Form:
    def write(value: Any) -> Any:
        found = [form.write(item) for item in value]
        return sorted(found) if is_sorted else found

    return Form(write, {"type": "array", "items": form.schema})


def _form_of_mapping(form: Form) -> Form:
    def write(value: Any) -> Any:
        return {key_text(key): form.write(item) for key, item in value.items()}

    return Form(write, {"type": "object", "additionalProperties": form.schema})


def key_text(key: object) -> str:
    return str(_word(key)) if isinstance(key, enum.Enum) else str(key)


def _word(member: enum.Enum) -> Any:
    """Return the key of an outcome or a reason, such as "timed_out", and the value of others."""
    return getattr(member, "key", member.value)


def _same(value: Any) -> Any:
    return value


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _epoch(seconds: float | None) -> str | None:
    return None if seconds is None else instant_text(datetime.fromtimestamp(seconds, UTC))


def _oldest(value: tuple[str, float | None] | None) -> Any:
    return None if value is None else {"job_id": value[0], "at": _epoch(value[1])}


def _event(value: Any) -> Any:
    kind: Any = type(value)
    return form_of(kind).write(value)


def _histogram(value: LatenessStatistics | DurationStatistics) -> Any:
    return {
        "total": value.total,
        "seconds": value.seconds,
        "quantiles": {str(share): value.quantile(share) for share in QUANTILES},
    }


_LISTS: Final = frozenset({list, tuple, frozenset})
_NULL: Final = Form(_same, {"type": "null"})
_NUMBER: Final[Schema] = {"type": "number"}
_TEXT: Final[Schema] = {"type": "string"}
_INSTANT: Final[Schema] = {"type": "string", "format": "date-time"}
_SOME_INSTANT: Final[Schema] = {"anyOf": [_INSTANT, _NULL.schema]}
DURATION: Final[Schema] = {"anyOf": [_NUMBER, _TEXT], "description": 'Seconds, or a text such as "1m30s".'}
_HISTOGRAM: Final = Form(
    _histogram,
    object_schema(
        {
            "total": {"type": "integer"},
            "seconds": _NUMBER,
            "quantiles": object_schema({str(share): _NUMBER for share in QUANTILES}),
        }
    ),
)
_KNOWN: Final[Mapping[Any, Form]] = {
    types.NoneType: _NULL,
    bool: Form(_same, {"type": "boolean"}),
    int: Form(_same, {"type": "integer"}),
    float: Form(_finite, _NUMBER),
    str: Form(_same, _TEXT),
    object: Form(told, {}),
    datetime: Form(instant_text, _INSTANT),
    timedelta: Form(plain, DURATION),
    LatenessStatistics: _HISTOGRAM,
    DurationStatistics: _HISTOGRAM,
}
_EVENT: Final = Form(_event, {"type": "object", "properties": {"event": _TEXT}, "required": ["event"]})
_SOME_EPOCH: Final = Form(_epoch, _SOME_INSTANT)
_OWN: Final[Mapping[tuple[type, str], Form]] = {
    (NumberedEvent, "event"): _EVENT,
    (JobStatistics, "last_start"): _SOME_EPOCH,
    (JobStatistics, "last_finish"): _SOME_EPOCH,
    (JobStatistics, "last_successful_finish"): _SOME_EPOCH,
    (JobStatistics, "last_audit"): _SOME_EPOCH,
    (Audit, "at"): Form(_epoch, _INSTANT),
    (WatchdogStatistics, "oldest"): Form(
        _oldest, {"anyOf": [object_schema({"job_id": _TEXT, "at": _SOME_INSTANT}), _NULL.schema]}
    ),
    (LimitStatistics, "size"): Form(_finite, {"anyOf": [_NUMBER, _NULL.schema], "description": "null: no limit"}),
}
_SOME_DURATION: Final[Schema] = {"anyOf": [DURATION, _NULL.schema]}
_UNITS: Final[Schema] = {"type": "integer", "minimum": 1}
_WRITTEN: Final[dict[str, Schema]] = {
    "args": {"type": "array"},
    "kwargs": {"type": "object"},
    "retry": {"anyOf": [retry_schema(), _NULL.schema]},
}
_READ: Final[dict[str, Schema]] = _WRITTEN | {
    "task": _TEXT,
    "schedule": {"anyOf": [_TEXT, _NUMBER], "description": "The text of a schedule, or the seconds of an interval."},
    "needs": {
        "anyOf": [_TEXT, {"type": "array", "items": _TEXT}, {"type": "object", "additionalProperties": _UNITS}],
        "description": "Names of limits, or the units of each.",
    },
    "timeout": _SOME_DURATION,
    "max_running": {"anyOf": [_UNITS, _NULL.schema]},
    "grace": DURATION,
    "catch_up": _UNITS,
    "agents": {"anyOf": [_UNITS, {"const": "all"}, _NULL.schema]},
}

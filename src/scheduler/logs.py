"""Logs as JSON: one object per line, with the run in which a line was logged."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from json import dumps
from traceback import format_exception
from typing import Any, Final

from ._jobs import current_run

__all__ = ["JsonFormatter"]

_OF_LOGGING: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def _as_it_is(text: str) -> str:
    return text


class JsonFormatter(logging.Formatter):
    """Formats each record as a JSON object on one line, in ASCII.

    Keys: `at` (ISO 8601, UTC), `level`, `logger` and `message`. A record that a run logs, or a subtask or worker thread
    of a run, also has `job_id`, `due` and `attempt`. So has a record of `scheduler` about a run that failed, with
    `task`. Keys of `extra` are added as they are, or as text if JSON has no such value. An exception adds `error` and
    `traceback`.

    `clean`: applied to each text of the record, such as to mask secrets.
    """

    def __init__(self, *, clean: Callable[[str], str] = _as_it_is) -> None:
        super().__init__()
        self._clean = clean

    def format(self, record: logging.LogRecord) -> str:
        """Format the record. A value that cannot become JSON or text ends no log line."""
        found = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_of_the_run(),
            **{key: value for key, value in vars(record).items() if key not in _OF_LOGGING},
        }
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            found["error"] = f"{type(error).__qualname__}: {_text(error)}"
            found["traceback"] = "".join(format_exception(error))
        if record.stack_info:
            found["stack"] = record.stack_info
        return dumps({key: self._cleaned(value) for key, value in found.items()})

    def _cleaned(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, int)):
            return value
        if isinstance(value, float):
            return value if abs(value) < float("inf") else str(value)
        return self._clean(_text(value))


def _of_the_run() -> dict[str, Any]:
    try:
        run = current_run()
    except LookupError:
        return {}
    return {"job_id": run.job_id, "due": run.due, "attempt": run.attempt}


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    try:
        return str(value)
    except Exception as exc:  # noqa: BLE001 - the object is the user's
        return f"<{type(value).__qualname__}, whose text failed: {type(exc).__qualname__}>"

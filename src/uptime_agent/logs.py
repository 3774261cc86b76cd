"""Logs: on standard error, without secrets."""

from __future__ import annotations

import enum
import logging
import sys
from copy import copy
from typing import Final, assert_never

from attrs import define

from .text import RedactingFormatter, Redactor

_LEVELS: Final = (logging.WARNING, logging.INFO, logging.DEBUG)
_RUNS: Final = "scheduler._runs"
_OUR_LOGGERS: Final = ("uptime_agent", "scheduler", "schedule", "timerqueue")


class LogFormat(enum.Enum):
    """How a line of the log is written."""

    TEXT = "text"
    JSON = "json"


@define
class _Chosen:
    form: LogFormat = LogFormat.TEXT


_CHOSEN: Final = _Chosen()


def log_as(form: LogFormat) -> None:
    """Choose the form of all logs of this process."""
    _CHOSEN.form = form


def _formatter(redactor: Redactor) -> logging.Formatter:
    match _CHOSEN.form:
        case LogFormat.TEXT:
            return RedactingFormatter(redactor, "%(asctime)s %(levelname)s %(name)s: %(message)s")
        case LogFormat.JSON:
            from scheduler.logs import JsonFormatter  # noqa: PLC0415 - a log of text needs none of it

            return JsonFormatter(clean=redactor.clean)
        case unknown:
            assert_never(unknown)


def log_to_stderr(verbosity: int, redactor: Redactor, *, told: str | None = None) -> None:
    """Log warnings of our packages; with a verbosity of 1 INFO, from 2 on DEBUG.

    `told`: the prefix of job ids whose failures are shown as notices; the log omits them.
    """
    handler = StderrHandler(traces=bool(verbosity))
    if told is not None and not verbosity:
        handler.addFilter(lambda record: not _is_about(record, told))
    handler.setFormatter(_formatter(redactor))
    for name in _OUR_LOGGERS:
        logger = logging.getLogger(name)
        logger.setLevel(_LEVELS[min(verbosity, len(_LEVELS) - 1)])
        logger.addHandler(handler)


def _is_about(record: logging.LogRecord, beginning: str) -> bool:
    args = record.args if isinstance(record.args, tuple) else ()
    return record.name.startswith(_RUNS) and any(str(each).startswith(beginning) for each in args[:1])


class StderrHandler(logging.Handler):
    """Writes to the present sys.stderr: a live table replaces it. `traces`: print tracebacks of failed runs."""

    def __init__(self, *, traces: bool = True) -> None:
        super().__init__()
        self._traces = traces

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line at once."""
        try:
            if record.name.startswith(_RUNS) and not self._traces:
                record = copy(record)
                record.exc_info = None
            print(self.format(record) + "\n", end="", file=sys.stderr)  # noqa: T201
        except Exception:  # noqa: BLE001 - a log that cannot be written ends nothing
            self.handleError(record)

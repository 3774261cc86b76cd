"""Bounded texts for user objects, even if they raise when asked.

An exception may refuse formatting, or have megabytes of text or a million members. None may lose a run's end.
"""

from __future__ import annotations

import traceback
from itertools import islice
from reprlib import Repr
from types import TracebackType
from typing import Final

LONGEST_ERROR: Final = 4_096
"""Characters."""

LONGEST_TRACE: Final = 32_768
"""Characters."""

_MOST_ERRORS: Final = 200
"""Causes, contexts and group members shown."""

_MOST_FRAMES: Final = 500

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]

_SHORT: Final = Repr()
_SHORT.maxother = _SHORT.maxstring = _SHORT.maxlong = 200


def shown(value: object) -> str:
    try:
        return _SHORT.repr(value)
    except BaseException as exc:  # noqa: BLE001 - a user's object, and its error must not end this run
        return f"<{_name_of(value)}, whose repr raises {_name_of(exc)}>"


def error_text(error: BaseException) -> str:
    """Return what went wrong, cut to LONGEST_ERROR. A group of one shows its member."""
    try:
        if (leaf := _alone(error)) is not error:
            return cut(f"{error_text(leaf)} (alone in: {_plain_text(error)})", LONGEST_ERROR)
        text = "".join(traceback.format_exception_only(error)).strip() if _is_told_whole(error) else _plain_text(error)
    except BaseException:  # noqa: BLE001 - as above
        text = _plain_text(error)
    return cut(text, LONGEST_ERROR)


def trace_text(error: BaseException) -> str:
    """Return the traceback with its causes, cut in the middle to LONGEST_TRACE."""
    text, _ = trace_of(error)
    return text


def trace_of(error: BaseException) -> tuple[str, bool]:
    """Return `trace_text`, and whether a log can format the error."""
    is_whole = False
    try:
        if is_whole := _is_told_whole(error):
            text = "".join(traceback.format_exception(error, limit=-_MOST_FRAMES))
        else:
            text = f"{_plain_trace(error)}\n(with more than {_MOST_ERRORS} other errors, which are left out)\n"
    except BaseException:  # noqa: BLE001 - as above
        text, is_whole = _plain_trace(error), False
    return cut_within(text, LONGEST_TRACE), is_whole


def loggable(error: BaseException) -> ExcInfo | None:
    """Return the error as `exc_info` for a log; None if formatting would break the log."""
    try:
        if not _is_told_whole(error):
            return None
        traceback.format_exception(error)
    except BaseException:  # noqa: BLE001 - as above
        return None
    return exc_info(error)


def exc_info(error: BaseException | None) -> ExcInfo | None:
    """Return the error for a log, which leaves out a bare exception that counts as false."""
    return None if error is None else (type(error), error, error.__traceback__)


def cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    mark = f"... (cut: {len(text)} characters)"
    return text[: most - len(mark)] + mark


def cut_within(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    mark = f"\n... (cut: {len(text)} characters) ...\n"
    half = (most - len(mark)) // 2
    return text[:half] + mark + text[-half:]


def _alone(error: BaseException) -> BaseException:
    for _ in range(_MOST_ERRORS):
        if not isinstance(error, BaseExceptionGroup) or len(error.exceptions) != 1:
            break
        error = error.exceptions[0]
    return error


def _is_told_whole(error: BaseException) -> bool:
    seen: set[int] = set()
    left = [error]
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        left += [other for other in (one.__cause__, one.__context__) if other is not None]
        if isinstance(one, BaseExceptionGroup):
            left += islice(one.exceptions, _MOST_ERRORS + 1)
        if len(seen) > _MOST_ERRORS:
            return False
    return True


def _plain_text(error: BaseException) -> str:
    name = _name_of(error)
    try:
        text = str(error)
    except BaseException as exc:  # noqa: BLE001 - as above
        return f"{name}: <its text raises {_name_of(exc)}>"
    return f"{name}: {text}" if text else name


def _plain_trace(error: BaseException) -> str:
    try:
        frames = "".join(traceback.format_tb(error.__traceback__, limit=-_MOST_FRAMES))
    except BaseException:  # noqa: BLE001 - as above
        frames = ""
    return f"Traceback (most recent call last):\n{frames}{_plain_text(error)}\n"


def _name_of(value: object) -> str:
    try:
        return f"{type(value).__qualname__}"
    except BaseException:  # noqa: BLE001 - as above
        return "object"

"""The one error of this package, and how it shows a value."""

from __future__ import annotations

from typing import Final

_SHOWN: Final = 200


class ScheduleError(ValueError):
    """A schedule cannot be made from what you gave, or a schedule gave a wrong answer.

    You get it when you make a value (from bad text, from a naive datetime, for something that never comes), or when you
    ask a schedule that answers wrongly. The text says what is wrong, shows the value and says what to write instead.
    """


def shown(value: object) -> str:
    """The value as an error shows it: at most 200 characters of its repr, or its type if that has none."""
    try:
        text = repr(value[: _SHOWN + 1] if isinstance(value, (str, bytes)) else value)
    except Exception:  # noqa: BLE001 - a number of thousands of digits, or whatever a user's object does
        return f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."

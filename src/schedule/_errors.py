"""The one error of this package, and how it shows a value."""

from __future__ import annotations

from typing import Final

_SHOWN: Final = 200


class ScheduleError(ValueError):
    """A schedule cannot be made from your input, or a schedule of your own gave a wrong answer.

    It is raised where you make a value: from bad text, from a naive datetime, for something that never comes. Its text
    says what is wrong, shows the value and says what to write.
    """


def shown(value: object) -> str:
    """Return the value as an error shows it: its repr, at most 200 characters, or else its type."""
    try:
        text = repr(value[: _SHOWN + 1] if isinstance(value, (str, bytes)) else value)
    except Exception:  # noqa: BLE001 - a number of thousands of digits, or any error of a user's object
        return f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."

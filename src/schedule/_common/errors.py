from __future__ import annotations

from typing import Final

_SHOWN: Final = 200


class ScheduleError(ValueError):
    """A schedule cannot be made from your input, or your own schedule answered wrongly.

    The text shows the value and says what to write.
    """


def shown(value: object) -> str:
    """Return a repr of at most 200 characters, or else the type."""
    try:
        text = repr(value[: _SHOWN + 1] if isinstance(value, (str, bytes)) else value)
    except Exception:  # noqa: BLE001 - a number of thousands of digits, or any error of a user's object
        return f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."

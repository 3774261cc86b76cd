"""The version of the installed distribution."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def our_version() -> str:
    """The version of the distribution; "unknown" if it is not installed."""
    try:
        return version("timerqueue")
    except PackageNotFoundError:
        return "unknown"

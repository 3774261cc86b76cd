"""The version of the installed distribution."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def our_version() -> str:
    """The version of the distribution; "unknown" where the source is used without being installed."""
    try:
        return version("timerqueue")
    except PackageNotFoundError:
        return "unknown"

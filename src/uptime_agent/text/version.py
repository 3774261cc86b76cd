"""The version of the distribution."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def our_version() -> str:
    """The version, or "unknown" if not installed."""
    try:
        return version("timerqueue")
    except PackageNotFoundError:
        return "unknown"

"""Instants as stores count them: whole microseconds since 1970, in UTC."""

from __future__ import annotations


def microseconds(seconds: float) -> int:
    """Return seconds as the nearest whole number of microseconds."""
    return round(seconds * 1_000_000)

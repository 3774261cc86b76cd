"""Errors of metric stores besides StoreUnavailable."""

from __future__ import annotations

from ..contract import StoreUnavailable


class StoreUnusable(StoreUnavailable):
    """Another program's, too new, or corrupt. Counts as away until a person acts."""


class Unstorable(Exception):
    """No store can ever hold this sample."""

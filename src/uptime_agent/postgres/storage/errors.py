"""Further errors of metric stores."""

from __future__ import annotations

from ..contract import StoreUnavailable


class StoreUnusable(StoreUnavailable):
    """The store is another program's, too new, or corrupt: away until a person acts."""


class Unstorable(Exception):
    """No store can ever hold this sample."""

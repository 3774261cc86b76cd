"""Errors of metric stores besides StoreUnavailable, after which the same batch may be written later."""

from __future__ import annotations

from ..contract import StoreUnavailable


class StoreUnusable(StoreUnavailable):
    """The store is there but unusable: another program's, of a newer version, corrupt. Until a person acts it counts as
    away.
    """


class Unstorable(Exception):
    """No store can ever hold this sample: a value does not fit its column, or a name is invalid."""

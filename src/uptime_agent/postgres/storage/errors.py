"""Errors of metric stores beside StoreUnavailable, which says: the same batch may be written later."""

from __future__ import annotations

from ..contract import StoreUnavailable


class StoreUnusable(StoreUnavailable):
    """The store is there and cannot be used: another program's, of a newer version, corrupt. Somebody has to act, and
    until then it is as good as away.
    """


class Unstorable(Exception):
    """A sample that no store can hold, now or later: a value that does not fit its column, a name that is none."""

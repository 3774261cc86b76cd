"""A stored job that cannot run as it stands in the store."""

from __future__ import annotations

from attrs import frozen

from ..stores import StoredJob


@frozen
class Unfit:
    """The row that keeps its job from running, until somebody mends it. `is_readable`: it only waits for its task."""

    row: StoredJob
    is_readable: bool

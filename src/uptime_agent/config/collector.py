"""Python's garbage collector pauses while a large configuration is made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collections() -> Iterator[None]:
    """Pause the garbage collector while the body runs.

    The values of a file stay: they hold no garbage, and would be searched again and again.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()

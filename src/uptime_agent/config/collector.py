"""Python's garbage collector, which is not to look through a large configuration while that is being made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collections() -> Iterator[None]:
    """Have Python look for no garbage while the body runs.

    What is made of a file stays: there is no garbage in it, and all of it would be looked at again and again.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()

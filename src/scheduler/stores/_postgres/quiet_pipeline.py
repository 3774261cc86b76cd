"""A pipeline that raises one error. Psycopg logs a warning for each further error of a broken connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg


@contextmanager
def quiet_pipeline(connection: psycopg.Connection[tuple[object, ...]]) -> Iterator[None]:
    """Send what is asked within it in one round trip. Raises the first error, and logs none."""
    failure: psycopg.Error | None = None
    try:
        with connection.pipeline():
            try:
                yield
            except psycopg.Error as error:
                failure = error
    except psycopg.Error:
        if failure is None:
            raise
    if failure is not None:
        raise failure

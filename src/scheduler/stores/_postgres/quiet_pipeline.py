"""A pipeline with one error: psycopg logs each further one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg


@contextmanager
def quiet_pipeline(connection: psycopg.Connection[tuple[object, ...]]) -> Iterator[None]:
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

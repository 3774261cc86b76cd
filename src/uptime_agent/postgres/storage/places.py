"""Stores with drivers imported at first use."""

from __future__ import annotations

from typing import Final

from .reading import ReadableStore
from .retention import Retention

SCHEMA: Final = "timerqueue_metrics"


def postgres_metrics(
    dsn: str, retention: Retention | None = None, *, schema: str = SCHEMA, password: str | None = None
) -> ReadableStore:
    """Make a PostgreSQL store. It connects at `open`. `dsn`: in libpq's words.

    `password`: separate, so that the dsn can be shown. Raises ModuleNotFoundError without psycopg 3.
    """
    try:
        from .postgres import PostgresMetrics  # noqa: PLC0415 - only this store needs the driver
    except ModuleNotFoundError as error:
        msg = f"metrics in PostgreSQL need psycopg 3 ({error}): pip install timerqueue[postgres]"
        raise ModuleNotFoundError(msg, name="psycopg") from error
    return PostgresMetrics(dsn, retention, schema=schema, password=password)

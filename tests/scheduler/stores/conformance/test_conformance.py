"""Every store is one: the public suite over each of them."""

import sqlite3
from contextlib import closing

import psycopg
import pytest
from hypothesis import settings
from psycopg import sql

from scheduler.stores import StoredJob, StoredPause
from scheduler.stores.memory import MemoryStore
from scheduler.stores.postgres import PostgresStore
from scheduler.stores.sqlite import SQLiteStore
from scheduler.testing.stores import EditConformance, SchedulerStoreConformance, StoreConformance

TABLES = {"job": StoredJob._fields, "pause": StoredPause._fields}


class MemoryStores:
    """All on one set of data."""

    @pytest.fixture
    def memory(self):
        return MemoryStore()

    @pytest.fixture
    def make_store(self, memory):
        return memory.another

    @pytest.fixture
    def edit(self, memory):
        def edit(jobs, pauses):
            for job_id, job in jobs.items():
                memory.delete(job_id) if job is None else memory.edit(job)
            for scope, pause in pauses.items():
                memory.delete_pause(scope) if pause is None else memory.edit_pause(pause)

        return edit


class SQLiteStores:
    """All on one file, which others change as anybody does who has a client for SQLite."""

    @pytest.fixture
    def make_store(self, tmp_path):
        return lambda: SQLiteStore(tmp_path / "jobs.sqlite", durability="fast")

    @pytest.fixture
    def edit(self, tmp_path):
        def edit(jobs, pauses):
            with closing(sqlite3.connect(tmp_path / "jobs.sqlite")) as connection, connection:
                for table, rows in (("job", jobs), ("pause", pauses)):
                    columns = TABLES[table]
                    changes = ", ".join(f"{column} = excluded.{column}" for column in columns[1:])
                    put = (
                        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))}) "
                        f"ON CONFLICT ({columns[0]}) DO UPDATE SET {changes}"
                    )
                    remove = f"DELETE FROM {table} WHERE {columns[0]} = ?"
                    for key, row in rows.items():
                        connection.execute(remove, [key]) if row is None else connection.execute(put, row)

        return edit


class PostgresStores:
    """All in one schema, which others change as anybody does who has a client for PostgreSQL."""

    @pytest.fixture
    def make_store(self, postgres_server, postgres_schema):
        return lambda: PostgresStore(postgres_server.dsn, schema=postgres_schema)

    @pytest.fixture
    def edit(self, postgres_server, postgres_schema):
        def edit(jobs, pauses):
            with psycopg.connect(postgres_server.dsn) as connection:
                for table, rows in (("job", jobs), ("pause", pauses)):
                    columns = TABLES[table]
                    names = {
                        "table": sql.Identifier(postgres_schema, table),
                        "key": sql.Identifier(columns[0]),
                        "values": sql.SQL(", ").join(sql.Placeholder() * len(columns)),
                        "changes": sql.SQL(", ").join(
                            sql.SQL("{0} = excluded.{0}").format(sql.Identifier(column)) for column in columns[1:]
                        ),
                    }
                    put = "INSERT INTO {table} VALUES ({values}) ON CONFLICT ({key}) DO UPDATE SET {changes}"
                    remove = "DELETE FROM {table} WHERE {key} = %s"
                    for key, row in rows.items():
                        query = sql.SQL(remove if row is None else put).format(**names)
                        connection.execute(query, [key] if row is None else row)

        return edit


class TestMemoryStore(MemoryStores, StoreConformance):
    """The reference itself."""


class TestEditsOfMemoryStore(MemoryStores, EditConformance):
    """Its own `edit` and `delete`."""


class TestSQLiteStore(SQLiteStores, StoreConformance):
    """In one file."""


class TestEditsOfSQLiteStore(SQLiteStores, EditConformance):
    """By SQL on another connection."""


class TestPostgresStore(PostgresStores, StoreConformance):
    """On a server."""

    random_batches = settings(StoreConformance.random_batches, max_examples=6)  # a round trip takes its time


class TestEditsOfPostgresStore(PostgresStores, EditConformance):
    """By SQL on another connection."""


class TestSchedulerOverMemoryStore(MemoryStores, SchedulerStoreConformance):
    """In one object."""


class TestSchedulerOverSQLiteStore(SQLiteStores, SchedulerStoreConformance):
    """In one file."""


class TestSchedulerOverPostgresStore(PostgresStores, SchedulerStoreConformance):
    """On one server."""

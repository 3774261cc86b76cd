"""Every store that keeps executions does so as the suite says, and in PostgreSQL many agents do it together."""

import pytest

from scheduler.stores.memory import MemoryStore
from scheduler.stores.postgres import PostgresStore
from scheduler.testing.executions import ExecutionConformance


class TestMemory(ExecutionConformance):
    @pytest.fixture
    def make_store(self):
        return MemoryStore().another


class TestPostgres(ExecutionConformance):
    @pytest.fixture
    def make_store(self, postgres_server, postgres_schema):
        return lambda: PostgresStore(postgres_server.dsn, schema=postgres_schema)

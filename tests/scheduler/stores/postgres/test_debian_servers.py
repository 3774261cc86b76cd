"""What Debian brings for tests (tests/kit/servers/debian_servers.py): it answers, and what is missing is named."""

import contextlib
import shutil

import psycopg
import pytest

from debian_servers import PgBouncer, program


def test_a_program_that_is_missing_is_named(monkeypatch):
    """With what there is to do."""
    monkeypatch.setattr(shutil, "which", lambda *_args, **_options: None)
    with pytest.raises(pytest.skip.Exception, match=r"needs the program beanstalkd \(Debian: apt-get install"):
        program("beanstalkd")


def test_a_pooler_shares_its_connections(postgres_server):
    """Two clients have the session of one after the other."""
    with contextlib.closing(PgBouncer(postgres_server, connections=1)) as pooler:
        ask = "SELECT pg_backend_pid()"
        with psycopg.connect(pooler.dsn, autocommit=True) as one, psycopg.connect(pooler.dsn, autocommit=True) as other:
            assert one.execute(ask).fetchone() == other.execute(ask).fetchone()

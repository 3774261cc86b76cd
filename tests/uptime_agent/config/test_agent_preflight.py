"""`timerqueue check` finds what `run` would refuse about the store, and neither makes nor opens anything."""

import os
import sqlite3
import sys
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from uptime_agent.cli import cli

CHECK = '[[check]]\nurl = "http://127.0.0.1:1/"\n'
NOBODY = 65534


def checked(file, *options):
    """Run `timerqueue check`: exit code, standard output and standard error."""
    done = CliRunner().invoke(cli, ["check", str(file), *options], catch_exceptions=False)
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def folder():
    """A folder to which all users have the way, as they have not to those that pytest makes."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextmanager
def without_rights():
    """Be a user who owns nothing here: as root that has to be chosen."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def written(folder, store=None):
    """Write a configuration; return its path."""
    file = folder / "uptime.toml"
    file.write_text((f'store = "{store}"\n' if store else "") + CHECK)
    return file


def database(path, *statements):
    """Make a SQLite database."""
    with closing(sqlite3.connect(path)) as made, made:
        for statement in statements:
            made.execute(statement)


def test_a_store_that_can_be_used_is_no_problem_and_is_not_made(tmp_path):
    """Neither a database nor a lock is there afterwards."""
    file = written(tmp_path)
    code, out, err = checked(file)
    assert (code, err) == (0, "")
    assert f"store: sqlite:///{tmp_path}/uptime.db" in out
    assert [each.name for each in tmp_path.iterdir()] == ["uptime.toml"]


async def test_a_store_that_an_agent_has_open_is_no_problem(started, ran, config):
    """One checks a configuration while the agent runs that is to be started anew with it."""
    file = config()
    async with started("run", file) as command:
        await command.line_with("-> UP", "site")
        code, _, err = await ran("check", file)
        await command.line_with("UP", "site")
    assert (code, err) == (0, "")


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    """The text says which, and what to do."""
    code, out, err = checked(written(tmp_path, "sqlite:///none/checks.db"))
    assert code == 2
    assert "http://127.0.0.1:1" in out
    assert err.startswith(f"cannot use the store: cannot make the lock {tmp_path}/none/checks.db.lock (")
    assert "the directory must be there and writable" in err


@pytest.mark.skipif(sys.platform == "win32", reason="needs rights of POSIX")
def test_a_folder_that_may_not_be_written_is_refused(folder):
    """As that of the configuration is to a service, which remembers beside it unless it is told otherwise."""
    file = written(folder)
    checked(file)  # loads what this user may not
    folder.chmod(0o555)
    with without_rights():
        code, _, err = checked(file)
    assert code == 2
    assert f"cannot make the lock {folder}/uptime.db.lock (Permission denied)" in err


@pytest.mark.skipif(sys.platform == "win32", reason="needs rights of POSIX")
@pytest.mark.parametrize("name", ["uptime.db", "uptime.db.lock"])
def test_a_file_that_may_not_be_written_is_refused(folder, name):
    """Be it the database or its lock, such as one of root."""
    file = written(folder)
    checked(file)
    (folder / name).touch()
    (folder / name).chmod(0o444)
    folder.chmod(0o777)
    with without_rights():
        code, _, err = checked(file)
    assert code == 2
    assert f"{folder}/{name}" in err


@pytest.mark.parametrize(
    ("statements", "told"),
    [
        (["CREATE TABLE customer (id)"], "is a database of another program"),
        (["PRAGMA application_id = 0x74717565", "PRAGMA user_version = 1000"], "version 1000"),
    ],
)
def test_a_database_of_others_is_refused(tmp_path, statements, told, request):
    """Another program's, or that of a later release."""
    if "1000" in told:
        from scheduler.stores._sqlite.schema import APPLICATION_ID  # noqa: PLC0415 - what marks a database as ours

        statements = [f"PRAGMA application_id = {APPLICATION_ID}", *statements[1:]]
    database(tmp_path / "uptime.db", *statements)
    code, _, err = checked(written(tmp_path))
    assert code == 2
    assert told in err


def test_the_place_may_be_given_as_for_a_run(tmp_path):
    """What the file says of it does not count then."""
    file = written(tmp_path, "sqlite:///none/checks.db")
    assert checked(file, "--store", f"sqlite:///{tmp_path}/other.db")[::2] == (0, "")
    assert checked(file, "--store", "memory")[::2] == (0, "")
    assert checked(written(tmp_path), "--store", f"sqlite:///{tmp_path}/none/other.db")[0] == 2


def test_what_is_no_database_is_refused(tmp_path):
    """A file of something else is not written over."""
    (tmp_path / "uptime.db").write_bytes(b"no database at all" * 100)
    code, _, err = checked(written(tmp_path))
    assert code == 2
    assert "is corrupt or no database" in err


def test_a_server_that_cannot_be_reached_is_refused(tmp_path, free_port):
    """Without the password."""
    code, _, err = checked(written(tmp_path, f"postgresql://me:hunter22@127.0.0.1:{free_port}/up"))
    assert code == 2
    assert err.startswith("cannot use the store: PostgreSQL at host=127.0.0.1")
    assert "hunter22" not in err


def test_a_server_whose_schema_is_not_there_yet_is_no_problem(tmp_path, postgres_server):
    """Nor is one made."""
    store = f"postgresql:///postgres?host={postgres_server.folder}&user=postgres&schema=not_yet"
    assert checked(written(tmp_path, store))[::2] == (0, "")
    assert checked(written(tmp_path, store))[::2] == (0, "")


def test_a_server_where_the_role_may_make_nothing_is_refused(tmp_path, postgres_server):
    """The role is named."""
    import psycopg  # noqa: PLC0415

    with closing(psycopg.connect(postgres_server.dsn, autocommit=True)) as admin:
        admin.execute("DROP ROLE IF EXISTS visitor")
        admin.execute("CREATE ROLE visitor LOGIN")
        admin.execute("REVOKE CREATE ON DATABASE postgres FROM PUBLIC")
    store = f"postgresql:///postgres?host={postgres_server.folder}&user=visitor&schema=not_yet"
    code, _, err = checked(written(tmp_path, store))
    assert code == 2
    assert "'visitor' may not make" in err

"""Tables whose rows or whose database mean no good: no password goes astray, and no answer ends the agent."""

import contextlib
import json
import os

import anyio
import pytest

import hostile_postgres
from kit import PATIENCE, until
from postgres_fleets import server_row
from timerqueue import SystemClock
from uptime_agent.checks import Resolver
from uptime_agent.libpq import Connection, Server, Unreachable
from uptime_agent.tables import Tables, TablesPlace, read_once
from uptime_agent.tables.copy import written
from uptime_agent.tables.following import MOST_TOLD
from uptime_agent.tables.rows import taken_in


@contextlib.asynccontextmanager
async def followed(place):
    """Follow tables while the block lasts: what was found, and what was said."""
    found, said = [], []

    async def take(each):
        found.append([target.name for target in each.targets(())])

    tables = Tables(place, Resolver(), SystemClock(), follow=take, say=said.append, named=lambda: ())
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(tables.run)
            yield found, said
            group.cancel_scope.cancel()


def read_password(folder, file):
    """What the server of a row that names this file gets; or why it gets nothing."""
    known, wrong = taken_in([server_row("a", password_file=file)], {}, TablesPlace(server=Server(), folder=folder), ())
    return wrong[0] if wrong else known["servers", "a"].meaning.target.server.password


def test_a_row_names_a_password_in_its_folder_and_nothing_else(tmp_path):
    """No link out of it, no other file of the configuration, nothing that is more than a password."""
    folder = tmp_path / "passwords"
    (folder / "deeper").mkdir(parents=True)
    (tmp_path / "uptime.toml").write_text("secret")
    (folder / "well").write_text("word\r\n")
    (folder / "lines").write_text("one\ntwo\n")
    (folder / "empty").write_text("\n")
    (folder / "long").write_text("x" * 5000)
    (folder / "latin").write_bytes(b"caf\xe9")
    (folder / "link").symlink_to(tmp_path / "uptime.toml")
    os.mkfifo(folder / "pipe")
    assert read_password(tmp_path, "passwords/well") == "word"
    for file, told in {
        "uptime.toml": "in the folder passwords",
        "passwords/../uptime.toml": "in the folder passwords",
        "passwords/deeper/x": "in the folder passwords",
        "passwords/..": "in the folder passwords",
        "passwords/": "in the folder passwords",
        "passwords/deeper": "is a directory",
        "passwords/link": "a link is not followed",
        "passwords/pipe": "it is a named pipe, and no file",
        "passwords/none": "no such file",
        "passwords/lines": "of one line",
        "passwords/empty": "of one line",
        "passwords/long": "at most 4,096 bytes",
        "passwords/latin": "of UTF-8",
    }.items():
        assert told in read_password(tmp_path, file)


async def test_a_server_out_of_a_row_gets_its_password_by_scram_alone(serve, tls, tmp_path):
    """Also over TLS: the row says which server that is, and whose certificates are trusted."""
    for context, mode in ((None, "prefer"), (tls, "require")):
        asking = await serve(hostile_postgres.asking_in_clear(context))
        place = TablesPlace(server=Server(), folder=tmp_path, environment={"A_PASSWORD": "canary"})
        row = server_row("a", dsn=f"host=127.0.0.1 port={asking.port} sslmode={mode}", password_env="A_PASSWORD")
        known, _ = taken_in([row], {}, place, ())
        connection = Connection(known["servers", "a"].meaning.target.server, "127.0.0.1", SystemClock().monotonic)
        with pytest.raises(Unreachable, match="server requested a cleartext password"):
            await connection.connect()
        connection.leave().close()
        assert asking.requests == []


META = hostile_postgres.row(b"meta", b"timerqueue probes", b'{"version": 1}')
SHAPE = (hostile_postgres.BOUND, hostile_postgres.columns(b"place", b"key", b"content"))
NONSENSE = {
    "another shape": (hostile_postgres.BOUND, hostile_postgres.columns(b"a"), hostile_postgres.row(b"x")),
    "no version": (*SHAPE, hostile_postgres.row(b"meta", b"x", b"[]")),
    "no UTF-8": (*SHAPE, hostile_postgres.row(b"caf\xe9", b"caf\xe9", b"caf\xe9")),
    "nulls": (*SHAPE, hostile_postgres.row(None, None, None)),
    "nothing": (),
}


@pytest.mark.parametrize("what", NONSENSE)
async def test_an_answer_that_makes_no_sense_leaves_what_was_read_last(what, serve, tmp_path, monkeypatch):
    """And does not end the agent, which asks again. It is told once."""
    monkeypatch.setattr("uptime_agent.tables.following.AGAIN_AFTER", 0.02)
    said = NONSENSE[what] and (*NONSENSE[what], hostile_postgres.DONE)
    lying = await serve(hostile_postgres.answering(*said))
    place = TablesPlace(server=Server(host="127.0.0.1", port=lying.port), copy=tmp_path / "copy")
    written(place.copy, place.origin, [server_row("one")], 0.0)
    async with followed(place) as (found, told):
        await until(lambda: lying.connections > 2)
    assert found == [["one"]]
    assert len(told) == 1
    assert "; their copy of 1970-01-01" in told[0]


async def test_a_row_that_is_no_json_costs_itself_alone(serve):
    """Or is too long, or too deep; or has another value than rows have."""
    wrong = [b"{", b"[1]", b"", None, b"\xff", b"[" * 50_000, b'{"dsn": {}}', b"x" * 70_000]
    rows = [hostile_postgres.row(b"servers", b"%d" % number, content) for number, content in enumerate(wrong)]
    good = hostile_postgres.row(b"servers", b"good", json.dumps(server_row("good").values).encode())
    lying = await serve(hostile_postgres.answering(*SHAPE, META, *rows, good, hostile_postgres.DONE))
    place = TablesPlace(server=Server(host="127.0.0.1", port=lying.port))
    found = await read_once(place, Resolver(), SystemClock())
    assert [each.name for each in found.targets(())] == ["good"]
    assert [each.split(":")[0] for each in found.wrong] == [f"servers '{number}'" for number in range(len(wrong))]


async def test_of_many_wrong_rows_some_are_named(serve):
    """A database that is wrong in every row does not fill the log."""
    rows = [hostile_postgres.row(b"servers", b"%d" % number, b"") for number in range(1000)]
    lying = await serve(hostile_postgres.answering(*SHAPE, META, *rows, hostile_postgres.DONE))
    async with followed(TablesPlace(server=Server(host="127.0.0.1", port=lying.port), poll=0.01)) as (_, told):
        await until(lambda: len(lying.requests) > 3)
    assert len(told) == MOST_TOLD + 1
    assert told[-1].startswith("980 more rows of ")

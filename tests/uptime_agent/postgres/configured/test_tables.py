"""Tables in PostgreSQL that name servers and say of probes what holds: made, read strictly, and followed."""

import contextlib
import json
import threading

import anyio
import psycopg
import pytest
from attrs import evolve

from kit import PATIENCE, until
from postgres_fleets import rows_on, server_of, server_row
from timerqueue import SystemClock
from uptime_agent.checks import Resolver
from uptime_agent.libpq import Server
from uptime_agent.postgres import CATALOGUE, Choice, Layer
from uptime_agent.tables import SCHEMA, Tables, TablesPlace, TablesUnread, make_tables, read_once
from uptime_agent.tables.copy import read_back
from uptime_agent.tables.rows import TableRow, taken_in


class Settings:
    """A database with the tables in it, and an agent that follows them."""

    def __init__(self, postgres, folder):
        self.postgres, self.folder = postgres, folder
        self.place = TablesPlace(
            server=server_of(postgres, database="settings"),
            poll=3600,
            folder=folder,
            environment={"ORDERS_PASSWORD": "secret", "HOME": "/"},
            copy=folder / "uptime.probes.json",
        )
        self.found, self.said = [], []

    def do(self, sql, *values):
        """Change rows as somebody would, in one transaction."""
        with psycopg.connect(self.postgres.dsn, dbname="settings", options=f"-c search_path={SCHEMA}") as connection:
            connection.execute(sql, values or None)

    def add(self, name, **values):
        """Add a server."""
        values = {"name": name, "dsn": f"postgresql://watcher@{name}.example/app"} | values
        self.do(
            f"INSERT INTO servers ({', '.join(values)}) VALUES ({', '.join(['%s'] * len(values))})", *values.values()
        )

    async def read(self, **names):
        """Read them once; return the targets by name, and what is wrong."""
        found = await read_once(self.place, Resolver(), SystemClock(), **names)
        return {each.name: each for each in found.targets(())}, found.wrong

    async def _take(self, found):
        self.found.append(found)

    @contextlib.asynccontextmanager
    async def followed(self, place=None):
        """Follow them while the block lasts."""
        tables = Tables(
            place or self.place, Resolver(), SystemClock(), follow=self._take, say=self.said.append, named=lambda: ()
        )
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as group:
                group.start_soon(tables.run)
                yield self
                group.cancel_scope.cancel()

    @property
    def names(self):
        """The servers that hold by now."""
        return [each.name for each in self.found[-1].targets(())] if self.found else None

    def plan(self, server, probe):
        """How a probe is run by now."""
        return next(each for each in self.found[-1].targets(()) if each.name == server).plan(CATALOGUE[probe])


@pytest.fixture(scope="module")
def database(postgres_of):
    """Make a database for the tables."""
    rows_on(postgres_of(18), "CREATE DATABASE settings")
    yield postgres_of(18)
    rows_on(postgres_of(18), "DROP DATABASE settings WITH (FORCE)")


@pytest.fixture
def settings(database, tmp_path, monkeypatch):
    """Make the tables anew."""
    monkeypatch.setattr("uptime_agent.tables.following.AGAIN_AFTER", 0.02)
    made = Settings(database, tmp_path)
    rows_on(database, "ALTER DATABASE settings ALLOW_CONNECTIONS true")
    rows_on(database, f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE", dbname="settings")
    assert make_tables(made.place.server, SCHEMA, None)
    return made


def test_tables_are_made_once_with_comments_and_never_over_others(settings):
    """A second call finds them; another version is refused."""
    assert not make_tables(settings.place.server, SCHEMA, None)
    commented = f"""SELECT count(*) FILTER (WHERE obj_description(c.oid) IS NULL) FROM pg_class c
        WHERE relnamespace = '{SCHEMA}'::regnamespace AND relkind = 'r'"""
    assert rows_on(settings.postgres, commented, dbname="settings") == [(0,)]
    settings.do("UPDATE meta SET version = 7")
    with pytest.raises(TablesUnread, match="has tables of version 7, this release knows 1"):
        make_tables(settings.place.server, SCHEMA, None)


async def test_a_role_that_may_read_and_nothing_else_is_enough(settings):
    """Least privilege: tables are made by another role, and granted."""
    settings.do("CREATE ROLE careful LOGIN")
    settings.do("DROP SCHEMA timerqueue_probes CASCADE")
    try:
        assert make_tables(settings.place.server, SCHEMA, "careful")
        settings.add("one")
        place = TablesPlace(server=server_of(settings.postgres, database="settings", user="careful"))
        found = await read_once(place, Resolver(), SystemClock())
        assert [each.name for each in found.targets(())] == ["one"]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            rows_on(settings.postgres, f"SET ROLE careful; DELETE FROM {SCHEMA}.servers", dbname="settings")
    finally:
        settings.do("DROP OWNED BY careful; DROP ROLE careful")


async def test_a_server_is_what_its_row_says_and_its_password_stands_elsewhere(settings):
    """NULL is what holds without a word."""
    (settings.folder / "passwords").mkdir()
    (settings.folder / "passwords" / "two").write_text("of a file\n")
    by_scram = {"require_auth": "scram-sha-256"}
    settings.add("one", password_env="ORDERS_PASSWORD", databases=["a_*"], connection_limit=2, wait="5 s", budget=0.5)
    settings.add("two", password_file="passwords/two", is_enabled=False, tags=["eu"], exclude=["x"], most_databases=3)
    targets, wrong = await settings.read()
    one, two = targets["one"], targets["two"]
    assert wrong == ()
    assert one.server == Server(host="one.example", user="watcher", password="secret", database="app", options=by_scram)
    assert (one.include, one.limit, one.wait, one.budget, one.is_enabled) == (("a_*",), 2, 5.0, 0.5, True)
    assert (two.server.password, two.is_enabled, two.tags, two.exclude) == ("of a file", False, ("eu",), ("x",))
    assert (two.most_databases, two.include, two.limit) == (3, ("*",), 3)


WRONG = [
    ({"dsn": "postgresql://me:hunter2@one/x"}, "expected a dsn without a password"),
    ({"dsn": "nonsense"}, "expected a server as dsn"),
    ({"dsn": "host=one passfile=/etc/shadow"}, "expected no passfile in the dsn"),
    ({"dsn": "host=one port=99999"}, "a port from 1 to 65535"),
    ({"password_env": "HOME"}, 'expected a password_env with PASSWORD in its name, found "HOME"'),
    ({"password_env": "OTHER_PASSWORD"}, "expected the environment variable OTHER_PASSWORD"),
    ({"password_file": "../x"}, 'in the folder passwords beside the configuration, as in passwords/NAME, found "../x"'),
    ({"password_file": "/etc/passwd"}, "expected a password_file in the folder passwords beside the configuration"),
    ({"dsn": "host=one require_auth=password"}, "expected no require_auth in the dsn"),
    ({"databases": [""]}, "expected a list of texts"),
]


async def test_a_row_that_is_wrong_is_named_and_costs_no_other_anything(settings):
    """A secret in it is not shown."""
    for number, (values, _) in enumerate(WRONG):
        settings.add(f"bad{number}", **values)
    settings.add("good")
    targets, wrong = await settings.read()
    assert list(targets) == ["good"]
    assert len(wrong) == len(WRONG)
    for number, (_, told) in enumerate(WRONG):
        assert wrong[number].startswith(f"servers 'bad{number}': ")
        assert told in wrong[number]
    assert "hunter2" not in str(wrong)


async def test_a_server_that_the_file_has_too_is_that_of_the_file(settings):
    """The row is told, and not used."""
    settings.add("one")
    targets, wrong = await settings.read(named=["one"])
    assert not targets
    assert wrong == ("servers 'one': expected another name, because the file has a server of that one, found \"one\"",)


async def test_each_value_comes_from_the_innermost_scope_that_sets_it(settings):
    """Server, cluster, group, global; around them the file. Nothing is copied: what an outer scope says later holds."""
    settings.do("INSERT INTO groups VALUES ('production')")
    settings.do("INSERT INTO clusters VALUES ('eu', 'production')")
    settings.add("one", cluster="eu")
    settings.add("two")
    scopes = (
        "INSERT INTO probe_configs (scope, server, cluster, group_name, probe, interval, timeout, retention) VALUES"
    )
    settings.do(f"{scopes} ('global', NULL, NULL, NULL, 'locks', '9 s', '9 s', '9 days')")
    settings.do(f"{scopes} ('group', NULL, NULL, 'production', 'locks', '8 s', '8 s', NULL)")
    settings.do(f"{scopes} ('cluster', NULL, 'eu', NULL, 'locks', '7 s', NULL, NULL)")
    settings.do("INSERT INTO probe_configs (scope, server, probe, is_enabled) VALUES ('server', 'one', 'locks', false)")
    found = await read_once(settings.place, Resolver(), SystemClock())
    one, two = found.targets((Layer("file", {"activity": Choice(every=3.0)}),))
    assert [layer.scope for layer in one.layers] == ["server", "cluster eu", "group production", "global", "file"]
    assert [layer.scope for layer in two.layers] == ["server", "global", "file"]
    plans = [each.plan(CATALOGUE["locks"]) for each in (one, two)]
    assert [(each.is_enabled, each.every, each.probe.timeout) for each in plans] == [(False, 7, 8), (True, 9, 9)]
    assert one.retention == two.retention == {"locks": 9 * 86_400}
    assert one.plan(CATALOGUE["activity"]).every == 3.0
    settings.do("UPDATE probe_configs SET timeout = '1 s' WHERE scope = 'cluster'")
    targets, _ = await settings.read()
    assert targets["one"].plan(CATALOGUE["locks"]).probe.timeout == 1.0


async def test_a_scope_and_its_column_belong_together_and_values_have_bounds(settings):
    """What can be refused is refused when it is written."""
    for values in (
        "(scope, probe) VALUES ('server', 'locks')",
        "(scope, cluster, probe) VALUES ('global', 'x', 'locks')",
        "(probe, interval) VALUES ('locks', '10 ms')",
        "(probe, timeout) VALUES ('locks', '1 h')",
        "(probe, retention) VALUES ('locks', '-1 s')",
    ):
        with pytest.raises(psycopg.errors.IntegrityError):
            settings.do(f"INSERT INTO probe_configs {values}")
    settings.do("INSERT INTO probe_configs (probe) VALUES ('locks')")
    with pytest.raises(psycopg.errors.UniqueViolation):
        settings.do("INSERT INTO probe_configs (probe) VALUES ('locks')")


async def test_a_change_is_followed_by_notify(settings):
    """Nobody polls here: a trigger tells. What leaves everything as it was is not followed."""
    settings.add("one")
    async with settings.followed():
        await until(lambda: settings.names == ["one"])
        settings.add("two")
        await until(lambda: settings.names == ["one", "two"])
        settings.do("INSERT INTO probe_configs (probe, interval) VALUES ('locks', '2 s')")
        await until(lambda: settings.plan("one", "locks").every == 2.0)
        times = len(settings.found)
        settings.do("UPDATE probe_configs SET description = 'the same'")
        settings.do("DELETE FROM servers WHERE name = 'two'")
        await until(lambda: settings.names == ["one"])
        assert len(settings.found) == times + 1
        settings.do("TRUNCATE servers CASCADE")
        await until(lambda: settings.names == [])
    assert settings.said == []


async def test_a_change_that_nobody_tells_is_found_by_polling(settings):
    """Behind a pooler, or when somebody has turned the triggers off."""
    settings.do("ALTER TABLE servers DISABLE TRIGGER tell")
    place = TablesPlace(server=settings.place.server, poll=0.05)
    async with settings.followed(place):
        await until(lambda: settings.names == [])
        settings.add("one")
        await until(lambda: settings.names == ["one"])


async def test_a_row_that_becomes_wrong_leaves_what_it_was(settings):
    """And is told once; when it is mended it holds."""
    settings.add("one")
    settings.do("INSERT INTO probe_configs (probe, interval) VALUES ('locks', '2 s')")
    async with settings.followed():
        await until(lambda: settings.names == ["one"])
        settings.do("UPDATE probe_configs SET probe = 'lokcs'")
        await until(lambda: settings.said)
        settings.add("two")
        await until(lambda: settings.names == ["one", "two"])
        assert settings.plan("two", "locks").every == 2.0
        settings.do("UPDATE probe_configs SET probe = 'locks', interval = '3 s'")
        await until(lambda: settings.plan("two", "locks").every == 3.0)
    (said,) = settings.said
    assert "a row of the tables in timerqueue_probes on" in said
    assert "probe_configs '1': expected a probe that there is, did you mean 'locks'?" in said
    assert said.endswith("; what it was holds on")


async def test_a_connection_that_is_lost_is_made_anew_and_all_is_read(settings):
    """What was changed meanwhile is not missed. What was read last holds until then."""
    settings.add("one")
    async with settings.followed():
        await until(lambda: settings.names == ["one"])
        ours = "FROM pg_stat_activity WHERE datname = 'settings' AND application_name = 'timerqueue'"
        rows_on(settings.postgres, "ALTER DATABASE settings ALLOW_CONNECTIONS false")
        rows_on(settings.postgres, f"SELECT pg_terminate_backend(pid) {ours}")
        await until(lambda: settings.said)
        assert settings.names == ["one"]
        rows_on(settings.postgres, "ALTER DATABASE settings ALLOW_CONNECTIONS true")
        settings.add("two")
        await until(lambda: settings.names == ["one", "two"])
    assert settings.said[0].endswith("; what was read last holds on")
    assert settings.said[1].endswith("can be read again")


async def test_an_agent_that_starts_while_the_database_is_away_begins_with_the_last_good_copy(settings):
    """And says of when it is. There is no password in it."""
    settings.add("one", password_env="ORDERS_PASSWORD")
    async with settings.followed():
        await until(lambda: settings.names == ["one"])
    assert "secret" not in settings.place.copy.read_text()
    assert settings.place.copy.stat().st_mode & 0o777 == 0o600
    settings.found.clear()
    rows_on(settings.postgres, "ALTER DATABASE settings ALLOW_CONNECTIONS false")
    async with settings.followed():
        await until(lambda: settings.names == ["one"])
        rows_on(settings.postgres, "ALTER DATABASE settings ALLOW_CONNECTIONS true")
        settings.add("two")
        await until(lambda: settings.names == ["one", "two"])
    assert "; their copy of 20" in settings.said[0]
    assert settings.found[0].targets(())[0].server.password == "secret"


async def test_rows_are_judged_in_a_thread_however_they_come(settings, monkeypatch):
    """From the tables, once or again and again, and from their copy. Many rows would hold up every check."""
    threads = []

    def judged(*given):
        threads.append(threading.get_ident())
        return taken_in(*given)

    monkeypatch.setattr("uptime_agent.tables.following.taken_in", judged)
    settings.add("one")
    await settings.read()
    async with settings.followed():
        await until(lambda: settings.names == ["one"])
    settings.found.clear()
    rows_on(settings.postgres, "ALTER DATABASE settings ALLOW_CONNECTIONS false")
    async with settings.followed():
        await until(lambda: settings.names == ["one"])
    assert len(threads) >= 3
    assert threading.get_ident() not in threads


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        json.dumps({"form": 3}),
        '{"form": 2, "from": "here", "at": 0, "rows": [1]}',
        '{"form": 2, "from": "here", "at": 1e300, "rows": []}',
        '{"form": 2, "from": "there", "at": 0, "rows": []}',
        "[" * 100_000,
    ],
)
def test_a_copy_that_makes_no_sense_is_none(tmp_path, content):
    """Half of one is not there either: it is put in its place as a whole."""
    (tmp_path / "copy").write_text(content)
    assert read_back(tmp_path / "copy", "here") is None
    assert read_back(tmp_path / "none", "here") is None


def test_a_row_of_a_table_that_was_altered_or_of_a_copy_that_was_edited_is_told(tmp_path):
    """Whatever is in it, or is not."""
    place = TablesPlace(server=Server(), folder=tmp_path)
    rows = [
        TableRow("servers", "a", {}),
        TableRow("servers", "b", {"dsn": 1}),
        TableRow("probe_configs", "1", {"probe": "locks", "interval": "x", "timeout": None, "retention": None}),
        TableRow("probe_configs", "2", {"probe": []}),
        TableRow("servers", "c", [1]),
    ]
    known, wrong = taken_in(rows, {}, place, ())
    assert not known
    assert [each.split(":")[0] for each in wrong] == [
        "servers 'a'",
        "servers 'b'",
        "probe_configs '1'",
        "probe_configs '2'",
        "servers 'c'",
    ]


def test_a_row_that_is_the_same_is_not_looked_into_again_unless_its_password_may_be_another(tmp_path):
    """A thousand servers are read every five seconds. A file is looked into each time."""
    place = TablesPlace(server=Server(), folder=tmp_path)
    (tmp_path / "passwords").mkdir()
    word = tmp_path / "passwords" / "word"
    word.write_text("old")

    def read(known, *named):
        rows = [server_row("a"), server_row("b", password_file="passwords/word"), server_row("c", wait=5 + len(known))]
        return taken_in(rows, known, place, named)[0]

    before = read({})
    word.write_text("new")
    after = read(before)
    assert after["servers", "a"] is before["servers", "a"]
    assert after["servers", "b"].meaning.target.server.password == "new"
    assert [each["servers", "c"].meaning.target.wait for each in (before, after)] == [5, 8]
    assert taken_in([server_row("a")], before, place, ["a"])[1][0].startswith("servers 'a': expected another name")


async def test_without_a_copy_it_says_what_is_wrong(settings):
    """Nothing is guessed."""
    rows_on(settings.postgres, "ALTER DATABASE settings ALLOW_CONNECTIONS false")
    async with settings.followed():
        await until(lambda: settings.said)
    assert "none of their servers is probed until they can be read" in settings.said[0]
    assert "not currently accepting connections" in settings.said[0]
    assert not settings.found


async def test_tables_that_are_not_there_are_told_with_what_makes_them(settings):
    """Nor are those of another version read."""
    settings.do("UPDATE meta SET version = 2")
    with pytest.raises(TablesUnread, match=r"have version \[2\], this release knows 1"):
        await settings.read()
    settings.do("DROP SCHEMA timerqueue_probes CASCADE")
    with pytest.raises(TablesUnread, match="make them by `timerqueue tables FILE`"):
        await settings.read()


async def test_the_copy_of_another_database_is_not_used(settings):
    """Its servers are those of somebody else. Where the tables lie is written into the copy."""
    settings.add("one")
    async with settings.followed():
        await until(lambda: settings.names == ["one"])
    settings.found.clear()
    rows_on(settings.postgres, "ALTER DATABASE settings ALLOW_CONNECTIONS false")
    async with settings.followed(evolve(settings.place, schema="others")):
        await until(lambda: settings.said)
    assert "there is no copy of them" in settings.said[0]
    assert settings.found == []
    settings.said.clear()
    async with settings.followed():
        await until(lambda: settings.names == ["one"])

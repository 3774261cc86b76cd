"""The agent as a process with a store: killed, started again, and what it then knows."""

import json
import re
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import anyio
import psycopg
import pytest

HOUR_US = 3_600_000_000


@pytest.fixture(scope="module")
def anyio_backend():
    """The process under test has a loop of its own; which one the test uses makes no difference."""
    return "asyncio"


def rows(file, sql, *parameters):
    """Ask the agent's database, as somebody with the sqlite3 shell would."""
    with closing(sqlite3.connect(file)) as database, database:
        return database.execute(sql, parameters).fetchall()


def events(lines):
    """Read what --json printed."""
    return [json.loads(line) for line in lines]


async def until(file, sql):
    """Wait for the database to say so."""
    while rows(file, sql) != [(1,)]:  # noqa: ASYNC110 - another process writes it
        await anyio.sleep(0.01)


def slow_down(file):
    """Let checks be rare enough that hardly one dies with the agent and has to wait for its crash floor."""
    text = Path(file).read_text()
    Path(file).write_text(text.replace("100ms", "500ms"))


async def killed(command):
    """Let the process die as with kill -9."""
    command.process.send_signal(signal.SIGKILL)
    await command.process.wait()


async def test_after_a_kill_the_agent_knows_how_its_targets_stood(started, config):
    """Status, since when and how often survive; what comes next is no change; the end sums up this process."""
    file = config()
    slow_down(file)
    async with started("run", file, "--json") as command:
        for _ in range(3):
            await command.line_with('"check"', '"site"', '"up"')
            await command.line_with('"check"', '"db"', '"down"')
        await until(Path(file).with_suffix(".db"), "SELECT count(*) = 0 FROM tick WHERE outcome = 'running'")
        await killed(command)
    before = {event["name"]: event for event in events(command.lines) if event["event"] == "check"}
    async with started("run", file, "--json") as command:
        await command.line_with('"check"', '"site"')
        await command.line_with('"check"', '"db"')
        command.process.send_signal(signal.SIGINT)
        assert await command.end() == 0
    after = events(command.lines)
    remembered = {event["name"]: event for event in after if event["event"] == "remembered"}
    first = {event["name"]: event for event in reversed(after) if event["event"] == "check"}
    for name in ("site", "db"):
        assert remembered[name]["status"] == first[name]["status"] == first[name]["previous"] == before[name]["status"]
        assert remembered[name]["since"][:-2] == first[name]["since"][:-2] == before[name]["since"][:-2]
        assert remembered[name]["checks"] >= 2
        assert remembered[name]["latency_ms"] is not None
        assert not first[name]["changed"]
    assert after[0]["store"] == f"sqlite:///{Path(file).with_suffix('.db')}"
    assert after[-1]["checks"] == sum(event["event"] == "check" for event in after)


async def test_after_a_long_downtime_the_checks_keep_their_places(started, up, tmp_path):
    """They do not start together; how much was left out is told in one line."""
    file, store = tmp_path / "uptime.toml", tmp_path / "uptime.db"
    names = [f"target {number}" for number in range(100)]
    file.write_text('[defaults]\ninterval = "1h"\nstart = "now"\n[limits]\n"host:*" = 100\n' + "".join(
        f'[[check]]\nname = "{name}"\nurl = "http://127.0.0.1:{up.port}"\n' for name in names
    ))  # fmt: skip
    async with started("run", str(file)) as command:
        for _ in names:
            await command.line_with("-> UP")
        await until(store, "SELECT count(*) = 100 FROM tick WHERE outcome = 'succeeded'")
        await killed(command)
    places = dict(rows(store, f"SELECT job_id, next_us % {HOUR_US} FROM job_state"))
    rows(store, f"UPDATE job_state SET next_us = next_us - 10 * {HOUR_US} RETURNING 0")
    asked = up.connections
    async with started("run", str(file)) as command:
        for _ in names:
            await command.line_with("REMEMBERED", "UP since", "status 200 in")
        told = await command.line_with("NOTICE", "left out while no agent ran")
        command.process.send_signal(signal.SIGTERM)
        assert await command.end() == 0
    (left_out,) = re.findall(r"(\d+) checks of \d+ targets", told)
    assert 700 < int(left_out) <= 1000
    assert up.connections - asked < 30  # a tenth of them is not too late
    assert dict(rows(store, f"SELECT job_id, next_us % {HOUR_US} FROM job_state")) == places
    assert all(due > time.time() * 1e6 - HOUR_US for (due,) in rows(store, "SELECT next_us FROM job_state"))


async def test_a_check_that_died_with_the_agent_says_nothing_about_its_target(started, serve, answers, tmp_path):
    """It is recorded as crashed, waits for a while, and the target stands as before."""
    good, is_asked = answers.respond(), anyio.Event()

    async def once_good(server, stream):
        if server.connections == 1:
            await good(server, stream)
        else:
            is_asked.set()
            await answers.silent(server, stream)

    server = await serve(once_good)
    file = tmp_path / "uptime.toml"
    file.write_text(f'[[check]]\nname = "site"\nurl = "http://127.0.0.1:{server.port}"\ninterval = "100ms"')
    async with started("run", str(file)) as command:
        await is_asked.wait()
        await killed(command)
    async with started("run", str(file), "--for", "500ms") as command:
        await command.line_with("REMEMBERED", "site", "UP since")
        assert await command.end() == 0
    assert not any("UNKNOWN" in line or "-> " in line for line in command.lines)
    assert rows(tmp_path / "uptime.db", "SELECT count(*) FROM tick WHERE outcome = 'crashed'") == [(1,)]


async def test_a_target_that_left_the_configuration_is_checked_no_more(started, ran, config, up, tmp_path):
    """Its job goes, its history stays, and what others have put into the store is left alone."""
    file, store = config(), tmp_path / "uptime.db"
    async with started("run", file) as command:
        await command.line_with("-> DOWN", "db")
        command.process.send_signal(signal.SIGTERM)
        await command.end()
    rows(store, "INSERT INTO job (id, task, schedule) VALUES ('theirs', 'backup', '@every 1h')")
    (tmp_path / "uptime.toml").write_text(f'[[check]]\nname = "site"\nurl = "http://127.0.0.1:{up.port}"')
    code, out, _ = await ran("run", file, "--for", "100ms")
    assert code == 0
    assert "no longer checked, because the configuration says so: db; their history stays" in out
    assert "theirs is not checked: " in out
    assert rows(store, "SELECT id FROM job ORDER BY id") == [("site",), ("theirs",)]
    assert rows(store, "SELECT count(*) FROM tick WHERE job_id = 'db'") > [(0,)]


async def test_somebody_pauses_a_target_in_the_database(started, config, tmp_path):
    """The agent follows, and still does so after a restart."""
    file, store = config(), tmp_path / "uptime.db"
    async with started("run", file) as command:
        await command.line_with("-> UP", "site")
        rows(store, "UPDATE job SET paused = 'maintenance' WHERE id = 'site'")
        await command.line_with("NOTICE", "site is not checked: maintenance")
        await killed(command)
    async with started("run", file) as command:
        await command.line_with("NOTICE", "site is not checked: maintenance")
        rows(store, "UPDATE job SET paused = NULL WHERE id = 'site'")
        await command.line_with("UP  ", "site  status 200")
        command.process.send_signal(signal.SIGTERM)
        assert await command.end() == 0


async def test_a_store_that_goes_away_is_told_and_waited_for(started, config, tmp_path):
    """Checks go on meanwhile, and their records are stored afterwards."""
    file, store = config(), tmp_path / "uptime.db"
    async with started("run", file) as command:
        await command.line_with("-> UP", "site")
        store.rename(tmp_path / "elsewhere")
        await command.line_with("NOTICE", "nothing can be stored", "replaced or removed")
        await command.line_with("UP  ", "site")
        (tmp_path / "elsewhere").rename(store)
        await command.line_with("NOTICE", "the store works again, after ")
        await command.line_with("UP  ", "site")
        command.process.send_signal(signal.SIGTERM)
        assert await command.end() == 0


async def test_two_agents_cannot_have_one_store(started, ran, config, up):
    """The second says who has it, in one line, and starts nothing; but --once needs no store."""
    file = config()
    async with started("run", file) as command:
        await command.line_with("-> UP")
        code, out, err = await ran("run", file)
        assert (code, out) == (2, "")
        assert re.fullmatch(r"cannot use the store: .*uptime\.db is in use by process \d+: stop that process.*\n", err)
        code, out, _ = await ran("run", file, "--once")
        assert (code, out.count("-> ")) == (1, 2)


async def test_the_second_agent_says_store_before_port(started, ran, config, free_port):
    """It has both from the first one. The store is why it may not start; the port would follow."""
    file = config(f'[push]\nlisten = "127.0.0.1:{free_port}"\n')
    async with started("run", file) as command:
        await command.line_with("-> UP")
        code, out, err = await ran("run", file)
        assert (code, out) == (2, "")
        assert "is in use by process" in err
        assert "cannot listen" not in err
        code, _, err = await ran("run", file, "--store", "memory")
        assert (code, err) == (2, f"cannot listen for signals at 127.0.0.1 port {free_port}: address already in use\n")


def of_a_later_release(file):
    """Make a store whose tables nobody knows yet."""
    rows(file, "PRAGMA application_id = 0x54695175")
    rows(file, "PRAGMA user_version = 99")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (of_a_later_release, "schema version 99"),
        (lambda file: file.write_bytes(b"no database at all" * 100), "is corrupt or no database"),
        (lambda file: rows(file, "CREATE TABLE theirs (x)"), "another program"),
        (lambda file: file.mkdir(), "uptime.db"),
    ],
)
async def test_a_store_that_cannot_be_opened_starts_nothing(ran, config, up, tmp_path, spoil, message):
    """Exit code 2, one line on standard error, no output, no check."""
    spoil(tmp_path / "uptime.db")
    code, out, err = await ran("run", config())
    assert (code, out, up.connections) == (2, "", 0)
    assert err.startswith("cannot use the store: ")
    assert message in err
    assert err.count("\n") == 1


async def test_a_server_that_cannot_be_reached_is_told_without_its_password(ran, config, up, free_port):
    """Nothing is started. What to do about it is told however long the reason is."""
    store = f"postgresql://me:hunter22@127.0.0.1:{free_port}/up"
    for command, advice in ((["run", config()], "(another one: --store; none: --store memory)"), (["history"], "")):
        code, out, err = await ran("-vv", *command, "--store", store)
        assert (code, out, up.connections) == (2, "", 0)
        assert "cannot use the store: " in err
        assert err.endswith(f"{advice}\n")
        assert "hunter22" not in err
        assert "Traceback" not in err


async def test_once_and_watch_leave_nothing_behind_unless_told(ran, config, up, tmp_path):
    """They write no file; with --store they do, and history can be read from it."""
    await ran("run", config(), "--once")
    await ran("watch", f"http://127.0.0.1:{up.port}", "--for", "300ms")
    assert [file.name for file in tmp_path.iterdir()] == ["uptime.toml"]
    store = f"sqlite:///{tmp_path}/told.db"
    await ran("watch", f"http://127.0.0.1:{up.port}", "--once", "--store", store)
    code, out, err = await ran("history", "--store", store)
    assert (code, err) == (0, "")
    assert "status 200 in" in out


async def test_history_is_read_while_the_agent_runs(started, ran, config):
    """Past checks of one target or all, the latest last, in words or as JSON."""
    file = config()
    async with started("run", file) as command:
        for _ in range(3):
            await command.line_with("UP  ", "site")
            await command.line_with("DOWN  ", "db")
        _, everything, _ = await ran("history", "--config", file)
        _, two, _ = await ran("history", "site", "--config", file, "--limit", "2", "--json")
    lines = everything.splitlines()
    begun = [line.partition(" ")[0] for line in lines]
    assert begun == sorted(begun)
    assert any(re.search(r"Z  UP          site  status 200 in .* ms .* late$", line) for line in lines)
    assert any(re.search(r"Z  DOWN        db  connection refused by .* late$", line) for line in lines)
    first, second = events(two.splitlines())
    assert first["due"] < second["due"]
    assert (first["name"], first["outcome"], first["status"]) == ("site", "succeeded", "up")
    assert (first["results"][0]["address"], first["results"][0]["detail"]["http_status"]) == ("127.0.0.1", 200)
    assert first["latency_ms"] > 0


SECRET_HEADERS = """
    [[check]]
    name = "shop"
    url = "http://127.0.0.1:1/?token=hunter22"
    headers = { Authorization = { env = "SHOP_TOKEN" }, Accept = "text/html", Cookie = { env = "SHOP_COOKIE" } }
"""


async def test_history_needs_no_secrets(ran, config):
    """Past checks are read by those who have the file and not the variables that it names. The agent needs these."""
    file = config(SECRET_HEADERS)
    secrets = {"SHOP_TOKEN": "hunter23", "SHOP_COOKIE": "hunter24"}
    await ran("run", file, "--for", "300ms", **secrets)
    code, out, err = await ran("history", "shop", "--config", file)
    assert (code, err) == (0, "")
    assert "connection refused by 127.0.0.1:1" in out
    for command in (["run", file, "--for", "100ms"], ["check", file]):
        code, _, err = await ran(*command, SHOP_COOKIE="hunter24")
        assert code == 2
        assert "SHOP_TOKEN for the header Authorization" in err


def put_first(line, file):
    """Write a line at the top of a file."""
    Path(file).write_text(f"{line}\n{Path(file).read_text()}")
    return file


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('store = { env = "STORE_URL" }', "expected the environment variable STORE_URL"),
        ('stroe = "sqlite:///other.db"', "unknown key 'stroe'"),
    ],
)
async def test_history_needs_to_know_its_store(ran, config, line, told):
    """Nothing else that is not set is told; and what is wrong in a file is, as ever."""
    code, out, err = await ran("history", "--config", put_first(line, config(SECRET_HEADERS)))
    assert (code, out) == (2, "")
    assert told in err
    assert "SHOP" not in err


async def test_history_of_all_addresses_of_a_name(ran, config, serve, answers, tmp_path):
    """One record tells of each of them. A target of which there is none is told, with exit code 1."""
    server = await serve(answers.respond())
    extra = f"""
        [[check]]
        name = "many"
        url = "http://many.test:{server.port}"
        mode = "all"
        [hosts]
        "many.test" = ["127.0.0.1", "127.0.0.3"]
    """
    store = f"sqlite:///{tmp_path}/many.db"
    await ran("run", config(extra), "--once", "--store", store)
    _, out, _ = await ran("history", "many", "--store", store, "--json")
    (many,) = events(out.splitlines())
    assert many["status"] == "degraded"
    assert {each["address"]: each["status"] for each in many["results"]} == {"127.0.0.1": "up", "127.0.0.3": "down"}
    code, out, err = await ran("history", "nobody", "--store", store)
    assert (code, out) == (1, "")
    assert err == f"there is no check of 'nobody' in {store}\n"


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        ([], 2, "give either --config FILE or --store URL"),
        (["--config", "u.toml", "--store", "memory"], 2, "give either --config FILE or --store URL"),
        (["--store", "memory"], 2, "memory ends with its process"),
        (["--store", "sqlite:///{folder}/none.db"], 2, "cannot use the store: there is no database {folder}/none.db"),
        (["--store", "sqlite://x"], 2, 'did you mean "sqlite:///x"?'),
        (["--config", "{folder}/none.toml"], 2, "cannot read it"),
    ],
)
async def test_history_that_cannot_be_read_is_told(ran, tmp_path, args, code, message):
    """And nothing is made by looking."""
    done = await ran("history", *(each.format(folder=tmp_path) for each in args))
    assert done[:2] == (code, "")
    assert message.format(folder=tmp_path) in done[2]
    assert list(tmp_path.iterdir()) == []


async def test_a_server_remembers_too(started, ran, config, postgres_server):
    """PostgreSQL in place of a file: the same after a kill."""
    with closing(psycopg.connect(postgres_server.dsn, autocommit=True)) as admin:
        admin.execute("CREATE DATABASE agent_restart")
    store = f"postgresql:///agent_restart?host={quote(str(postgres_server.folder))}&user=postgres"
    file = config()
    async with started("run", file, "--store", store) as command:
        await command.line_with("-> UP", "site")
        await command.line_with("UP  ", "site")
        _, out, _ = await ran("history", "site", "--store", store)
        assert "status 200 in" in out
        await killed(command)
    async with started("run", file, "--store", store) as command:
        await command.line_with("REMEMBERED", "site", "UP since")
        await command.line_with("UP  ", "site  status 200")
        command.process.send_signal(signal.SIGTERM)
        assert await command.end() == 0

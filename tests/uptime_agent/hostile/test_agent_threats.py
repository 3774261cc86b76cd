"""What an attacker would try on the agent as a whole. docs/threats.md says which test shows what else."""

import json
import signal
import stat
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings, strategies as st

from kit import examples
from uptime_agent.checks import BY_SCHEME, COMMON, KINDS, PORTS
from uptime_agent.checks.contract.result import Status
from uptime_agent.config.config import _config
from uptime_agent.testing._rules_of_kinds import SETTINGS, TOML
from uptime_agent.text import parse_url
from uptime_agent.toml import KeyLines, Section

CANARY = "c4n4ry-0f-4-ch3ck"

CHECKS = f"""
[defaults]
interval = "500ms"
[push]
listen = "127.0.0.1:PUSH"
[[check]]
name = "user"
url = "http://me:{CANARY}@127.0.0.1:PORT/"
json = '$.a == 1'
[[check]]
name = "query"
url = "http://127.0.0.1:PORT/?token={CANARY}"
contains = "no such"
redirects = 1
[[check]]
name = "header"
url = "http://127.0.0.1:PORT/"
headers = {{ Authorization = {{ env = "SECRET" }} }}
expect_headers = {{ X-Token = "none" }}
[[check]]
name = "body"
url = "http://127.0.0.1:PORT/"
method = "POST"
body = {{ env = "SECRET" }}
regex = "nothing like this"
[[check]]
name = "file"
url = "http://127.0.0.1:PORT/"
method = "POST"
body = {{ file = "secret" }}
not_contains = "c4n4ry"
[[check]]
name = "database"
url = "postgresql://me:{CANARY}@127.0.0.1:PORT/shop"
[[check]]
name = "backup"
url = "push://backup"
token = {{ env = "SECRET" }}
[[check]]
name = "steps"
[[check.step]]
name = "login"
url = "http://me:{CANARY}@127.0.0.1:PORT/"
expect_status = 403
take = {{ found = {{ regex = "(c4n4ry[-0-9a-z]*)" }} }}
[[check.step]]
name = "use"
url = "http://127.0.0.1:PORT/{{found}}"
"""


@pytest.fixture(scope="module")
def anyio_backend():
    """The processes under test have loops of their own; which one the test uses makes no difference."""
    return "asyncio"


async def test_no_secret_of_any_check_is_seen_anywhere(started, ran, serve, free_port, tmp_path):
    """The target repeats all that it was sent, in its reason, headers and body; somebody gets a token wrong."""

    async def repeating(server, stream):
        received = await stream.receive()
        fields = f"X-Token: {CANARY}\r\nLocation: http://127.0.0.1:1/{CANARY}\r\nConnection: close"
        await stream.send(f"HTTP/1.1 403 {CANARY}\r\n{fields}\r\n\r\n".encode() + received + CANARY.encode())

    server = await serve(repeating)
    file, log = tmp_path / "uptime.toml", tmp_path / "log"
    file.write_text(CHECKS.replace("PORT", str(server.port)).replace("PUSH", str(free_port)))
    Path(tmp_path, "secret").write_text(CANARY)  # noqa: ASYNC240 - a few bytes
    seen = []
    with log.open("wb") as errors:
        async with started("-vv", "run", str(file), "--json", stderr=errors, SECRET=CANARY) as agent:
            for name in ("user", "query", "header", "body", "file", "database", "steps"):
                if not any(f'"{name}"' in line and '"check"' in line for line in agent.lines):
                    await agent.line_with('"check"', f'"{name}"')
            async with await anyio.connect_tcp("127.0.0.1", free_port) as stream:
                await stream.send(f"POST /push/{CANARY}-x HTTP/1.1\r\nHost: {CANARY}\r\n\r\n".encode())
                seen.append(await stream.receive())
            agent.process.send_signal(signal.SIGTERM)
            await agent.end()
            seen.append("".join(agent.lines).encode())
    once = ["run", str(file), "--once", "--plain"]
    seen += [str(await ran("-vv", *each, SECRET=CANARY)).encode() for each in (once, ["check", str(file)])]
    history = ["history", "--config", str(file), "--limit", "1000"]
    seen += [str(await ran(*history, *more)).encode() for more in ([], ["--json"])]
    seen += [log.read_bytes(), *(each.read_bytes() for each in tmp_path.glob("uptime.db*"))]
    assert b"403" in seen[1]
    assert [text for text in seen if CANARY.encode() in text] == []


async def test_what_the_agent_makes_its_owner_alone_can_read(started, config, tmp_path):
    """Whatever the umask is: the store, what lies beside it, and nothing else."""
    before = set(tmp_path.iterdir())
    async with started("run", config(), command=["/bin/sh", "-c", 'umask 0; exec "$0" "$@"', *command()]) as agent:
        await agent.line_with("UP")
        made = {each: stat.S_IMODE(each.stat().st_mode) for each in set(tmp_path.iterdir()) - before}
        agent.process.terminate()
        await agent.end()
    assert {each.name for each in made} >= {"uptime.db", "uptime.db-wal", "uptime.db.lock"}
    assert {mode for each, mode in made.items() if each.suffix != ".toml"} == {0o600}


def command():
    """Name the program of the agent, as the tests of the command line start it."""
    import sys  # noqa: PLC0415 - for this alone

    return [sys.executable, "-m", "uptime_agent"]


STEPS = """
[[check]]
name = "shop"
timeout = "1h"
[[check.step]]
name = "login"
url = "http://127.0.0.1:PORT/silent"
[[check.step]]
name = "logout"
url = "http://127.0.0.1:PORT/logout"
always = true
"""


async def test_a_second_signal_waits_for_no_step_that_always_runs(started, serve, tmp_path):
    """Whoever says so twice wants it to end: nothing more is asked, nothing stays open, and the exit code says so."""
    asked = []

    async def handler(server, stream):
        asked.append((await stream.receive()).split()[1])
        await stream.receive()

    server = await serve(handler)
    file = tmp_path / "uptime.toml"
    file.write_text(STEPS.replace("PORT", str(server.port)) + '[defaults]\nstart = "now"\n')
    async with started("run", str(file)) as agent:
        await server.connected.wait()
        agent.process.send_signal(signal.SIGINT)
        await agent.line_with("stopping")
        agent.process.send_signal(signal.SIGINT)
        assert await agent.end() == 1
    await server.all_closed.wait()
    assert asked == [b"/silent"]


@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"])
async def test_no_proxy_is_asked(up, target_check, monkeypatch, variable):
    """Whatever the environment says: what is judged is what is dialled."""
    monkeypatch.setenv(variable, "http://127.0.0.1:1/")
    url = parse_url(f"http://127.0.0.1:{up.port}/", PORTS)
    result = await target_check(BY_SCHEME["http"].make(url=url)).run()
    assert (result.status, up.connections) == (Status.UP, 1)


async def test_the_body_of_a_redirect_is_not_read(serve, target_check):
    """However much there is of it: the next hop is asked as soon as the header says where it is."""
    sent = []

    async def handler(server, stream):
        if (await stream.receive()).split()[1] == b"/end":
            await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            return
        await stream.send(f"HTTP/1.1 302 F\r\nLocation: /end\r\nContent-Length: {10**9}\r\n\r\n".encode())
        while True:
            await stream.send(b"x" * 65_536)
            sent.append(65_536)

    server = await serve(handler)
    url = parse_url(f"http://127.0.0.1:{server.port}/", PORTS)
    found = await target_check(BY_SCHEME["http"].make(url=url, redirects=1)).run()
    while isinstance(found, list):
        found = await found[0].func(*found[0].args)
    assert (found.status, found.error) == (Status.UP, None)
    assert sum(sent) < 20_000_000  # what the buffers of the system hold


SECTIONS = ("history", "defaults", "limits", "hosts", "network", "notify", "push")
LISTED = ("check", "group", "maintenance", "channel", "postgres")
KEYS = sorted({
    *COMMON, *(key for kind in KINDS for key in kind.options),
    *("members down_if targets tags duration kind to from host port user password dsn databases exclude limit".split()),
    *("budget probes per_job age size probe every total listen digest reminders rate expiry command env step".split()),
})  # fmt: skip
TABLE = st.dictionaries(st.sampled_from(KEYS), TOML, max_size=5)
FILE = st.fixed_dictionaries(
    {},
    optional={
        "store": TOML,
        "targets": TOML,
        **dict.fromkeys(SECTIONS, TABLE | TOML),
        **dict.fromkeys(LISTED, st.lists(TABLE, max_size=3) | TOML),
    },
)


@settings(SETTINGS, max_examples=examples(60))
@given(FILE)
def test_any_file_is_a_configuration_or_has_problems(tables):
    """Whatever stands in any of its sections: problems with words and lines, and nothing is raised."""
    top = Section(tables, (), "", KeyLines(""))
    _config(top, Path("uptime.toml"), {})
    assert all(each.text.strip() and each.line >= 0 for each in top.problems)


def test_every_key_of_a_check_is_fuzzed():
    """A key that is new comes to the test by itself."""
    assert set(KEYS) >= COMMON
    assert json.dumps(KEYS)

"""Secrets of channels stand nowhere: not in the output, the log, the history, an error, or a byte of the store."""

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def anyio_backend():
    """Run on one backend: the agent is a process of its own, whatever loop the test has."""
    return "asyncio"


CANARY = "c4n4ry-0f-4-ch4nn3l"
KINDS = {
    "path": 'kind = "webhook"\nurl = { env = "PATHED" }',
    "user": f'kind = "webhook"\nurl = "http://me:{CANARY}@127.0.0.1:PORT/"',
    "query": f'kind = "webhook"\nurl = "http://127.0.0.1:PORT/?token={CANARY}"',
    "header": 'kind = "webhook"\nurl = "http://127.0.0.1:PORT/"\nheaders = { X-Team = { file = "secret" } }',
    "command": """
        kind = "command"
        command = ["/bin/sh", "-c", "echo $1 $X >&2; exit 1", "-", { file = "secret" }]
        env = { X = { env = "SECRET" } }
    """,
    "email": """
        kind = "email"
        host = "127.0.0.1"
        port = PORT
        from = "agent@example.org"
        to = "ops@example.org"
        username = "me"
        password = { file = "secret" }
    """,
}


@pytest.mark.parametrize("kind", KINDS)
async def test_no_secret_of_a_channel_is_seen_anywhere(started, ran, serve, config, tmp_path, kind):
    """The receiver even repeats what it was sent, in an answer that says no."""

    async def repeating(server, stream):
        received = await stream.receive()
        await stream.send(f"HTTP/1.1 403 {CANARY}\r\nConnection: close\r\n\r\n".encode() + received)

    server = await serve(repeating)
    Path(tmp_path, "secret").write_text(f"{CANARY}\n")  # noqa: ASYNC240 - a few bytes
    variables = {"SECRET": CANARY, "PATHED": f"http://127.0.0.1:{server.port}/{CANARY}"}
    file = config(f'[[channel]]\nname = "ops"\n{KINDS[kind]}\n'.replace("PORT", str(server.port)))
    code, out, said = await ran("-vv", "notify", "test", "ops", file, **variables)
    assert code == 1
    assert CANARY not in out + said
    log = tmp_path / "log"
    with log.open("wb") as errors:
        async with started("-vv", "run", file, "--json", stderr=errors, **variables) as agent:
            line = json.loads(await agent.line_with("channel ops: "))
            assert "messages are kept and tried again" in line["text"]
            agent.process.terminate()
            await agent.end()
    history = await ran("history", "--config", file, "--json", "--limit", "1000", **variables)
    stored = b"".join(each.read_bytes() for each in Path(file).parent.glob("uptime.db*"))
    assert b"notify:" in stored
    assert CANARY.encode() not in stored + log.read_bytes() + "".join(agent.lines).encode() + str(history).encode()

"""Secrets of channels stand nowhere: not in the output, the log, the history, an error, or a byte of the store."""

import json
import sys
from pathlib import Path

import pytest


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
        command = ["/bin/sh", "-c", "echo $X $Y >&2; exit 1"]
        env = { X = { env = "SECRET" }, Y = { file = "secret" } }
    """,
    "email": """
        kind = "email"
        host = "127.0.0.1"
        port = MAIL
        from = "agent@example.org"
        to = "ops@example.org"
        username = "me"
        password = { file = "secret" }
    """,
}

TRIED = """
import sys
from uptime_agent.cli import cli
for kind in sys.argv[2:]:
    try:
        cli(["-vv", "notify", "test", kind, sys.argv[1]], prog_name="timerqueue")
    except SystemExit as end:
        print("tried", kind, end.code)
"""
"""The command for each channel, in one process."""


@pytest.fixture
async def troubled(serve, config, tmp_path):
    """A configuration with a channel of each kind, and the variables that it needs.

    The receivers even repeat what they were sent, and secrets, in an answer that says no.
    """

    async def repeating(server, stream):
        received = await stream.receive()
        await stream.send(f"HTTP/1.1 403 {CANARY}\r\nConnection: close\r\n\r\n".encode() + received)

    async def repeating_mail(server, stream):
        await stream.send(b"220 here\r\n")
        while True:
            await stream.send(f"535 {CANARY} is not what I want to hear after ".encode() + await stream.receive())

    server, mail = await serve(repeating), await serve(repeating_mail)
    Path(tmp_path, "secret").write_text(f"{CANARY}\n")  # noqa: ASYNC240 - a few bytes
    channels = "\n".join(f'[[channel]]\nname = "{kind}"\n{text}' for kind, text in KINDS.items())
    variables = {"SECRET": CANARY, "PATHED": f"http://127.0.0.1:{server.port}/{CANARY}"}
    return config(channels.replace("PORT", str(server.port)).replace("MAIL", str(mail.port))), variables


async def test_no_secret_of_a_channel_is_seen_when_it_is_tried(started, troubled):
    """Whatever its kind; and each is tried."""
    file, variables = troubled
    program = [sys.executable, "-c", TRIED]
    async with started(file, *KINDS, command=program, stderr=-2, **variables) as tried:
        assert await tried.end() == 0
    said = "".join(tried.lines)
    assert CANARY not in said
    assert [line.split()[1:] for line in tried.lines if line.startswith("tried ")] == [[kind, "1"] for kind in KINDS]


async def test_no_secret_of_a_channel_is_seen_anywhere(started, ran, troubled, tmp_path):
    """While the agent runs, and in what it leaves."""
    file, variables = troubled
    log = tmp_path / "log"
    with log.open("wb") as errors:
        async with started("-vv", "run", file, "--json", stderr=errors, **variables) as agent:
            left = set(KINDS)
            while left:
                text = json.loads(await agent.line_with("messages are kept and tried again"))["text"]
                left.discard(text.partition(": ")[0].removeprefix("channel "))
            agent.process.terminate()
            await agent.end()
    history = await ran("history", "--config", file, "--json", "--limit", "1000", **variables)
    stored = b"".join(each.read_bytes() for each in Path(file).parent.glob("uptime.db*"))
    for kind in KINDS:
        assert f":{kind}:trigger".encode() in stored
    assert CANARY.encode() not in stored + log.read_bytes() + "".join(agent.lines).encode() + str(history).encode()

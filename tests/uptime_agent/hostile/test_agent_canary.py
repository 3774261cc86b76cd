"""A secret stands nowhere that people look: not with checks that are no exchange over HTTP, and not in the live table.

Each target repeats the secret in what it answers. test_agent_threats.py has the same for checks over HTTP.
"""

import json
import os
import pty
import re
import signal
import sys
from contextlib import asynccontextmanager, suppress

import anyio
import pytest

from dns_server import Zone
from kit import PATIENCE

CANARY = "c4n4ry-0f-4-t4rg3t"

CHECKS = f"""
[defaults]
interval = "500ms"
timeout = "2s"
[[check]]
name = "banner"
url = "tcp://me:{CANARY}@127.0.0.1:BANNER"
expect = "220"
[[check]]
name = "dialogue"
url = "tcp://me:{CANARY}@127.0.0.1:BANNER"
dialogue = [{{ expect = "{CANARY[:4]}*" }}, {{ send = "AUTH {CANARY}\\r\\n" }}, {{ expect = "235" }}]
[[check]]
name = "handshake"
url = "tls://me:{CANARY}@127.0.0.1:BANNER"
[[check]]
name = "answers"
url = "dns://me:{CANARY}@127.0.0.1:NAMES/www.example.org?type=TXT"
answers = ["something else"]
[[check]]
name = "offset"
url = "ntp://me:{CANARY}@127.0.0.1:TIME"
[[check]]
name = "echoes"
url = "icmp://me:{CANARY}@127.0.0.1"
[[check]]
name = "expiry"
url = "domain://example.org"
start = "now"
server = "http://me:{CANARY}@127.0.0.1:REGISTRY/{CANARY}/?token={CANARY}"
redirect_targets = "any"
"""
NAMES = re.findall(r'name = "(.*)"', CHECKS)


@pytest.fixture(scope="module")
def anyio_backend():
    """The agent is a process of its own; which loop the test has makes no difference."""
    return "asyncio"


@asynccontextmanager
async def datagrams(answered):
    """Answer datagrams. The port."""

    async def serve(udp):
        async for data, peer in udp:
            await udp.sendto(answered(data), *peer)

    async with await anyio.create_udp_socket(local_host="127.0.0.1") as udp, anyio.create_task_group() as group:
        group.start_soon(serve, udp)
        yield udp.extra(anyio.abc.SocketAttribute.local_port)
        group.cancel_scope.cancel()


@pytest.fixture
async def file(serve, tmp_path):
    """A configuration with a check of each kind, and servers that repeat the secret."""

    async def banner(server, stream):
        await stream.send(f"{CANARY} at your service\r\n".encode())
        while True:
            await stream.send(f"535 {CANARY} ".encode() + await stream.receive())

    async def registry(server, stream):
        received = await stream.receive()
        fields = f"Location: http://127.0.0.1:1/{CANARY}\r\nConnection: close"
        await stream.send(f"HTTP/1.1 302 {CANARY}\r\n{fields}\r\n\r\n".encode() + received)

    zone = Zone([("www.example.org.", "TXT", f'"{CANARY}"')])
    ports = {"BANNER": (await serve(banner)).port, "REGISTRY": (await serve(registry)).port}
    async with datagrams(zone.answer) as names, datagrams(lambda data: CANARY.encode() * 3) as time:
        ports |= {"NAMES": names, "TIME": time}
        path = tmp_path / "uptime.toml"
        path.write_text(re.sub("|".join(ports), lambda found: str(ports[found[0]]), CHECKS))
        yield path


async def test_no_secret_of_a_target_is_seen_whatever_its_kind(started, ran, file, tmp_path):
    """Output, log, history, store and the commands that show a configuration."""
    log = tmp_path / "log"
    with log.open("wb") as errors:
        async with started("-vv", "run", str(file), "--json", stderr=errors) as agent:
            for name in NAMES:
                if not any(f'"{name}"' in line and '"check"' in line for line in agent.lines):
                    await agent.line_with('"check"', f'"{name}"')
            agent.process.send_signal(signal.SIGTERM)
            await agent.end()
    said = "".join(agent.lines)
    assert "answers" in {json.loads(line)["name"] for line in agent.lines if "***" in line}
    shown = [str(await ran(*each)) for each in (["run", str(file), "--once", "--plain"], ["check", str(file)])]
    shown.append(str(await ran("history", "--config", str(file), "--limit", "1000", "--json")))
    stored = b"".join(each.read_bytes() for each in tmp_path.glob("uptime.db*"))
    assert b"***" in stored
    assert CANARY not in said + "".join(shown)
    assert CANARY.encode() not in stored + log.read_bytes()


async def test_no_secret_is_seen_in_the_live_table(environment, file):
    """In a terminal that is so wide that no line is cut."""
    ours, theirs = pty.openpty()
    variables = environment(COLUMNS="500", LINES="100", TERM="xterm-256color")
    command = [sys.executable, "-m", "uptime_agent", "run", str(file)]
    seen = bytearray()

    def read():
        with suppress(OSError):  # the other end is closed
            while data := os.read(ours, 65_536):
                seen.extend(data)

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            process = await anyio.open_process(command, stdin=theirs, stdout=theirs, stderr=theirs, env=variables)
            os.close(theirs)
            group.start_soon(anyio.to_thread.run_sync, read)
            while not (b"something else" in seen and all(name.encode() in seen for name in NAMES)):
                assert process.returncode is None, bytes(seen)
                await anyio.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            await process.wait()
    os.close(ours)
    assert b"\x1b[" in seen
    assert CANARY.encode() not in seen
    assert CANARY not in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\s", "", seen.decode())

"""Broken files: the one that an agent follows is rewritten, and those of other monitors are imported beside it."""
# ruff: noqa: T201 - it speaks to who started it

import asyncio
import os
import re
import signal
import tempfile
from contextlib import suppress
from pathlib import Path

import yaml as pyyaml

from beside_agent import memory
from foreign_monitors import NAMES
from fuzzed_files import FILES, PIECES, SAMPLES, check_import, rearranged
from mutants import mutants

READ = re.compile(rb"configuration read again|the changed configuration is not used")
SOON = 2.0
"""Seconds to wait for the agent's word on a file."""
OURS = b"""
[[check]]
name = "web"
url = "http://127.0.0.1:9/health?a=b"
interval = "10m"
timeout = "2s"
method = "POST"
headers = { Accept = "text/html", X-Token = "abc" }
body = "{}"
expect_status = ["200-299", 404]
expect_headers = { Content-Type = "text/html*" }
contains = "Example"
json = ["$.a == 1", "$.b != 2"]
redirects = 2
max_attempts = 2
retry_interval = "5s"
tags = ["edge", "shop"]
[[check]]
name = "mail"
url = "tcp://127.0.0.1:9"
schedule = "CRON_TZ=Europe/Berlin */10 7-19 * * mon-fri"
dialogue = [{ expect = "220 *" }, { send = "QUIT\\r\\n" }]
depends_on = ["web"]
[[check]]
name = "names"
url = "dns://127.0.0.1:9/www.example.org?type=MX"
interval = "10m"
answers = ["10 mail.example.org."]
match = "any"
[[check]]
name = "steps"
interval = "10m"
[[check.step]]
url = "http://127.0.0.1:9/login"
take = { token = { json = "$.token" } }
[[check.step]]
url = "http://127.0.0.1:9/{token}"
always = true
[[group]]
name = "shop"
members = ["web", "mail"]
down_if = "1 of 2"
[[channel]]
name = "ops"
kind = "webhook"
url = "http://127.0.0.1:9/hook"
template = '{"text": "[{status}] {text}"}'
rate = "20/1m"
[[postgres]]
name = "db"
dsn = "host=127.0.0.1 port=9 user=me"
databases = ["a*"]
probes = { locks = false, activity = "10m" }
"""
"""One of each table that a file may repeat, with most of its keys. No server listens at port 9."""


async def toml(inputs, pid, file, output, text, **_):
    """Rewrite the file that an agent follows, and ask the agent to read it. Then wait for its word on it."""
    said = following(output)
    for mutant in mutants([*[OURS] * len(PIECES), *PIECES], inputs.wanted, seed=inputs.seed):
        rewrite(Path(file), text.encode() + mutant)
        os.kill(pid, signal.SIGHUP)
        with suppress(TimeoutError):
            async with asyncio.timeout(SOON):
                await told(said)
        inputs.count()


def following(output):
    """Open the agent's output, at its end."""
    opened = Path(output).open("rb")  # noqa: SIM115 - until this process ends
    opened.seek(0, os.SEEK_END)
    return opened


def rewrite(file, content):
    """Replace a file in one step, as editors do."""
    file.with_suffix(".new").write_bytes(content)
    file.with_suffix(".new").replace(file)


async def told(said):
    """Return once the agent has told what it makes of a file."""
    text = b""
    while not READ.search(text := text + said.read()):  # noqa: ASYNC110 - nobody here would set an event
        await asyncio.sleep(0.001)


async def yaml(inputs, **_):
    """Import files of other monitors, as `timerqueue import` does. No agent reads these, so this process is judged."""
    with tempfile.TemporaryDirectory() as folder:
        for monitor, content in files(inputs):
            if (defect := import_of(monitor, content, folder)) is not None:
                print(f"defect {monitor}: {defect!r:.200} in {content!r:.200}", flush=True)
            inputs.count()
            await asyncio.sleep(0)
    print(f"memory {memory(os.getpid(), 'VmHWM')}", flush=True)


def import_of(monitor, content, folder):
    """Import a file. Return the error that was raised, or None."""
    file = Path(folder, NAMES[monitor])
    file.write_bytes(content)
    try:
        check_import(monitor, file)
    except Exception as exc:  # noqa: BLE001 - that is what is looked for
        return exc
    return None


def files(inputs):
    """Yield broken files, each with its monitor: half with broken bytes, half with odd values."""
    number = max(inputs.wanted // len(FILES) // 2, 1)
    for monitor, name in FILES.items():
        whole = (SAMPLES / name).read_bytes()
        seeds = [whole, whole, whole[: len(whole) // 2], *PIECES]
        for content in mutants(seeds, number, seed=inputs.seed):
            yield monitor, content
        for content in rearranged(pyyaml.safe_load(whole), number, seed=inputs.seed):
            yield monitor, content

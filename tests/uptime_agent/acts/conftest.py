"""What the tests of acts share: a real agent with a real store, a site that goes down on request, and a receiver."""

import json
import shutil
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from agent_kit import read_head
from kit import PATIENCE, until
from timerqueue import SystemClock
from uptime_agent.app import RunPlan, run
from uptime_agent.config.config import parse_config
from uptime_agent.reload import Source

RARE = "5000d"
"""No check comes by its schedule during a test."""


class Screen:
    """A display that remembers what it is shown."""

    refresh_every = None

    def __init__(self):
        self.view = None
        self.notices = []
        self.checks = []

    def started(self, view):
        self.view = view

    def remembered(self, target):
        self.checks.append((target.name, target.status.value))

    def checked(self, target, *, is_change):
        self.checks.append((target.name, target.last.status.value))

    def missed(self, target, event):
        pass

    def notice(self, text):
        self.notices.append(text)

    def refresh(self):
        pass

    def stopped(self, summary):
        pass


class World:
    """Processes one after another, on one store and one file, and whom they tell. `down`: paths that are down."""

    def __init__(self, folder, site, hook):
        self.folder = folder
        self.site = site
        self.hook = hook
        self.down = site.down
        self.told = hook.told
        self.store = f"sqlite:///{folder}/uptime.db"
        self.more = ""
        self.lives = 0

    def text(self, *checks, head=""):
        """Write a configuration: each check is a name, perhaps with more keys."""
        lines = [
            f'store = "{self.store}"',
            head,
            "[notify]",
            "digest = false",
            self.more,
            "[[channel]]",
            'name = "ops"',
        ]
        lines += ['kind = "webhook"', f'url = "http://127.0.0.1:{self.hook.port}/"']
        for name, *keys in checks:
            lines += ["[[check]]", f'name = "{name}"', f'url = "http://127.0.0.1:{self.site.port}/{name}"']
            lines += [f'interval = "{RARE}"', *keys]
        return "\n".join([*lines, ""])

    @property
    def file(self):
        """The configuration's file."""
        return self.folder / "uptime.toml"

    def write(self, text):
        """Write the file as an editor does."""
        beside = self.folder / "uptime.new"
        beside.write_text(text)
        beside.replace(self.file)

    def dies(self):
        """Go on with the store as it lies on the disk now: the process may have died at this instant."""
        self.lives += 1
        copy = self.folder / f"uptime-{self.lives}.db"
        source = Path(self.store.removeprefix("sqlite:///"))
        for end in ("", "-wal"):
            if Path(f"{source}{end}").exists():
                shutil.copy(f"{source}{end}", f"{copy}{end}")
        self.file.write_text(self.file.read_text().replace(self.store, f"sqlite:///{copy}"))
        self.store = f"sqlite:///{copy}"

    @asynccontextmanager
    async def agent(self, text=None):
        """Run the agent until the end of the block."""
        if text is not None:
            self.write(text)
        screen = Screen()
        clock = SystemClock()
        source = Source(self.file, self._read)
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as group:

                async def live():
                    await run(self._read(), screen, RunPlan(), clock, source=source)

                group.start_soon(live)
                await until(lambda: screen.view is not None)
                yield Running(self, screen)
                screen.view.scheduler.stop(0)

    def _read(self):
        return parse_config(self.file.read_text(), str(self.file), {})

    def told_of(self, name):
        """The kinds of messages that were sent about a target. One with the same key may come twice after a death."""
        return [body["kind"] for body in {each["key"]: each for each in self.told}.values() if body["target"] == name]


class Running:
    """An agent that runs."""

    def __init__(self, world, screen):
        self.world = world
        self.screen = screen
        self.acts = screen.view.acts
        self.scheduler = screen.view.scheduler

    def target(self, name):
        """How a target stands."""
        return next(each for each in self.screen.view.targets if each.name == name)

    async def check(self, name):
        """Check a target by hand, and wait for the result. Return its status."""
        before = self.target(name).checks
        await self.acts.check_now(name, actor="ann")
        await until(lambda: self.target(name).checks > before)
        return self.target(name).last.status.value

    async def stored(self):
        """Wait until all is in the store."""
        await self.scheduler.flush()

    async def reload(self, text):
        """Change the file, and wait until it is followed."""
        self.world.write(text)
        count = len(self.screen.notices)
        await until(lambda: any("configuration read again" in each for each in self.screen.notices[count:]))


def later(**length):
    """An instant so much later."""
    return datetime.now(UTC) + timedelta(**length)


@pytest.fixture
def tomorrow():
    """A time that no test sees."""
    return later(days=1)


@pytest.fixture
async def world(tmp_path, serve, answers):
    """Make a world: its site answers, until a path is put into `down`."""
    down, told = set(), []

    async def site(server, stream):
        head = await read_head(stream)
        code = 500 if head.split()[1].strip("/") in down else 200
        await stream.send(f"HTTP/1.1 {code} X\r\nContent-Length: 0\r\n\r\n".encode())

    async def hook(server, stream):
        received = b""
        while b"\r\n\r\n" not in received:
            received += await stream.receive()
        head, _, body = received.partition(b"\r\n\r\n")
        fields = dict(line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:])
        while len(body) < int(fields["content-length"]):
            body += await stream.receive()
        found = json.loads(body)
        told.extend(found.get("messages", [found]))
        await stream.send(b"HTTP/1.1 204 X\r\nContent-Length: 0\r\n\r\n")

    sites, hooks = await serve(site), await serve(hook)
    sites.down, hooks.told = down, told
    return World(tmp_path, sites, hooks)

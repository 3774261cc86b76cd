"""The configuration changes while the agent runs: what is new is followed, what is the same is not touched."""

import io
import os

import anyio
import pytest
from rich.console import Console

from kit import PATIENCE
from timerqueue import SystemClock
from timerqueue.testing import ManualClock
from uptime_agent import app
from uptime_agent.app import RunPlan
from uptime_agent.checks.contract.result import Status
from uptime_agent.config.config import parse_config, read_config
from uptime_agent.reload import LOOK_EVERY, Reload, Source, in_short, told_of
from uptime_agent.show.table import LiveTable
from uptime_agent.targets import TargetChanges
from uptime_agent.text.redact import Redactor
from uptime_agent.toml import ConfigError

MEMORY = 'store = "memory"\n'


def check(name, port, *more):
    """Write one check of a configuration."""
    return "\n".join(
        ["[[check]]", f'name = "{name}"', f'url = "tcp://127.0.0.1:{port}"', 'interval = "50ms"', *more, ""]
    )


class Agent:
    """An agent that runs, with its file. It is a display too, which remembers what it is shown."""

    refresh_every = None

    def __init__(self, file, head=MEMORY):
        self.file = file
        self.head = head
        self.notices = []
        self.checked_so_far = []
        self.seen = anyio.Event()
        self.view = None

    def started(self, view):
        self.view = view
        self._note()

    def remembered(self, target):
        raise AssertionError("there is nothing to remember")

    def checked(self, target, *, is_change):
        self.checked_so_far.append((target.name, target.status))
        self._note()

    def missed(self, target, event):
        pass

    def notice(self, text):
        self.notices.append(text)
        self._note()

    def refresh(self):
        pass

    def stopped(self, summary):
        pass

    def read(self):
        return parse_config(self.file.read_text(), "uptime.toml", {})

    def write(self, text):
        """Write the file as an editor does: the whole of it, in the place of the old one."""
        beside = self.file.with_suffix(".new")
        beside.write_text(self.head + text)
        beside.replace(self.file)

    async def sees(self, holds):
        with anyio.fail_after(PATIENCE):
            while not holds():
                self.seen = anyio.Event()
                await self.seen.wait()

    async def says(self, part):
        await self.sees(lambda: any(part in each for each in self.notices))

    async def checks(self, name, status=Status.UP):
        """Wait until the target has been checked once more."""
        so_far = self.checked_so_far.count((name, status))
        await self.sees(lambda: self.checked_so_far.count((name, status)) > so_far)

    def names(self):
        return [each.name for each in self.view.targets]

    def _note(self):
        self.seen.set()


@pytest.fixture
async def agent(tmp_path, monkeypatch):
    """Make an agent that can be run with a configuration."""
    monkeypatch.setattr("uptime_agent.reload.LOOK_EVERY", 0.02)
    return Agent(tmp_path / "uptime.toml")


@pytest.fixture
async def server(serve, answers):
    """Start a server that accepts connections."""
    return await serve(answers.silent)


class Running:
    """The agent runs within the block."""

    def __init__(self, agent, text):
        self.agent = agent
        agent.write(text)

    async def __aenter__(self):
        self.group = anyio.create_task_group()
        await self.group.__aenter__()
        agent = self.agent
        source = Source(agent.file, agent.read)

        async def live():
            await app.run(agent.read(), agent, RunPlan(), SystemClock(), source=source, redactor=Redactor())

        self.group.start_soon(live)
        await agent.sees(lambda: agent.view is not None)
        return agent

    async def __aexit__(self, *exc):
        self.group.cancel_scope.cancel()
        await self.group.__aexit__(None, None, None)


async def test_a_target_that_is_added_is_checked(agent, server):
    """And so are the others as before."""
    async with Running(agent, check("a", server.port)):
        await agent.checks("a")
        agent.write(check("a", server.port) + check("b", server.port))
        await agent.checks("b")
        await agent.checks("a")
        await agent.says("configuration read again: 1 added (b)")
        assert agent.names() == ["a", "b"]


@pytest.mark.parametrize("how", ["removed", "disabled"])
async def test_a_target_that_is_taken_out_stops_at_once(agent, server, how):
    """Also the check that runs, here one that would wait ten seconds for an answer."""
    waiting = check("slow", server.port, 'expect = "never said"', 'timeout = "1h"')
    async with Running(agent, check("a", server.port) + waiting):
        job = agent.view.scheduler.get("slow")
        await agent.checks("a")
        agent.write(check("a", server.port) + (waiting + "enabled = false\n" if how == "disabled" else ""))
        await agent.says("1 removed (slow)")
        await agent.sees(lambda: not job.statistics().running)
        assert agent.names() == ["a"]
        assert "slow" not in agent.view.scheduler
        await agent.checks("a")


async def test_a_target_that_is_taken_out_while_down_and_comes_back_has_another_incident(agent, free_port, tmp_path):
    """Whoever was told that it is checked no more hears of it again: under a key of its own, or it would be dropped."""
    told = tmp_path / "told"
    agent.head = f"""
store = "sqlite:////{tmp_path}/uptime.db"
[[channel]]
name = "ops"
kind = "command"
command = ["/bin/sh", "-c", "echo $TIMERQUEUE_KEY >> {told}"]
"""
    keys = []

    async def tells(count):
        with anyio.fail_after(PATIENCE):
            while len(keys) < count:
                await anyio.sleep(0.02)
                keys[:] = told.read_text().splitlines() if told.exists() else []

    async with Running(agent, check("a", free_port) + check("b", free_port, "enabled = false")):
        await tells(1)
        agent.write(check("b", free_port, "enabled = false"))
        await tells(2)
        agent.write(check("a", free_port) + check("b", free_port, "enabled = false"))
        await tells(3)
        (status,) = agent.view.targets
        assert status.checks > 1  # those of before are counted
    first, gone, again = (key.split(":") for key in keys)
    assert [key[2] for key in (first, gone, again)] == ["trigger", "resolved", "trigger"]
    assert first[0] == gone[0] != again[0]


async def test_another_interval_keeps_the_targets_place_and_what_is_known_of_it(agent, server):
    """Its next start is one of the starts that its new interval would have had from the beginning."""
    async with Running(agent, check("a", server.port)):
        await agent.checks("a")
        (status,) = agent.view.targets
        before = status.checks
        agent.write(check("a", server.port).replace("50ms", "1h"))
        await agent.says("1 changed (a)")
        job = agent.view.scheduler.get("a")
        expected = agent.read().targets[0].schedule.bind("a").next(job.next_start - job.schedule.interval)
        assert job.next_start == expected
        assert agent.view.targets[0] is status
        assert status.checks >= before


async def test_another_place_is_checked_from_now_on(agent, server, free_port):
    """The state goes on: it is the same target, which is down there."""
    async with Running(agent, check("a", server.port)):
        await agent.checks("a")
        agent.write(check("a", free_port))
        await agent.checks("a", Status.DOWN)
        (status,) = agent.view.targets
        assert status.previous is not None
        assert status.counts[Status.UP]


async def test_nothing_is_touched_that_is_as_before(agent, server):
    """Neither its job nor its next start."""
    slow = check("a", server.port).replace("50ms", "1h")
    async with Running(agent, slow):
        job = agent.view.scheduler.get("a")
        before = job.next_start
        agent.write(slow + check("b", server.port))
        await agent.checks("b")
        assert agent.view.scheduler.get("a") is job
        assert job.next_start == before


async def test_a_file_that_cannot_be_used_leaves_the_old_one_running(agent, server):
    """It is told with the line that is wrong; and the next file that is right is followed."""
    async with Running(agent, check("a", server.port)):
        agent.write(check("a", server.port, 'intervall = "5s"'))
        await agent.says("the changed configuration is not used, the old one goes on: uptime.toml:")
        assert any('"interval"' in each or "'interval'" in each for each in agent.notices)
        await agent.checks("a")
        agent.write(check("b", server.port))
        await agent.checks("b")
        await agent.says("1 added (b), 1 removed (a)")


async def test_a_pipe_in_place_of_the_file_leaves_the_old_one_running(agent, server):
    """To open a pipe waits until somebody writes to it: no change was followed any more, and a stop waited for ever."""
    async with Running(agent, check("a", server.port)):
        agent.file.unlink()
        os.mkfifo(agent.file)
        await agent.says("is not used, the old one goes on: uptime.toml: it is a named pipe, and no file")
        await agent.checks("a")
        agent.write(check("b", server.port))
        await agent.checks("b")


async def test_a_pipe_in_place_of_a_secret_leaves_the_old_one_running(agent, server):
    """The same for each file that a configuration names."""
    secret = agent.file.with_name("secret")
    secret.write_text("http://127.0.0.1:1/")
    hook = '[[channel]]\nname = "ops"\nkind = "webhook"\nurl = { file = "secret" }\n'
    agent.read = lambda: read_config(agent.file, {})
    async with Running(agent, hook + check("a", server.port)):
        secret.unlink()
        os.mkfifo(secret)
        agent.write(hook + check("b", server.port))
        await agent.says("a file that can be read (it is a named pipe, and no file)")
        await agent.checks("a")


async def test_a_schedule_that_is_over_leaves_the_old_one_running(agent, server):
    """Nothing of such a file is followed."""
    over = '[[check]]\nname = "b"\nurl = "tcp://127.0.0.1:1"\nschedule = "@at 2001-01-01T00:00:00Z"\n'
    async with Running(agent, check("a", server.port)):
        agent.write(over)
        await agent.says("has no start after now")
        await agent.checks("a")
        assert agent.names() == ["a"]


async def test_limits_are_followed_and_a_host_that_is_named_no_more_is_one_of_all(agent, server):
    """Its size is that of every host then."""
    one = check("a", server.port)
    async with Running(agent, '[limits]\ntcp = 3\n"host:127.0.0.1" = 1\n' + one):
        await agent.checks("a")
        agent.write('[limits]\ntcp = 5\n"host:*" = 7\n' + one)
        await agent.says("other limits")
        await agent.checks("a")
        sizes = {name: each.size for name, each in agent.view.scheduler.statistics().limits.items()}
        assert (sizes["tcp"], sizes["host:127.0.0.1"]) == (5, 7)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("", "nothing has changed"),
        ('[[channel]]\nname = "ops"\nkind = "webhook"\nurl = "http://h"\n', "other channels"),
        ('[notify]\nreminders = "1h"\n', "other rules of notification"),
        ('[metrics]\nage = "5d"\nprobes = { wal = "2d" }\n', "other ages of metrics"),
        ('[[group]]\nname = "g"\nmembers = ["a"]\n[limits]\ntcp = 3\n', "other limits, other groups"),
    ],
)
def test_what_is_no_target_is_said_too(more, said):
    """A channel that is new is a change."""
    before, after = (parse_config(MEMORY + check("a", 1) + each, "uptime.toml", {}) for each in ("", more))
    assert list(told_of(TargetChanges(), before, after)) == [f"configuration read again: {said}"]


async def test_a_limit_that_a_new_file_leaves_out_is_the_default_again(agent, server):
    """Not the last one that was named."""
    one = check("a", server.port)
    async with Running(agent, "[limits]\ntcp = 3\n" + one):
        await agent.checks("a")
        agent.write(one)
        await agent.says("other limits")
        assert agent.view.scheduler.statistics().limits["tcp"].size == 200


async def test_a_check_that_waits_runs_as_soon_as_a_new_file_has_room_for_it(agent, server):
    """What takes the room meanwhile goes on."""
    slow = check("slow", server.port, 'expect = "never said"', 'timeout = "1h"', 'start = "now"')
    both = slow + check("a", server.port)
    async with Running(agent, "[limits]\ntcp = 1\n" + slow):
        await server.connected.wait()
        agent.write("[limits]\ntcp = 1\n" + both)
        await agent.says("1 added (a)")
        agent.write("[limits]\ntcp = 2\n" + both)
        await agent.checks("a")
        assert "slow" not in [name for name, _ in agent.checked_so_far]


def test_a_notice_about_a_file_ends_no_line_within_a_word(tmp_path):
    """In a terminal of eighty columns, however long the path is."""
    file = tmp_path.joinpath(*["a-rather-long-folder"] * 5, "uptime.toml")
    with pytest.raises(ConfigError) as caught:
        parse_config("intervall = 5", str(file), {})
    stream = io.StringIO()
    LiveTable(Console(file=stream, width=80, height=24, color_system=None)).notice(in_short(caught.value, file))
    told = "uptime.toml:1: unknown key 'intervall'"
    assert told in " ".join(stream.getvalue().split())


def test_what_needs_a_new_start_is_said():
    """A store cannot be changed under a scheduler that runs."""
    one = check("a", 1)
    before = parse_config(MEMORY + one, "uptime.toml", {})
    after = parse_config('store = "sqlite:///other.db"\n[history]\nage = "5d"\n' + one, "uptime.toml", {})
    assert list(told_of(TargetChanges(), before, after)) == [
        "store has changed in the configuration: that takes effect when the agent starts again",
        "[history] has changed in the configuration: that takes effect when the agent starts again",
    ]


def test_where_metrics_are_kept_needs_a_new_start_and_for_how_long_does_not():
    """Though both stand in one table."""
    one = check("a", 1)
    before = parse_config(MEMORY + one, "uptime.toml", {})
    after = parse_config(MEMORY + '[metrics]\nsize = "2 GiB"\nage = "5d"\n' + one, "uptime.toml", {})
    assert list(told_of(TargetChanges(), before, after)) == [
        "configuration read again: other ages of metrics",
        "[metrics] has changed in the configuration: that takes effect when the agent starts again",
    ]


class Following:
    """A source that is read, by the turn of a clock."""

    def __init__(self, file):
        self.file = file
        self.clock = ManualClock()
        self.followed = []
        self.notices = []
        self.reads = 0
        self.reload = Reload(Source(file, self._read), self.clock, self._follow, self.notices.append)

    def _read(self):
        self.reads += 1
        return read_config(self.file, {})

    async def _follow(self, config):
        self.followed.append([each.name for each in config.targets])

    async def turn(self, looks):
        for _ in range(looks):
            await self.clock.travel(LOOK_EVERY)
            await anyio.wait_all_tasks_blocked()


@pytest.fixture
async def following(tmp_path):
    """Follow a file while the test runs."""
    file = tmp_path / "uptime.toml"
    file.write_text(MEMORY + check("a", 1))
    found = Following(file)
    async with anyio.create_task_group() as group:
        group.start_soon(found.reload.run)
        await anyio.wait_all_tasks_blocked()
        yield found
        group.cancel_scope.cancel()


async def sees(following, holds):
    with anyio.fail_after(PATIENCE):
        while not holds():  # it is read in a thread
            await following.turn(1)
            await anyio.sleep(0.001)


async def test_half_a_file_is_not_read(following):
    """Of a file that grows at each look nothing is read before it stays the same."""
    text = MEMORY + check("a", 1) + check("b", 1)
    with following.file.open("w") as opened:
        for at in range(0, len(text), 20):
            opened.write(text[at : at + 20])
            opened.flush()
            await following.turn(1)
            await anyio.sleep(0.005)
            assert following.reads == 0
    await sees(following, lambda: following.followed == [["a", "b"]])
    assert following.notices == []


async def test_whoever_asks_gets_it_read_though_it_looks_the_same(following):
    """That is what SIGHUP is for: a variable or a certificate beside the file may have changed."""
    following.reload.ask()
    await sees(following, lambda: following.followed == [["a"]])
    await following.turn(4)
    assert following.reads == 1


async def test_a_file_that_is_gone_is_told_and_read_when_it_is_back(following):
    """Until then all goes on."""
    text = following.file.read_text()
    following.file.unlink()

    await sees(following, lambda: following.reads == 1 or following.notices)
    following.file.write_text(text + check("b", 1))
    await sees(following, lambda: following.followed == [["a", "b"]])

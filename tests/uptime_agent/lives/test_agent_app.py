"""The agent put together, on both backends: jobs, limits, results, the end."""

import gc
from collections import Counter

import anyio
import pytest

from kit import PATIENCE, until
from timerqueue import SystemClock
from timerqueue.testing import ManualClock
from uptime_agent.app import RunPlan, run
from uptime_agent.checks.contract.result import Status
from uptime_agent.config.config import parse_config


class Recorder:
    """A display that remembers, and says when it has seen enough."""

    refresh_every = 0.001

    def __init__(self):
        self.checks = []
        self.notices = []
        self.view = None
        self.summary = None
        self.refreshes = 0
        self.is_down = anyio.Event()

    def started(self, view):
        self.view = view

    def remembered(self, target):
        raise AssertionError("there is nothing to remember")

    def checked(self, target, *, is_change):
        self.checks.append((target.name, target.status, is_change))
        if target.status is Status.DOWN:
            self.is_down.set()

    def missed(self, target, event):
        self.notices.append(event)

    def notice(self, text):
        self.notices.append(text)

    def refresh(self):
        self.refreshes += 1

    def stopped(self, summary):
        self.summary = summary


async def run_agent(text, plan, display):
    """Run the agent with a configuration of that text, in memory."""
    config = parse_config('store = "memory"\n' + text, "uptime.toml", {})
    with anyio.fail_after(PATIENCE):
        return await run(config, display, plan, SystemClock())


def targets(port, count, kind="http", **options):
    """Write so many targets on one server."""
    lines = "\n".join(f"{name} = {value!r}" for name, value in options.items())
    return "\n".join(f'[[check]]\nname = "{n}"\nurl = "{kind}://127.0.0.1:{port}"\n{lines}' for n in range(count))


async def test_garbage_collections_do_not_look_at_what_is_loaded(serve, answers):
    """Targets and modules are frozen while the agent runs, and new objects looked at seldom. Then all is as it was."""

    class Watching(Recorder):
        def checked(self, target, *, is_change):
            self.collector = gc.get_freeze_count(), gc.get_threshold()

    server = await serve(answers.respond())
    display, found = Watching(), (gc.get_freeze_count(), gc.get_threshold())
    await run_agent(targets(server.port, 1), RunPlan(once=True), display)
    frozen, thresholds = display.collector
    assert frozen > 1_000
    assert thresholds > found[1]
    assert gc.get_freeze_count() <= found[0]  # Python 3.12 has some hundred frozen itself, and they may be let go too
    assert gc.get_threshold() == found[1]


async def test_each_check_runs_once(serve, answers):
    """Its results reach the display, and the exit code is 0 because all is well."""
    server = await serve(answers.respond())
    display = Recorder()
    code = await run_agent(targets(server.port, 3), RunPlan(once=True), display)
    assert code == 0
    assert sorted(display.checks) == [("0", Status.UP, True), ("1", Status.UP, True), ("2", Status.UP, True)]
    assert (display.summary.checks, display.summary.targets) == (3, {Status.UP: 3})


async def test_a_check_whose_target_goes_down_tells_the_change(serve, answers):
    """First up, then down, on its schedule."""
    good, bad = answers.respond(), answers.respond(500)

    async def once_good(server, stream):
        await (good if server.connections == 1 else bad)(server, stream)

    server = await serve(once_good)
    display = Recorder()
    async with anyio.create_task_group() as group:
        group.start_soon(run_agent, targets(server.port, 1, interval="20ms"), RunPlan(), display)
        with anyio.fail_after(PATIENCE):
            await display.is_down.wait()
        group.cancel_scope.cancel()
    assert display.checks[:2] == [("0", Status.UP, True), ("0", Status.DOWN, True)]
    assert display.refreshes > 0


@pytest.mark.parametrize("channel", ["", '[[channel]]\nname = "ops"\nkind = "command"\ncommand = ["/bin/true"]'])
async def test_once_says_that_it_tells_no_channel(up, channel):
    """Whoever counts on being told would wait in vain."""
    display = Recorder()
    await run_agent(targets(up.port, 1) + "\n" + channel, RunPlan(once=True), display)
    assert any("no channel is told" in each for each in display.notices) is bool(channel)


async def test_a_disabled_check_does_not_run(serve, answers):
    """It is not even shown."""
    server = await serve(answers.respond())
    display = Recorder()
    text = targets(server.port, 1) + f'\n[[check]]\nurl = "tcp://127.0.0.1:{server.port}"\nenabled = false'
    await run_agent(text, RunPlan(once=True), display)
    assert [target.name for target in display.view.targets] == ["0"]
    assert server.connections == 1


@pytest.mark.parametrize("limit", ["total", "http", '"host:*"', '"host:127.0.0.1"'])
async def test_a_limit_holds_checks_back(serve, answers, limit):
    """Never more at a time than it says, whichever it is; all have their turn."""
    server = await serve(answers.respond())
    display = Recorder()
    await run_agent(targets(server.port, 6) + f"\n[limits]\n{limit} = 1", RunPlan(once=True), display)
    assert (server.most_open, server.connections, len(display.checks)) == (1, 6, 6)


async def test_a_limit_counts_the_addresses_of_a_target_and_not_the_target(serve, answers):
    """Each address is a connection: under a limit of one they come one after another, and the place is free again."""
    server = await serve(answers.respond(), host="0.0.0.0")
    display = Recorder()
    checks = targets(server.port, 2).replace("127.0.0.1", "web.test")
    text = f"""
        [limits]
        http = 1
        [hosts]
        "web.test" = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
        [defaults]
        mode = "all"
        {checks}
    """
    await run_agent(text, RunPlan(once=True), display)
    assert (server.most_open, server.connections) == (1, 6)
    assert [(status, is_change) for _, status, is_change in display.checks] == [(Status.UP, True)] * 2
    assert display.view.scheduler.statistics().limits["http"].used == 0


async def test_a_full_host_holds_up_no_other(serve, answers):
    """A target that hangs keeps its own host's place only."""
    stuck = await serve(answers.silent, host="127.0.0.2")
    well = await serve(answers.respond())
    display = Recorder()
    text = f"""
        [limits]
        "host:*" = 1
        [[check]]
        name = "stuck"
        url = "http://127.0.0.2:{stuck.port}"
        timeout = "1h"
        [[check]]
        name = "behind it"
        url = "http://127.0.0.2:{stuck.port}/2"
        [[check]]
        name = "well"
        url = "http://127.0.0.1:{well.port}"
    """
    async with anyio.create_task_group() as group:
        group.start_soon(run_agent, text, RunPlan(once=True), display)
        await until(lambda: display.checks)
        group.cancel_scope.cancel()
    assert display.checks == [("well", Status.UP, True)]


@pytest.mark.parametrize("mode", ["any", "all"])
async def test_the_limit_of_a_host_holds_for_those_that_are_redirected_to_it(serve, answers, mode):
    """Six targets lead to one host of one place. Each has its turn there, and its report in the end."""

    async def slow(server, stream):
        await anyio.sleep(0.01)
        await answers.respond()(server, stream)

    end = await serve(slow)
    start = await serve(answers.respond(302, headers=[f"Location: http://end.test:{end.port}/"]))
    checks = "\n".join(
        f'[[check]]\nurl = "http://start.test:{start.port}/{number}"\nredirects = 1\nmode = "{mode}"\n'
        'redirect_targets = "any"'
        for number in range(6)
    )
    display = Recorder()
    text = f'[limits]\n"host:end.test" = 1\n[hosts]\n"start.test" = "127.0.0.1"\n"end.test" = "127.0.0.1"\n{checks}'
    code = await run_agent(text, RunPlan(once=True), display)
    assert (code, [status for _, status, _ in display.checks]) == (0, [Status.UP] * 6)
    assert (end.most_open, end.connections) == (1, 6)


@pytest.mark.slow
async def test_where_there_is_too_little_room_each_check_has_its_turn(serve, answers, monkeypatch):
    """Late, but none is left out for ever."""
    monkeypatch.setattr("uptime_agent.targets.jobs.SHORTEST_GRACE", 0.01)

    async def slow(server, stream):
        await anyio.sleep(0.1)
        await answers.respond()(server, stream)

    server = await serve(slow)
    display = Recorder()
    text = targets(server.port, 8, interval="200ms") + "\n[limits]\ntotal = 1"
    async with anyio.create_task_group() as group:
        group.start_soon(run_agent, text, RunPlan(), display)
        await until(lambda: len(display.checks) > 32)
        group.cancel_scope.cancel()
    counts = Counter(name for name, *_ in display.checks)
    assert len(counts) == 8
    assert max(counts.values()) <= 2 * min(counts.values())


async def test_the_time_is_up(serve, answers):
    """A run for so many seconds ends by itself with 0, although something is down."""
    server = await serve(answers.respond(500))
    display, clock, codes = Recorder(), ManualClock(), []
    config = parse_config('store = "memory"\n' + targets(server.port, 1, start="now"), "uptime.toml", {})

    async def agent():
        codes.append(await run(config, display, RunPlan(seconds=30), clock))

    async with anyio.create_task_group() as group:
        group.start_soon(agent)
        await until(lambda: display.checks)
        await clock.travel(29)
        assert display.summary is None
        await clock.travel(2)
        await until(lambda: codes)
    assert codes == [0]
    assert display.summary.targets == {Status.DOWN: 1}


async def test_warnings_are_shown():
    """Before anything else happens."""
    display = Recorder()
    config = parse_config('store = "memory"\n[[check]]\nurl = "tcp://127.0.0.1:1"', "f", {"TIMERQUEUE_LIMIT_TCP": "x"})
    assert await run(config, display, RunPlan(once=True), SystemClock()) == 1
    assert "TIMERQUEUE_LIMIT_TCP" in display.notices[0]

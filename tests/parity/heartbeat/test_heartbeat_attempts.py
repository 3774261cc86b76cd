"""What Heartbeat's tests say of a monitor's attempts, said of a target's, with real servers."""

import io
import json
from types import SimpleNamespace

import pytest

from kit import when
from scheduler import Outcome, RunEnded
from timerqueue import SystemClock
from uptime_agent.app import RunPlan, run
from uptime_agent.checks import PORTS
from uptime_agent.checks.contract.result import Status
from uptime_agent.checks.http.http_check import HttpCheck
from uptime_agent.checks.net.resolve import Unresolved
from uptime_agent.checks.target_check import Mode
from uptime_agent.config.config import parse_config
from uptime_agent.show.lines import JsonLines
from uptime_agent.standing.flapping import THRESHOLD, TargetStanding, after
from uptime_agent.standing.status import TargetStatus, fold
from uptime_agent.text.url import parse_url

RESULT = {"u": TargetStanding.UP, "d": TargetStanding.DOWN}


@pytest.fixture
def answering(serve, answers):
    """Start a server that is up or down by the letters of a series, one a request, and by the last from then on."""

    async def start(series):
        async def handler(server, stream):
            is_up = series[min(server.connections, len(series)) - 1] == "u"
            await answers.respond(200 if is_up else 500)(server, stream)

        return await serve(handler)

    return start


def http(port, host="127.0.0.1"):
    """Make a check of a server on this machine."""
    return HttpCheck(url=parse_url(f"http://{host}:{port}/", PORTS))


def recorded(target, *results):
    """Record a run with such results; return its verdict."""
    verdict = fold(results)
    target.record(
        verdict, RunEnded("api", when(0.0), when(0.0), when(1.0), 1, 0.0, 0.0, Outcome.SUCCEEDED, None, None, results)
    )
    return verdict


async def series_of_attempts(target_check, server, target, requests):
    """Run until there were so many requests; return the number of the last attempt of each run, and its status."""
    tried = target_check(http(server.port), attempts=target.attempts)
    found = []
    while server.connections < requests:
        verdict = recorded(target, await tried.run())
        found.append((verdict.attempt, verdict.status.value[0]))
    return found


@pytest.mark.parametrize(
    ("most", "series", "runs"),
    [
        (2, "duu", [(2, "u"), (1, "u")]),
        (2, "dddd", [(2, "d"), (1, "d"), (1, "d")]),
        (2, "uuuduu", [(1, "u"), (1, "u"), (1, "u"), (2, "u"), (1, "u")]),
        (2, "uuuddduuu", [(1, "u")] * 3 + [(2, "d"), (1, "d"), (1, "u"), (1, "u"), (1, "u")]),
        (3, "ddduu", [(3, "d"), (1, "u"), (1, "u")]),
        (3, "dduu", [(3, "u"), (1, "u")]),
        (1, "duu", [(1, "d"), (1, "u"), (1, "u")]),
        (1, "uuuduu", [(1, "u")] * 3 + [(1, "d"), (1, "u"), (1, "u")]),
    ],
)
async def test_heartbeat_attempts_by_series(answering, target_check, most, series, runs):
    """What is down is tried again at once in the same run, unless it was known to be down."""
    server = await answering(series)
    target = TargetStatus("api", "http://h", "http", most)
    assert await series_of_attempts(target_check, server, target, len(series)) == runs
    assert server.connections == len(series)


@pytest.mark.parametrize(
    ("series", "attempts", "statuses"), [("duu", [1, 2, 1], "duu"), ("dddd", [1, 2, 1, 1], "dddd")]
)
def test_heartbeat_attempts_and_states_of_two_at_most(series, attempts, statuses):
    """Each attempt by itself, without flapping: the first opens a state even if it is not final."""
    state, number, found = None, 0, []
    for letter in series:
        if number == 0:
            most = TargetStatus("api", "http://h", "http", 2, state).attempts()
        number += 1
        is_final = letter == "u" or number >= most
        state = after(state, RESULT[letter], 0.0, name="api", threshold=0, is_final=is_final)
        found.append((number, state.status.value[0]))
        number = 0 if is_final else number
    assert found == list(zip(attempts, statuses, strict=True))


async def test_heartbeat_attempts_a_transient_failure_leaves_the_state_up(answering, target_check):
    """The attempt that failed is counted all the same."""
    server = await answering("uuudu")
    target = TargetStatus("api", "http://h", "http", 2)
    await series_of_attempts(target_check, server, target, 5)
    state = target.state
    assert (state.status.value, state.number, state.checks, state.up, state.down) == ("up", 0, 5, 4, 1)
    assert (target.status, target.changes) == (Status.UP, 0)


async def test_heartbeat_attempts_a_flapping_target_is_not_tried_again(answering, target_check):
    """Only one that was up, or of which nothing is known, is."""
    server = await answering("uddd")
    target = TargetStatus("api", "http://h", "http", 2)
    found = await series_of_attempts(target_check, server, target, 4)
    assert found == [(1, "u"), (2, "d"), (1, "d")]
    assert target.state.checks > THRESHOLD


async def test_heartbeat_attempts_the_duration_is_that_of_the_last(serve, answers, target_check):
    """A first attempt that takes long does not make the second slow."""
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now, wall=lambda: clock.now)

    async def handler(server, stream):
        clock.now += 5.0 if server.connections == 1 else 0.25
        await answers.respond(500 if server.connections == 1 else 200)(server, stream)

    server = await serve(handler)
    result = await target_check(http(server.port), clock=clock, attempts=lambda: 2, degraded_above=1.0).run()
    assert (result.status, result.attempt, result.latency) == (Status.UP, 2, 0.25)


@pytest.mark.parametrize(("series", "attempts"), [("du", 2), ("u", 1)])
async def test_heartbeat_attempts_of_all_addresses_are_of_each(answering, target_check, series, attempts):
    """An address that is down is tried again; the target as a whole was, if all of them were."""
    server = await answering(series)
    hosts = {"web": ("127.0.0.1", "127.0.0.2")}  # nobody listens at the second
    subtasks = await target_check(http(server.port, "web"), hosts=hosts, mode=Mode.ALL, attempts=lambda: 2).run()
    results = [await each.func(*each.args) for each in subtasks]
    assert [(each.attempt, each.status) for each in results] == [(attempts, Status.UP), (2, Status.DOWN)]
    assert (fold(results).attempt, fold(results).status) == (attempts, Status.DEGRADED)


async def test_heartbeat_attempts_are_shown_by_the_agent(answering):
    """The whole agent: the lines say which attempt it was, of how many."""
    server = await answering("du")
    config = parse_config(
        f'store = "memory"\n[defaults]\nmax_attempts = 2\n[[check]]\nname = "api"\nurl = "http://127.0.0.1:{server.port}"',
        "f.toml",
        {},
    )
    stream, clock = io.StringIO(), SystemClock()
    code = await run(config, JsonLines(stream, clock.wall), RunPlan(once=True), clock)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    (check,) = (line for line in lines if line["event"] == "check")
    assert (code, check["status"], check["attempt"], check["max_attempts"]) == (0, "up", 2, 2)
    assert [each["attempt"] for each in check["results"]] == [2]


async def test_heartbeat_attempts_of_all_addresses_go_on_from_that_of_their_lookup(answering, target_check):
    """A lookup that failed was an attempt of each address."""
    server = await answering("d")
    lookups = [Unresolved(Status.DOWN, "there is no such name"), ["127.0.0.1"]]

    async def addresses(host, family):
        found = lookups.pop(0)
        if isinstance(found, Unresolved):
            raise found
        return found

    resolver = SimpleNamespace(known=lambda *_: None, addresses=addresses, why_late=lambda _host: "")
    tried = target_check(http(server.port, "web"), resolver=resolver, mode=Mode.ALL, attempts=lambda: 3)
    (subtask,) = await tried.run()
    result = await subtask.func(*subtask.args)
    assert (result.attempt, result.status, server.connections) == (3, Status.DOWN, 2)

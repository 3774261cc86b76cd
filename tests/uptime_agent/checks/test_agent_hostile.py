"""Hostile servers on real sockets, in another process: each check of them comes to an end, in words of ours."""

import subprocess
import sys
from pathlib import Path

import anyio
import pytest

import hostile_servers
from kit import PATIENCE, needs_re2
from uptime_agent.checks import BY_SCHEME, Resolver, Status, prepared, reach
from uptime_agent.checks.net.lookups import SystemLookup
from uptime_agent.config.config import parse_config
from uptime_agent.text.url import parse_url

NAMES = [each.__name__ for each in hostile_servers.MALICE]
LOOPBACK = ["127.0.0.1"]
"""Nothing else may be dialled, wherever a server sends us."""


@pytest.fixture(scope="module")
def ports():
    """Start them; their ports by name."""
    program = [sys.executable, str(Path(hostile_servers.__file__)), "hostile"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield {name: int(process.stdout.readline()) for name in NAMES}
        process.stdin.close()
        process.wait(PATIENCE)


def make(scheme, port, **options):
    """Make a check of options as the configuration has them."""
    kind = BY_SCHEME[scheme]
    read = {key: kind.options[key](value) for key, value in options.items()}
    return kind.make(url=parse_url(f"{scheme}://127.0.0.1:{port}", kind.schemes), **read)


async def ended(check):
    """Run it to its end, through its subtasks."""
    with anyio.fail_after(PATIENCE):
        found = await check.run()
        while isinstance(found, list):
            found = await found[0].func(*found[0].args)
    return found


def bounded():
    """A resolver that gives out nothing but this machine."""
    return Resolver({}, SystemLookup(), reach(LOOPBACK))


EXPECTATIONS = {
    "nothing": {},
    "all": {"contains": "no such", "not_contains": "such", "json": "$.a", "regex": "(a+)+$", "redirects": 5},
    "json": {"json": "$.a == 1", "redirects": 1},
    "regex": {"regex": "(a+)+b$", "redirect_targets": "any", "redirects": 5},
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "expected",
    [pytest.param(name, marks=[needs_re2] if "regex" in each else []) for name, each in EXPECTATIONS.items()],
)
async def test_an_http_check_comes_to_an_end(name, expected, ports, target_check):
    """It is down in printable words, or up where nothing was expected; nothing is raised."""
    made = make("http", ports[name], **EXPECTATIONS[expected])
    result = await ended(target_check(made, timeout=0.5, resolver=bounded()))
    assert result.error is None or (result.error.isprintable() and len(result.error) <= 300)
    if expected != "nothing":
        assert result.status is not Status.UP
    assert (result.status is Status.UP) is (result.error is None)


@pytest.mark.parametrize("name", NAMES)
async def test_a_handshake_comes_to_an_end(name, ports, target_check):
    """Whatever is on the other side, none of them speaks TLS."""
    result = await ended(target_check(make("tls", ports[name], verify=False), timeout=0.5, resolver=bounded()))
    assert result.status is Status.DOWN
    assert result.error.isprintable()


@pytest.mark.parametrize("name", NAMES)
async def test_steps_come_to_an_end(name, ports, target_check):
    """The clean-up is tried all the same."""
    url = f"http://127.0.0.1:{ports[name]}/"
    target = parse_config(
        f"""
        [[check]]
        name = "x"
        [[check.step]]
        name = "first"
        url = "{url}"
        take = {{ token = {{ json = "$.token" }} }}
        [[check.step]]
        name = "last"
        url = "{url}"
        timeout = 0.3
        always = true
        """,
        "uptime.toml",
        {},
    ).targets[0]
    made = target_check(target.check, timeout=0.3, resolver=bounded(), needs_at=target.needs_at)
    result = await ended(prepared(made))
    assert result.status is not Status.UP
    assert result.error.startswith("step first: ")
    assert result.error.isprintable()


@pytest.mark.parametrize("name", ["into_our_network", "into_our_network_in_disguise", "into_this_machine_by_number"])
async def test_a_redirect_into_our_network_is_refused_by_default(name, ports, target_check):
    """The agent dials neither the metadata service of a cloud nor, by another notation, this machine."""
    made = make("http", ports[name], redirects=1)
    options = {"resolver": Resolver({}, SystemLookup())}
    result = await ended(target_check(made, timeout=5.0, **options))
    assert result.status is Status.DOWN
    assert 'which redirect_targets = "public" does not allow' in result.error

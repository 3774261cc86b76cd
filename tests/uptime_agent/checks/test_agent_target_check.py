"""One run of a check: which addresses it asks, when it gives up, and whose trouble an error is."""

import errno
import subprocess
import sys
import textwrap

import anyio
import pytest
from attrs import frozen

from kit import PATIENCE
from scheduler import Scheduler, Subtask
from uptime_agent.checks.contract.result import Finding, Status
from uptime_agent.checks.kinds import BY_SCHEME
from uptime_agent.checks.net.resolve import Family
from uptime_agent.checks.target_check import MOST_ADDRESSES, Mode
from uptime_agent.standing.report import verdict_of
from uptime_agent.standing.status import fold
from uptime_agent.text import Redactor
from uptime_agent.text.url import Url, parse_url


def tcp(port, host="many.test", **options):
    """Make a TCP check."""
    return BY_SCHEME["tcp"].make(url=parse_url(f"tcp://{host}:{port}", {"tcp": None}), **options)


def many(*addresses):
    """Give one name these addresses."""
    return {"many.test": addresses}


async def test_any_takes_the_first_address(serve, answers, target_check):
    """The second is not asked if the first answers."""
    server = await serve(answers.closing)
    result = await target_check(tcp(server.port), hosts=many("127.0.0.1", "127.0.0.2")).run()
    assert (result.status, result.address) == (Status.UP, "127.0.0.1")
    assert list(result.phases) == ["dns", "connect"]


async def test_any_tries_the_next_address(serve, answers, target_check):
    """One that refuses costs nothing but a moment."""
    server = await serve(answers.closing, host="127.0.0.3")
    result = await target_check(tcp(server.port), hosts=many("127.0.0.1", "127.0.0.2", "127.0.0.3")).run()
    assert (result.status, result.address) == (Status.UP, "127.0.0.3")


async def test_any_is_down_when_no_address_answers(target_check, free_port):
    """The error is that of an address, not of the last attempt to find another."""
    result = await target_check(tcp(free_port), hosts=many("127.0.0.1", "127.0.0.2")).run()
    assert (result.status, result.error) == (Status.DOWN, f"connection refused by 127.0.0.1:{free_port}")


async def test_an_address_that_answers_wrongly_has_answered(serve, answers, target_check):
    """Another address is no remedy for a wrong answer."""
    wrong = await serve(answers.closing)
    right = await serve(answers.echo, host="127.0.0.2", port=wrong.port)
    check = tcp(wrong.port, send="hello", expect="hello")
    result = await target_check(check, hosts=many("127.0.0.1", "127.0.0.2")).run()
    assert (result.status, result.address) == (Status.DOWN, "127.0.0.1")
    assert right.connections == 0


@pytest.mark.parametrize(
    ("up", "expected", "error"),
    [
        (("127.0.0.1", "127.0.0.2", "127.0.0.3"), Status.UP, None),
        (("127.0.0.1", "127.0.0.3"), Status.DEGRADED, "1 of 3 addresses: connection refused by 127.0.0.2:{port}"),
        ((), Status.DOWN, "3 of 3 addresses: connection refused by 127.0.0.1:{port}"),
    ],
)
async def test_all_asks_every_address(serve, answers, target_check, free_port, up, expected, error):
    """Each is a subtask of its own under the same limits; together they make the verdict."""
    for host in up:
        await serve(answers.closing, host=host, port=free_port)
    hosts = many("127.0.0.1", "127.0.0.2", "127.0.0.3")
    scheduler = Scheduler(limits={"tcp": 1})
    job = target_check(tcp(free_port), hosts=hosts, mode=Mode.ALL, needs=("tcp",))
    scheduler.add(job.run, "@every 1h", id="many", needs=job.needs)
    verdict = fold((await scheduler.run_once())["many"].results)
    assert verdict.status is expected
    assert verdict.error == (error and error.format(port=free_port))
    assert sorted(result.address for result in verdict.results) == list(hosts["many.test"])


async def test_all_has_a_cap_that_shows(target_check):
    """A name with a thousand addresses does not make a thousand checks, and says how many it left out."""
    hosts = many(*(f"127.0.1.{number}" for number in range(1, MOST_ADDRESSES + 3)))
    subtasks = await target_check(tcp(1), hosts=hosts, mode=Mode.ALL).run()
    assert len(subtasks) == MOST_ADDRESSES
    assert all(isinstance(subtask, Subtask) for subtask in subtasks)
    result = await subtasks[0].func(*subtasks[0].args)
    assert result.detail["addresses_left_out"] == 2


async def test_the_family_filters_addresses(serve, answers, target_check):
    """Asked for IPv4 alone it does not try the other first; without any left it is down."""
    server = await serve(answers.closing)
    hosts = many("::1", "127.0.0.1")
    result = await target_check(tcp(server.port), hosts=hosts, family=Family.V4).run()
    assert result.address == "127.0.0.1"
    result = await target_check(tcp(server.port), hosts=many("127.0.0.1"), family=Family.V6).run()
    assert (result.status, result.error) == (Status.DOWN, "many.test has no IPv6 address, only 127.0.0.1")


async def test_an_address_needs_no_lookup(serve, answers, target_check):
    """There is no phase for what did not happen."""
    server = await serve(answers.closing)
    result = await target_check(tcp(server.port, "127.0.0.1")).run()
    assert list(result.phases) == ["connect"]


async def test_silence_ends_with_the_timeout(serve, answers, target_check):
    """The error says what it waited for, and the phases before it have been measured."""
    server = await serve(answers.silent)
    result = await target_check(tcp(server.port, expect="hello"), hosts=many("127.0.0.1"), timeout=0.05).run()
    assert result.status is Status.DOWN
    assert result.error == f"no answer from 127.0.0.1:{server.port} within 0.05 s (receive)"
    assert list(result.phases) == ["dns", "connect"]
    assert result.latency >= 0.04  # the time for the lookup is not in it


async def test_a_lookup_that_takes_too_long_says_nothing_about_the_target(target_check):
    """We do not know: the server was never asked."""

    async def lookup(host):
        await anyio.sleep_forever()

    result = await target_check(tcp(1), lookup=lookup, timeout=0.05).run()
    assert (result.status, result.error) == (Status.UNKNOWN, "cannot look up many.test in 0.05 s")


async def test_a_slow_answer_is_degraded(serve, answers, target_check):
    """It is up, but above the threshold."""
    server = await serve(answers.closing)
    result = await target_check(tcp(server.port), hosts=many("127.0.0.1"), degraded_above=1e-6).run()
    assert result.status is Status.DEGRADED
    assert result.error.endswith("more than 0.0 ms")


async def test_a_defect_of_a_check_is_not_taken_for_an_answer(target_check):
    """It fails the run, with its traceback, and the target is not called down for it."""

    class Broken:
        url = parse_url("tcp://127.0.0.1:1", {"tcp": None})
        secrets = frozenset()

        async def attempt(self, at):
            raise ZeroDivisionError

    scheduler = Scheduler()
    scheduler.add(target_check(Broken()).run, "@every 1h", id="broken")
    verdict = verdict_of((await scheduler.run_once())["broken"])
    assert verdict.status is Status.UNKNOWN
    assert "ZeroDivisionError" in verdict.error


async def test_no_route_is_our_own_trouble(target_check):
    """An address for which this machine has no route says nothing about the target."""

    class Unreachable:
        url = parse_url("tcp://127.0.0.1:1", {"tcp": None})
        secrets = frozenset()

        async def attempt(self, at):
            raise OSError(errno.ENETUNREACH, "Network is unreachable")

    result = await target_check(Unreachable()).run()
    assert (result.status, result.error) == (Status.UNKNOWN, "this machine has no route to 127.0.0.1:1")


OUT_OF_DESCRIPTORS = """
    import os, resource, sys
    import anyio
    from uptime_agent.checks import BY_SCHEME, PORTS, Family, Mode, TargetCheck, Resolver
    from uptime_agent.text import Redactor, parse_url
    from timerqueue import SystemClock

    async def main(text):
        url = parse_url(text, PORTS)
        check = BY_SCHEME[url.scheme].make(url=url)
        target_check = TargetCheck(check=check, needs=(), timeout=10, mode=Mode.ANY, family=Family.ANY,
                                   degraded_above=None, resolver=Resolver(), clock=SystemClock(), redactor=Redactor())
        await target_check.run()  # loads what is loaded when first needed
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        held = []
        try:
            while True:
                held.append(os.dup(2))
        except OSError:
            pass
        result = await target_check.run()
        print(result.status.value, result.error)

    anyio.run(main, sys.argv[1], backend=sys.argv[2])
"""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("url", ["tcp://127.0.0.1:1", "http://127.0.0.1:1", "tcp://localhost:1"])
def test_a_machine_without_descriptors_does_not_call_others_down(url, backend):
    """It ran out itself, and says so."""
    program = [sys.executable, "-c", textwrap.dedent(OUT_OF_DESCRIPTORS), url, backend]
    done = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.stdout.startswith("unknown this machine ran out of file descriptors"), done.stdout + done.stderr


def test_no_result_at_all_is_unknown():
    """There is nothing to fold."""
    assert fold([]).status is Status.UNKNOWN


@frozen(kw_only=True)
class Repeating:
    """A check of a target that repeats what it hears, and that has no need of the network."""

    url: Url
    said: str
    secrets = frozenset()

    async def attempt(self, at):
        return Finding(status=Status.DOWN, error=f"it says {self.said}", detail={"says": self.said, "bytes": 7})


async def test_what_a_check_found_has_no_secret_in_its_detail_either(target_check):
    """Names of DNS and texts of certificates are of the target's choosing. Numbers stay what they are."""
    check = Repeating(url=parse_url("tcp://127.0.0.1:1", {"tcp": None}), said="hunter2 is it")
    result = await target_check(check, redactor=Redactor(["hunter2"])).run()
    assert (result.error, result.detail) == ("it says *** is it", {"says": "*** is it", "bytes": 7})

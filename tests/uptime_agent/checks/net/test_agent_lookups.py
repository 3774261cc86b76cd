"""Lookups that hang: how many threads they take, and that others are not hurt."""

import socket
import threading
from contextlib import suppress

import anyio
import anyio.lowlevel
import pytest

from kit import PATIENCE
from uptime_agent.checks.contract.result import Status
from uptime_agent.checks.kinds import BY_SCHEME
from uptime_agent.checks.net import lookups
from uptime_agent.checks.net.lookups import PLACES, PLACES_OF_PROVEN, NotLookedUp, SystemLookup
from uptime_agent.checks.net.resolve import Resolver, Unresolved
from uptime_agent.text.url import parse_url


class Names:
    """What blocks: names that begin with "hung" do until they are let go."""

    def __init__(self):
        self.asked = []
        self.running = 0
        self.most_running = 0
        self._lock = threading.Lock()
        self._let_go = threading.Event()

    def __call__(self, host):
        with self._lock:
            self.asked.append(host)
            self.running += 1
            self.most_running = max(self.most_running, self.running)
        try:
            if host.startswith("hung"):
                assert self._let_go.wait(60)
            if host.startswith("missing"):
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            return ["127.0.0.1"]
        finally:
            with self._lock:
                self.running -= 1

    def let_go(self):
        self._let_go.set()


@pytest.fixture
def names():
    """Let go of every thread in the end."""
    found = Names()
    yield found
    found.let_go()


async def given_up(lookup, host):
    """Ask, and give up once the lookup has had its chance to begin."""

    async def ask():
        with suppress(NotLookedUp):
            await lookup(host)

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()


async def test_a_lookup_that_is_given_up_keeps_its_place_until_its_thread_has_returned(names):
    """Four hundred names that hang had taken a thread and a socket each, at every attempt anew."""
    lookup = SystemLookup(names)
    before = threading.active_count()
    for _ in range(3):
        for number in range(400):
            await given_up(lookup, f"hung{number}")
    assert names.most_running <= PLACES
    assert threading.active_count() - before <= PLACES
    names.let_go()
    with anyio.fail_after(PATIENCE):
        await lookup("new")
        assert await lookup("hung399") == ["127.0.0.1"]


async def test_a_name_that_has_come_back_does_not_wait_behind_those_that_hang(names):
    """It has places of its own, however many others hang; so has one that came back without an address."""
    lookup = SystemLookup(names)
    await lookup("well")
    with pytest.raises(socket.gaierror):
        await lookup("missing")
    for number in range(PLACES + 10):
        await given_up(lookup, f"hung{number}")
    with anyio.fail_after(PATIENCE):
        assert await lookup("well") == ["127.0.0.1"]
        with pytest.raises(socket.gaierror):
            await lookup("missing")


async def test_proven_names_that_hang_now_take_no_more_than_their_places(names):
    """As when the name server goes away: each is proven no longer once it has been given up."""
    lookup = SystemLookup(names)
    for number in range(200):
        lookup._proven[f"hung{number}"] = None
    for _ in range(2):
        for number in range(200):
            await given_up(lookup, f"hung{number}")
    assert names.most_running <= PLACES + PLACES_OF_PROVEN


async def test_who_asks_for_the_same_name_at_the_same_time_waits_for_the_same_lookup(names):
    """Also for one that somebody else has given up."""
    lookup = SystemLookup(names)
    await given_up(lookup, "hung")
    found = []

    async def ask():
        found.append(await lookup("hung"))

    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(ask)
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        names.let_go()
    assert (found, names.asked) == ([["127.0.0.1"]] * 10, ["hung"])


async def test_what_is_given_up_in_line_is_never_looked_up(names):
    """Nobody would take its answer."""
    lookup = SystemLookup(names)
    for number in range(PLACES + 10):
        await given_up(lookup, f"hung{number}")
    names.let_go()
    with anyio.fail_after(PATIENCE):
        await lookup("last")
    assert sorted(names.asked) == sorted(["last", *(f"hung{number}" for number in range(PLACES))])


async def test_the_check_behind_them_is_unknown_with_the_reason(names, target_check):
    """Not down: nobody has asked for its name yet."""
    lookup = SystemLookup(names)
    for number in range(PLACES):
        await given_up(lookup, f"hung{number}")
    check = BY_SCHEME["tcp"].make(url=parse_url("tcp://behind.test:1", {"tcp": None}))
    made = target_check(check, timeout=0.05)
    made.resolver._lookup = lookup
    result = await made.run()
    error = f"cannot look up behind.test in 0.05 s: {PLACES} lookups of other names have not come back"
    assert (result.status, result.error) == (Status.UNKNOWN, error)


async def test_a_name_that_has_hung_is_not_waited_for_while_there_is_no_place(names):
    """Its check would hold units of limits for all of its timeout. It is unknown at once, with the reason."""
    lookup = SystemLookup(names)
    for number in range(PLACES):
        await given_up(lookup, f"hung{number}")
    with pytest.raises(Unresolved, match=f"cannot look up hung0: {PLACES} lookups have not come back") as caught:
        await Resolver(lookup=lookup).addresses("hung0")
    assert caught.value.status is Status.UNKNOWN
    names.let_go()
    with anyio.fail_after(PATIENCE):
        await lookup("new")
        assert await lookup("hung0") == ["127.0.0.1"]


async def test_a_machine_that_can_start_no_thread_says_nothing_about_a_name(monkeypatch, names):
    """The trouble is ours, and the place is free again."""

    def refuse(self):
        raise RuntimeError("can't start new thread")

    lookup = SystemLookup(names)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(Unresolved, match="can start no more threads") as caught:
            await Resolver(lookup=lookup).addresses("a.test")
    assert caught.value.status is Status.UNKNOWN
    assert lookup._places.used == 0


async def test_names_that_are_remembered_do_not_grow_without_end(names, monkeypatch):
    """A target may redirect to a new name each time."""
    monkeypatch.setattr(lookups, "MOST_PROVEN", 5)
    lookup = SystemLookup(names)
    for number in range(12):
        await lookup(f"name{number}")
    assert list(lookup._proven) == [f"name{number}" for number in range(7, 12)]

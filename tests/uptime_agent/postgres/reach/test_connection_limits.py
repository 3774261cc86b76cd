"""One limit for all connections that lead to one server, as it counts them: whichever address, whoever asks."""

import socket
from contextlib import asynccontextmanager, closing

import anyio
import pytest
from attrs import evolve
from psycopg.pq import PollingStatus

from kit import PATIENCE, until, wait_until
from postgres_fleets import NAME, fleet_of, most_of_ours, ours_on, probe
from timerqueue import SystemClock
from uptime_agent.checks import Resolver
from uptime_agent.libpq import Connection, Server, Unreachable, gone
from uptime_agent.postgres import CATALOGUE
from uptime_agent.postgres.contract import Scope
from uptime_agent.postgres.reach import Connections, Dialler
from uptime_agent.postgres.target import PostgresTarget

NODE_ROLE = evolve(CATALOGUE["node_role"], every=0.2)
EACH = probe("each", "SELECT 1 FROM pg_sleep(0.02)", every=0.2, scope=Scope.DATABASE)


def target_of(listening, host, name="main", **options):
    """Make a target that leads to the server by that host."""
    server = Server(host=host, port=listening.port, user="postgres", options={"sslmode": "disable"})
    return PostgresTarget(name=name, server=server, **options)


@pytest.fixture(autouse=True)
def alone(listening):
    """Wait until connections of an earlier test are gone at the server, too: it counts them here."""
    wait_until(lambda: ours_on(listening) == 0)


@asynccontextmanager
async def connections_to(server, limit, host="127.0.0.1", hosts=()):
    """Give the connections to a server that are allowed."""
    clock = SystemClock()
    async with anyio.create_task_group() as group:
        dialler = Dialler(target_of(server, host).server, Resolver(dict(hosts)), clock, within=3.0)
        connections = Connections(dialler, limit, group.start_soon, clock)
        with anyio.fail_after(PATIENCE):
            yield connections
            connections.close()
            await until(lambda: connections.used == 0)
        group.cancel_scope.cancel()


async def test_several_addresses_of_a_server_have_one_limit(listening):
    """A name with an IPv6 address and an IPv4 one, six databases, and two connections in all."""
    targets = [target_of(listening, NAME, limit=2)]
    async with fleet_of(targets, EACH, hosts={NAME: ["::1", "127.0.0.1"]}) as fleet:
        assert await most_of_ours(listening, lambda: len(fleet.store.of("each")) >= 18) == 2
    assert not [each for each in fleet.store.outcomes if each.failure is not None]


async def test_two_targets_at_one_address_have_one_limit(listening):
    """As two entries for two databases do, from the first connection on. The lower limit holds."""
    targets = [target_of(listening, "127.0.0.1", "one", limit=2), target_of(listening, "127.0.0.1", "two", limit=5)]
    async with fleet_of(targets, EACH) as fleet:
        assert await most_of_ours(listening, lambda: len(fleet.store.of("each")) >= 30) == 2
    assert not [each for each in fleet.store.outcomes if each.failure is not None]
    assert {each.target for each in fleet.store.outcomes} == {"one", "two"}


async def test_two_names_with_one_address_have_one_limit(listening):
    """Also before either has said which server it is: their addresses are looked up before the first connection."""
    hosts = {"one.example": ["127.0.0.1"], "two.example": ["::1", "127.0.0.1"]}
    targets = [target_of(listening, host, host, limit=2) for host in hosts]
    async with fleet_of(targets, EACH, hosts=hosts) as fleet:
        assert await most_of_ours(listening, lambda: len(fleet.store.of("each")) >= 30) == 2
    assert {each.target for each in fleet.store.outcomes} == set(hosts)


async def test_two_names_of_one_server_have_one_limit_once_it_says_who_it_is(listening):
    """A Unix socket and IPv6 are nothing alike; the identifier of the system and its start are the same."""
    names = {"one": str(listening.folder), "two": "::1"}
    targets = [target_of(listening, host, name, limit=2) for name, host in names.items()]
    async with fleet_of(targets, NODE_ROLE, EACH) as fleet:
        one, two = (member.reach.connections for member in fleet.members.values())
        await until(lambda: one.places is two.places and one.places.used <= 2)
        fleet.store.outcomes.clear()
        assert await most_of_ours(listening, lambda: len(fleet.store.of("each")) >= 24) <= 2


async def test_targets_part_when_one_leads_elsewhere(listening, postgres_of):
    """A name that leads to another server by now has a limit of its own again."""
    other = Server(host=str(postgres_of(18).folder), user="postgres")
    targets = [target_of(listening, "::1", "one", limit=2), PostgresTarget(name="two", server=other, limit=3)]
    async with fleet_of(targets, NODE_ROLE) as fleet:
        one, two = (member.reach.connections for member in fleet.members.values())
        one.share(two)
        assert two.places.limit == 2
        await until(lambda: one.places is not two.places)
        assert (one.places.limit, two.places.limit) == (2, 3)


async def test_a_limit_may_change_while_connections_are_borrowed(listening):
    """A lower one is reached as they come back, a higher one lets in who waits. No place is lost or won."""
    async with connections_to(listening, 3) as connections:
        borrowed = [(await connections.take(None, 1.0))[0] for _ in range(3)]
        connections.resize(1)
        for each in borrowed:
            connections.release(each, None)
        await until(lambda: connections.used <= 1)
        assert ours_on(listening) <= 1
        first, _ = await connections.take(None, PATIENCE)
        got = []

        async def wait():
            got.append((await connections.take(None, PATIENCE))[0])

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            group.start_soon(wait)
            await until(lambda: len(connections.places.waiting) == 2)
            assert ours_on(listening) == 1
            connections.resize(3)
        assert (len(got), connections.used, ours_on(listening)) == (2, 3, 3)
        for each in (first, *got):
            connections.release(each, None)
        assert (connections.used, connections.idle) == (3, 3)
        connections.resize(2)
        await until(lambda: connections.used == 2)
        assert ours_on(listening) == 2


async def test_a_target_that_is_changed_keeps_its_limit_while_its_old_connections_leave(listening):
    """Another role, or another password: they are closed beside all else, and counted until they are gone."""
    target = target_of(listening, "127.0.0.1", limit=2)
    other = evolve(target, server=evolve(target.server, options={"sslmode": "require"}))
    async with fleet_of([target], EACH) as fleet:

        def rounds(number):
            return lambda: len(fleet.store.of("each")) >= number

        assert await most_of_ours(listening, rounds(12)) == 2
        for number in range(6):
            fleet.follow([target if number % 2 else other])
            assert await most_of_ours(listening, rounds(len(fleet.store.of("each")) + 6)) <= 2


async def test_a_server_that_lets_go_of_nothing_does_not_answer(listening):
    """Frozen when our connection made room for one to another database: that is no limit that is too low."""
    async with connections_to(listening, 1) as connections:
        idle, _ = await connections.take(None, PATIENCE)
        connections.release(idle, None)
        with listening.frozen(listening.pid, idle.backend):
            for _ in range(2):
                with pytest.raises(Unreachable, match="lets go of none"):
                    await connections.take("shop_1", PATIENCE)
            assert connections.used == 1
        await until(lambda: connections.used == 0)
        connections.release((await connections.take("shop_1", PATIENCE))[0], "shop_1")
        assert (connections.used, connections.stuck, ours_on(listening)) == (1, 0, 1)


@pytest.fixture
def silent(listening):
    """Listen at another address, on the port of the server, and say nothing."""
    with closing(socket.create_server(("127.0.0.2", listening.port))) as listener:
        yield listener


async def test_what_an_address_left_behind_that_fell_silent_has_a_place(listening, silent):
    """Behind two addresses there may be one server: it counts both, so the second needs another place."""
    hosts = {NAME: ["127.0.0.2", "127.0.0.1"]}
    async with connections_to(listening, 2, NAME, hosts) as connections:
        taken, is_new = await connections.take(None, PATIENCE)
        assert (is_new, connections.used) == (True, 2)
        connections.release(taken, None)
        assert (await connections.take(None, PATIENCE)) == (taken, False)
        connections.release(taken, None)
        silent.accept()[0].close()
        await until(lambda: connections.used == 1)


async def test_nobody_is_asked_twice_with_one_place(listening, silent):
    """The next address waits until the first has let go."""
    hosts = {NAME: ["127.0.0.2", "127.0.0.1"]}
    async with connections_to(listening, 1, NAME, hosts) as connections:
        with pytest.raises(Exception, match="does not answer within"):
            await connections.take(None, PATIENCE)
        assert (connections.used, ours_on(listening)) == (1, 0)
        silent.accept()[0].close()
        await until(lambda: connections.used == 0)


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
async def test_who_is_given_up_while_it_logs_in_is_gone_on_the_server(listening, steps):
    """After any step of the login: the server lets go of it, and does not wait for a word from us for ever."""
    connection = Connection(target_of(listening, "127.0.0.1").server, "127.0.0.1", SystemClock().monotonic)
    state = PollingStatus.WRITING
    with anyio.fail_after(PATIENCE):
        for _ in range(steps):
            if state not in {PollingStatus.OK, PollingStatus.FAILED}:
                wait = anyio.wait_writable if state == PollingStatus.WRITING else anyio.wait_readable
                await wait(connection._pg.socket)
                state = PollingStatus(connection._pg.connect_poll())
        left = connection.leave()
        assert left is not None
        with left:
            await gone(left)
        await until(lambda: ours_on(listening) == 0)

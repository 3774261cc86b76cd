"""The source of hostile inputs for one boundary of an agent, in a process of its own.

    python3 tests/lab/beside/beside_hostile.py BOUNDARY INPUTS SEED

Prints its ports, a JSON list. Reads one line, a JSON object that says where the agent is. Prints the number of inputs
given, now and again, and at the end "done". Serves until its standard input ends.
"""
# ruff: noqa: T201 - it speaks to who started it

import asyncio
import json
import os
import random
import sys
from contextlib import suppress
from itertools import cycle

from attrs import define, field

import beside_files
import beside_strangers
import fuzzed_postgres
from fuzzed_answers import HOOK, MAIL, RDAP, RDAP_WHOLE, names_answer, time_answer
from fuzzed_rows import mangled_row
from hostile_postgres import BOUND, DONE, READY, columns, row
from mutants import mutants

HOST = "127.0.0.1"
ROWS = 100
"""Rows of tables in one answer."""
TROUBLED = 0.05
"""Share of the answers with tables that break before any row is used."""
HEAD = b"\r\n\r\n"


@define(eq=False)
class Inputs:
    """A count of the inputs given. `seed`: names the inputs, which are the same in each play."""

    wanted: int
    seed: str
    given: int = 0
    all_given: asyncio.Event = field(factory=asyncio.Event)

    def count(self, number=1):
        """Count inputs, and print the count now and again. Return the count before."""
        before, self.given = self.given, self.given + number
        step = max(self.wanted // 50, 1)
        if self.given // step > before // step or before < self.wanted <= self.given:
            print(self.given, flush=True)
        if self.given >= self.wanted:
            self.all_given.set()
        return before


# -- over TCP ------------------------------------------------------------------------------------------------------


async def serve_streams(handle, port=0):
    """Serve over TCP. Return the port."""

    async def served(reader, writer):
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            await handle(reader, writer)
        with suppress(OSError):
            writer.close()
            await writer.wait_closed()

    server = await asyncio.start_server(served, HOST, port, backlog=1000)
    return server.sockets[0].getsockname()[1]


async def answers(inputs, seeds, waits_for=b""):
    """Serve a mutant to each connection, once it sent `waits_for`. Return the ports.

    Every second answer takes the message, because an agent reminds only of what it could tell. It is not counted.
    """
    mutant, is_taken = mutants(seeds, 1 << 40, seed=inputs.seed), cycle((True, False))

    async def handle(reader, writer):
        if waits_for:
            await reader.readuntil(waits_for)
        if next(is_taken):
            writer.write(seeds[0])
        else:
            writer.write(next(mutant))
            inputs.count()
        writer.write_eof()
        while await reader.read(65_536):
            pass

    return [await serve_streams(handle)]


async def smtp(inputs):
    return await answers(inputs, MAIL)


async def webhook(inputs):
    """Ask for a rest now and then. A channel heeds it, for up to an hour if the number was mutated."""
    taken, rests, refused, later = HOOK
    return await answers(inputs, [*[taken, refused] * 4, rests, later], HEAD)


async def rdap(inputs):
    """Mutate the bodies of half of the answers, and the other half whole."""
    bodies, wholes = (mutants([*seeds, seeds[0]], 1 << 40, seed=inputs.seed) for seeds in (RDAP, RDAP_WHOLE))

    async def handle(reader, writer):
        domain = (await reader.readuntil(HEAD)).split()[1].rpartition(b"/")[2]
        if inputs.count() % 2:
            body = next(bodies)
            answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        else:
            answer = next(wholes)
        writer.write(answer.replace(b"example.org", domain))
        writer.write_eof()
        while await reader.read(65_536):
            pass

    return [await serve_streams(handle)]


# -- over UDP ------------------------------------------------------------------------------------------------------


@define(eq=False)
class Datagrams(asyncio.DatagramProtocol):
    """Sends a mutant, then the proper answer, so that each check ends. Nine of ten mutants have the right number."""

    inputs: Inputs
    proper: object
    number: slice
    transport: object = None

    def connection_made(self, transport):
        self.transport = transport

    def mutant_of(self, data):
        """Return a mutant of the proper answer to a question, and the proper answer."""
        answer = self.proper(data)
        which = self.inputs.count()
        mutant = bytearray(next(mutants([answer], 1, seed=f"{self.inputs.seed} {which}")))[:60_000]
        if which % 10:
            mutant[self.number] = answer[self.number]
        return bytes(mutant), answer

    def datagram_received(self, data, peer):
        for each in self.mutant_of(data):
            self.transport.sendto(each, peer)

    def error_received(self, exc):
        """Ignore a peer that has gone."""


async def datagrams(inputs, proper, number):
    """Serve over UDP. Return the protocol and the port."""
    made = Datagrams(inputs, proper, number)
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: made, (HOST, 0))
    return made, transport.get_extra_info("sockname")[1]


async def dns(inputs):
    """Serve mutants over TCP too: after an answer that says it is cut, a check asks again there."""
    made, port = await datagrams(inputs, names_answer, slice(2))

    async def handle(reader, writer):
        asked = await reader.readexactly(int.from_bytes(await reader.readexactly(2)))
        mutant, _ = made.mutant_of(asked)
        writer.write(len(mutant).to_bytes(2) + mutant)

    await serve_streams(handle, port)
    return [port]


async def ntp(inputs):
    return [(await datagrams(inputs, time_answer, slice(24, 32)))[1]]


# -- PostgreSQL ----------------------------------------------------------------------------------------------------


async def postgres(inputs):
    """Mangle the answers to each connection of checks and probes."""

    async def handle(reader, writer):
        if await fuzzed_postgres.named(reader, writer) is not None:
            await fuzzed_postgres.talk(fuzzed_postgres.Answers(inputs.seed, inputs.count()), reader, writer)

    return [await serve_streams(handle)]


async def tables(inputs):
    """Serve tables with other rows in each answer. Most rows are mangled."""
    chance = random.Random(inputs.seed)

    def answer():
        inputs.count(ROWS)
        meta = row(b"meta", b"timerqueue probes", b'{"version": 1}')
        raw = [mangled_row(chance, number % 20) for number in range(ROWS)]
        says_two_versions = chance.random() < TROUBLED
        rows = [row(*each) for each in raw if says_two_versions or each[0] != b"meta"]
        pieces = [BOUND, columns(b"a"), row(b"x"), DONE, BOUND, columns(b"place", b"key", b"content"), meta]
        pieces += [*rows, DONE, READY]
        if chance.random() < TROUBLED:
            chance.choice(fuzzed_postgres.MANGLERS)(chance, pieces)
        return b"".join(pieces)

    async def handle(reader, writer):
        if await fuzzed_postgres.named(reader, writer) is None:
            return
        well = fuzzed_postgres.Answers(inputs.seed, "well", mangles=False)
        writer.write(well.welcome)
        while asked := await reader.read(65_536):
            writer.write(answer() if b"timerqueue:tables" in asked else well.to(asked))
            await writer.drain()

    return [await serve_streams(handle)]


async def nothing(inputs):
    return []


SERVERS = {each.__name__: each for each in (smtp, webhook, rdap, dns, ntp, postgres, tables)}
"""The servers that the agent asks."""
OTHERS = {
    "push": beside_strangers.push,
    "crowd": beside_strangers.crowd,
    "toml": beside_files.toml,
    "yaml": beside_files.yaml,
}
"""The sources that come to the agent by themselves, once it runs."""


async def run(boundary, wanted, seed):
    """Give all inputs."""
    inputs = Inputs(wanted, seed)
    print(json.dumps(await SERVERS.get(boundary, nothing)(inputs)), flush=True)
    agent = json.loads(await asyncio.to_thread(sys.stdin.readline))
    ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    giving = asyncio.create_task(OTHERS[boundary](inputs, **agent) if boundary in OTHERS else inputs.all_given.wait())
    await asyncio.wait([giving, ended], return_when=asyncio.FIRST_COMPLETED)
    if giving.done():
        giving.result()
        print("done", flush=True)
    await ended
    os._exit(0)  # with whatever is still being sent


if __name__ == "__main__":
    os.nice(5)  # the agent is judged, and should have the core first
    asyncio.run(run(sys.argv[1], int(sys.argv[2]), sys.argv[3]))

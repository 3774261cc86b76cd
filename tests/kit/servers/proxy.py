"""A TCP proxy that does to connections what networks do: it passes, holds back, resets, delays, and half opens.

It listens on a port of 127.0.0.1, and leads to a TCP address or to a Unix socket. Its loop lives in a thread of its
own; its verbs are for any other thread, and return once they hold. What a black hole swallows is not lost: as after a
cable is plugged in again, it arrives when the proxy passes again. So a peer that was cut off may be heard from late.

A commit is "in flight" when its words have reached the server and its answer has not reached the client: `hold_answer`
keeps a connection in that state, for whoever wants to kill, cut or freeze somebody just then.
"""

import asyncio
import contextlib
import socket
import struct
import threading
from pathlib import Path

from kit import PATIENCE

CHUNK = 65_536
LONGEST = 64
"""Bytes that words which are wanted may have."""

RESETS = struct.pack("ii", 1, 0)
"""SO_LINGER: a close is a reset."""

COMMIT = b"COMMIT\0"
"""How a client of PostgreSQL says it, in either of its protocols."""


class Proxy:
    """Between clients and the server at `leads_to`: a path, or a host and a port.

    `distance`: seconds from here to the server. Words arrive as closely after each other as they were said.
    """

    def __init__(self, leads_to, distance=0.0):
        self._leads_to = leads_to
        self.distance = distance
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._links = set()
        self._gate = asyncio.Event()
        self._pause = 0.0
        self._refuses = False
        self._wanted = None
        self.held = 0
        """Pieces of what was said, and of ends, that wait here."""
        self._tasks = set()

    def __enter__(self):
        self._thread.start()
        self._do(self._listen())
        return self

    def __exit__(self, *_):
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    @property
    def dsn(self):
        """Of the PostgreSQL to which it leads."""
        return f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"

    @property
    def connections(self):
        """How many there are now."""
        return len(self._links)

    # -- what it does, until it is told otherwise ----------------------------------------------------------------------

    def pass_on(self):
        """Pass everything from now on, and what has been held back first."""
        self._do(self._become(is_open=True))

    def black_hole(self):
        """Pass nothing. Connections stay, and new ones are accepted and hear nothing."""
        self._do(self._become(is_open=False))

    def delay(self, seconds):
        """Pass everything, so much later, in each direction."""
        self._do(self._become(is_open=True, pause=seconds))

    def refuse(self):
        """Reset all connections, and each new one as it comes. What has been held back is not passed."""
        self._do(self._refuse())

    def fill(self):
        """Reset each new connection as it comes, as if the server were full. Those that are there go on."""
        self._do(self._become(is_open=True, refuses=True))

    def lead_to(self, leads_to):
        """Lead to another server from now on. Connections to the former one are reset."""
        self._leads_to = leads_to
        self.reset()

    # -- what it does once ---------------------------------------------------------------------------------------------

    def reset(self):
        """Reset all connections, on both sides. New ones are welcome."""
        self._do(self._each(Link.reset))

    def leave_clients_hanging(self):
        """Half open: the server sees each connection end, and the clients hear nothing of it."""
        self._do(self._each(Link.lose_server))

    def leave_server_hanging(self):
        """Half open: the clients see each connection reset, and the server hears nothing of it."""
        self._do(self._each(Link.lose_client))

    def hold(self, words=COMMIT, *, after=b"", answer=True):
        """Hold the answer to the next such words, or the words themselves, until anything else is asked of the proxy.

        `after`: to the next that follow these on the same connection. Returns a threading.Event that is set once they
        have come.
        """
        wanted = Wanted(words, after=after, answer=answer)
        self._do(self._want(wanted))
        return wanted.has_come

    def let_go(self):
        """Pass what `hold` has held, or hold nothing if it has not come yet."""
        self._do(self._want(None))

    # -- on its loop ---------------------------------------------------------------------------------------------------

    async def passes(self):
        """Return once it neither holds back nor delays any more."""
        if self._pause:
            await asyncio.sleep(self._pause)
        await self.opens(self._gate)

    async def opens(self, gate):
        """Wait for it, and count that."""
        if gate.is_set():
            return
        self.held += 1
        try:
            await gate.wait()
        finally:
            self.held -= 1

    def wanted_in(self, link, before, words):
        """The hold that these words ask for, if one does. `before`: what was said on this link before them."""
        wanted = self._wanted
        if wanted is None or wanted.has_come.is_set() or not wanted.is_in(link, before, words):
            return None
        wanted.has_come.set()
        return wanted

    def _do(self, what):
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(PATIENCE)

    async def _listen(self):
        self._gate.set()
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def _close(self):
        self._listener.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _become(self, *, is_open, pause=0.0, refuses=False):
        self._pause, self._refuses = pause, refuses
        await self._want(None)
        (self._gate.set if is_open else self._gate.clear)()

    async def _refuse(self):
        for link in list(self._links):
            link.reset()
        await self._become(is_open=True, refuses=True)

    async def _want(self, wanted):
        if self._wanted is not None:
            self._wanted.is_over.set()
        self._wanted = wanted

    async def _each(self, verb):
        for link in list(self._links):
            verb(link)
        await self._want(None)

    async def _serve(self, *client):
        self._tasks.add(asyncio.current_task())
        link = Link(self, *client)
        self._links.add(link)
        end = link.reset  # unless both sides have said all
        try:
            await asyncio.sleep(2 * self.distance)  # a connection is made there and back
            await self._gate.wait()
            if not self._refuses:
                await link.live(*await self._dial())
                end = link.close
        except (OSError, asyncio.CancelledError):
            pass  # one side has been reset, there is no server, or the proxy ends: asyncio is to say nothing of it
        finally:
            end()
            self._links.discard(link)
            self._tasks.discard(asyncio.current_task())

    async def _dial(self):
        if isinstance(self._leads_to, str | Path):
            return await asyncio.open_unix_connection(self._leads_to)
        return await asyncio.open_connection(*self._leads_to)


class Wanted:
    """Words that are to be held, or the answer to them."""

    def __init__(self, words, *, after, answer):
        self.words = words
        self.after = after
        self.answer = answer
        self.has_come = threading.Event()
        self.is_over = asyncio.Event()
        self._links = set()  # on which those have been said that they are to follow

    def is_in(self, link, before, words):
        """Whether they end in this piece; they may have begun in the one before."""
        if link not in self._links:
            _, found, words = (
                (tail(before, self.after) + words).partition(self.after) if self.after else ("", True, words)
            )
            if not found:
                return False
            self._links.add(link)
            before = b"" if self.after else before
        return self.words in tail(before, self.words) + words


def tail(before, words):
    """What was said before, as far as it may be the beginning of these words."""
    return before[max(0, len(before) - len(words) + 1) :]


class Link:
    """One connection: the client's side and the server's."""

    def __init__(self, proxy, reader, writer):
        self._proxy = proxy
        self._client = reader, writer
        self._server = None
        self._is_half_open = False
        self._held_by = None
        self._before = b""

    async def live(self, reader, writer):
        """Pass what is said, until both sides have ended or one is reset."""
        self._server = reader, writer
        ways = [
            asyncio.ensure_future(self._pass(self._client, self._server, self._ask)),
            asyncio.ensure_future(self._pass(self._server, self._client, self._answer)),
        ]
        try:
            await asyncio.gather(*ways)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _pass(self, source, target, hold):
        """Pass what comes from the one side to the other, and its end."""
        async with contextlib.aclosing(travelled(source[0], self._proxy.distance)) as said:
            async for words in said:
                await self._proxy.passes()
                await hold(words)
                await self._say(target[1], words)
        await self._proxy.passes()
        if not self._is_half_open:
            target[1].write_eof()

    async def _say(self, writer, words):
        """Send it; to a side that has been lost it is not sent, and nobody hears of that."""
        try:
            if not self._is_half_open:
                writer.write(words)
                await writer.drain()
        except OSError:
            if not self._is_half_open:
                raise

    async def _ask(self, words):
        """Look for what is to be held."""
        wanted = self._proxy.wanted_in(self, self._before, words)
        self._before = (self._before + words)[-LONGEST:]
        if wanted is not None and wanted.answer:
            self._held_by = wanted
        elif wanted is not None:
            await self._wait_for(wanted)

    async def _answer(self, _words):
        """Hold it, if it is the answer to what was wanted."""
        if self._held_by is not None:
            await self._wait_for(self._held_by)
            self._held_by = None

    async def _wait_for(self, wanted):
        await self._proxy.opens(wanted.is_over)
        await self._proxy.passes()

    def reset(self):
        """Both sides see a reset."""
        for side in (self._client, self._server):
            abort(side)

    def close(self):
        """Both sides have said all, and end."""
        for side in (self._client, self._server):
            if side is not None:
                side[1].close()

    def lose_server(self):
        """The server sees an end; the client stays, and hears nothing more."""
        self._lose(self._server)

    def lose_client(self):
        """The client sees a reset; the server's side stays, and hears nothing more."""
        self._lose(self._client)

    def _lose(self, side):
        if self._server is not None:
            self._is_half_open = True
            abort(side)


async def travelled(reader, distance):
    """Yield what a side says, `distance` seconds after it was said; what is said meanwhile is on its way, too."""
    if not distance:
        while words := await reader.read(CHUNK):
            yield words
        return
    loop, way = asyncio.get_running_loop(), asyncio.Queue()

    async def depart():
        words = b"none yet"
        try:
            while words:
                words = await reader.read(CHUNK)
                way.put_nowait((loop.time() + distance, words))
        except OSError:
            way.put_nowait((loop.time() + distance, b""))
            raise

    departs = asyncio.ensure_future(depart())
    try:
        while True:
            arrives, words = await way.get()
            await asyncio.sleep(arrives - loop.time())
            if not words:
                break
            yield words
        await departs
    finally:
        departs.cancel()
        await asyncio.gather(departs, return_exceptions=True)


def abort(side):
    """Reset a connection, if it is there."""
    if side is not None:
        transport = side[1].transport
        with contextlib.suppress(OSError):
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)
        transport.abort()

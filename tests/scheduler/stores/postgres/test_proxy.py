"""The proxy of the tests (tests/kit/servers/proxy.py): each thing that it does to connections, as both sides see it."""

import contextlib
import socket
import threading
import time

import psycopg
import pytest

from kit import PATIENCE, wait_until
from proxy import Proxy


class Server:
    """Says everything in capitals. It remembers what it heard, and how each of its connections ended."""

    def __init__(self):
        self.heard = b""
        self.ends = []
        self._sockets = []
        self._threads = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = self._listener.getsockname()
        self._start(self._accept)

    def close(self):
        for each in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(PATIENCE)

    def _start(self, target, *args):
        self._threads.append(threading.Thread(target=target, args=args, daemon=True))
        self._threads[-1].start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                self._sockets.append(self._listener.accept()[0])
                self._start(self._answer, self._sockets[-1])

    def _answer(self, connection):
        try:
            while words := connection.recv(65_536):
                self.heard += words
                connection.sendall(words.upper())
            connection.close()
            self.ends.append("end")
        except OSError:
            self.ends.append("reset")


@pytest.fixture
def server():
    with contextlib.closing(Server()) as server:
        yield server


@pytest.fixture
def proxy(server):
    with Proxy(server.address) as proxy:
        yield proxy


@pytest.fixture
def connect(proxy):
    """Connect through the proxy; called again, once more."""
    with contextlib.ExitStack() as stack:

        def connect():
            return stack.enter_context(socket.create_connection(("127.0.0.1", proxy.port), PATIENCE))

        yield connect


def heard(client, count):
    """Wait for so many bytes."""
    words = b""
    while len(words) < count:
        piece = client.recv(count - len(words))
        assert piece, f"an end after {len(words)} bytes"
        words += piece
    return words


def hears_nothing(client):
    client.setblocking(False)
    with pytest.raises(BlockingIOError):
        client.recv(1)
    client.settimeout(PATIENCE)
    return True


def test_it_passes_what_is_said_and_the_end(connect, server, proxy):
    """As if it were not there."""
    client = connect()
    client.sendall(b"one")
    assert heard(client, 3) == b"ONE"
    client.sendall(b"two")
    client.shutdown(socket.SHUT_WR)
    assert heard(client, 3) == b"TWO"
    assert client.recv(1) == b""
    wait_until(lambda: server.ends == ["end"] and proxy.connections == 0)


def test_much_goes_through(connect):
    """More than any buffer on the way holds."""
    client, much = connect(), b"x" * 5_000_000
    writer = threading.Thread(target=client.sendall, args=(much,))
    writer.start()
    assert heard(client, len(much)) == much.upper()
    writer.join(PATIENCE)


def test_a_black_hole_keeps_what_is_said_for_later(connect, server, proxy):
    """The server hears it once the way is open again, though the client may have gone by then."""
    client, gone = connect(), connect()
    for each in (client, gone):
        each.sendall(b"a")
        assert heard(each, 1) == b"A"
    proxy.black_hole()
    client.sendall(b"b")
    gone.sendall(b"c")
    gone.close()
    wait_until(lambda: proxy.held == 2)
    assert hears_nothing(client)
    assert (server.heard, server.ends) == (b"aa", [])
    proxy.pass_on()
    assert heard(client, 1) == b"B"
    wait_until(lambda: sorted(server.heard) == sorted(b"aabc") and len(server.ends) == 1)


def test_who_comes_to_a_black_hole_hears_nothing(connect, proxy):
    """A connection is there, as behind a firewall that swallows; it works once the way is open."""
    proxy.black_hole()
    client = connect()
    client.sendall(b"a")
    wait_until(lambda: proxy.connections == 1)
    assert hears_nothing(client)
    proxy.pass_on()
    assert heard(client, 1) == b"A"


def test_a_reset_is_seen_on_both_sides(connect, server, proxy):
    """Who comes afterwards is welcome."""
    client = connect()
    client.sendall(b"a")
    assert heard(client, 1) == b"A"
    proxy.reset()
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    wait_until(lambda: server.ends == ["reset"])
    again = connect()
    again.sendall(b"b")
    assert heard(again, 1) == b"B"


def test_it_refuses_until_it_passes_again(connect, proxy):
    """Who is there is reset, and who comes, too."""
    first = connect()
    first.sendall(b"a")
    assert heard(first, 1) == b"A"
    proxy.refuse()
    with pytest.raises(ConnectionResetError):
        first.recv(1)
    with pytest.raises(ConnectionResetError):
        connect().recv(1)
    proxy.pass_on()
    client = connect()
    client.sendall(b"a")
    assert heard(client, 1) == b"A"


def test_without_a_server_a_client_is_reset(connect, server, proxy):
    """As by a machine on which nobody listens."""
    server.close()
    with pytest.raises(ConnectionResetError):
        connect().recv(1)


def test_a_delay_is_one_in_each_direction(connect, proxy):
    """Nothing comes too early."""
    client = connect()
    proxy.delay(0.05)
    began = time.monotonic()
    client.sendall(b"a")
    assert heard(client, 1) == b"A"
    assert time.monotonic() - began >= 0.1


def test_what_follows_closely_arrives_closely_from_afar(server):
    """Each way takes its time, and what is said meanwhile is on its way, too: ten words take no ten times as long."""
    with Proxy(server.address, distance=0.2) as proxy, socket.create_connection(("127.0.0.1", proxy.port)) as client:
        client.settimeout(PATIENCE)
        began = time.monotonic()
        for _ in range(10):
            client.sendall(b"a")
            time.sleep(0.01)
        assert heard(client, 10) == b"A" * 10
        assert time.monotonic() - began >= 0.4


def test_it_leads_to_another_server(connect, proxy):
    """Connections to the former one are reset, and new ones are made there."""
    client = connect()
    client.sendall(b"a")
    assert heard(client, 1) == b"A"
    with contextlib.closing(Server()) as other:
        proxy.lead_to(other.address)
        with pytest.raises(ConnectionResetError):
            client.recv(1)
        client = connect()
        client.sendall(b"b")
        assert (heard(client, 1), other.heard) == (b"B", b"b")


def test_a_client_may_hang_while_the_server_knows_that_it_has_gone(connect, server, proxy):
    """What it says is lost, until it gives up."""
    client = connect()
    client.sendall(b"a")
    assert heard(client, 1) == b"A"
    proxy.leave_clients_hanging()
    wait_until(lambda: len(server.ends) == 1)
    client.sendall(b"b")
    assert hears_nothing(client)
    assert (server.heard, proxy.connections) == (b"a", 1)
    client.close()
    wait_until(lambda: proxy.connections == 0)


def test_a_server_may_hang_while_the_client_knows(connect, server, proxy):
    """As after a machine that was switched off: its session stays."""
    client = connect()
    client.sendall(b"a")
    assert heard(client, 1) == b"A"
    proxy.leave_server_hanging()
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    assert (server.ends, proxy.connections) == ([], 1)
    proxy.reset()
    wait_until(lambda: server.ends == ["reset"] and proxy.connections == 0)


@pytest.mark.parametrize("pieces", [[b"now COMMIT\0 and"], [b"now COM", b"MIT\0 and"]])
def test_the_answer_to_words_is_held(connect, server, proxy, pieces):
    """The server has heard them, and others hear their answers. The next such words are not held."""
    client, other = connect(), connect()
    has_come = proxy.hold()
    for piece in pieces:
        client.sendall(piece)
        wait_until(lambda piece=piece: server.heard.endswith(piece))
    assert has_come.is_set()
    other.sendall(b"COMMIT\0")
    assert heard(other, 7) == b"COMMIT\0"
    assert server.heard == b"".join(pieces) + b"COMMIT\0"
    proxy.let_go()
    whole = b"".join(pieces)
    assert heard(client, len(whole)) == whole.upper()
    client.sendall(whole)
    assert heard(client, len(whole)) == whole.upper()


@pytest.mark.parametrize("pieces", [[b"MARK COMMIT\0"], [b"MA", b"RK CO", b"MMIT\0"], [b"MARK", b"COMMIT\0"]])
def test_words_are_held_that_follow_others(connect, server, proxy, pieces):
    """On the same connection; the same words without these pass."""
    client, other = connect(), connect()
    has_come = proxy.hold(after=b"MARK", answer=False)
    for each in (client, other):
        each.sendall(b"COMMIT\0")
        assert heard(each, 7) == b"COMMIT\0"
    for piece in pieces[:-1]:
        client.sendall(piece)
        assert heard(client, len(piece)) == piece
    other.sendall(b"COMMIT\0")
    assert heard(other, 7) == b"COMMIT\0"
    assert not has_come.is_set()
    client.sendall(pieces[-1])
    assert has_come.wait(PATIENCE)
    proxy.let_go()
    assert heard(client, len(pieces[-1])) == pieces[-1]


def test_words_are_held_themselves(connect, server, proxy):
    """The server does not hear them, if the connection is reset then."""
    client = connect()
    has_come = proxy.hold(b"now", answer=False)
    client.sendall(b"now")
    assert has_come.wait(PATIENCE)
    proxy.reset()
    wait_until(lambda: len(server.ends) == 1)
    assert server.heard == b""


def test_an_answer_that_is_held_may_be_swallowed_by_a_black_hole(connect, proxy):
    """Cut off with a commit in flight: whatever is asked of the proxy next holds for it, too."""
    client = connect()
    has_come = proxy.hold()
    client.sendall(b"COMMIT\0")
    assert has_come.wait(PATIENCE)
    proxy.black_hole()
    assert hears_nothing(client)
    proxy.pass_on()
    assert heard(client, 7) == b"COMMIT\0"


def test_postgres_is_reached_through_it(postgres_server):
    """Over the server's Unix socket. A commit whose answer is held has been carried out."""
    with Proxy(postgres_server.folder / ".s.PGSQL.5432") as proxy:
        with psycopg.connect(proxy.dsn) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
            connection.execute("CREATE TEMPORARY TABLE a AS SELECT 1")
            has_come = proxy.hold(b"COMMIT")
            committing = threading.Thread(target=connection.commit)
            committing.start()
            assert has_come.wait(PATIENCE)
            proxy.let_go()
            committing.join(PATIENCE)
        wait_until(lambda: proxy.connections == 0)


@pytest.mark.parametrize("verb", ["pass_on", "black_hole", "refuse", "leave_clients_hanging", "leave_server_hanging"])
def test_its_end_is_silent_whatever_goes_on(server, caplog, verb):
    """What asyncio says of connections that end with the proxy would stand among the findings of a test."""
    with contextlib.ExitStack() as clients:
        with Proxy(server.address) as proxy:
            for _ in range(3):
                client = clients.enter_context(socket.create_connection(("127.0.0.1", proxy.port), PATIENCE))
                client.sendall(b"a")
                assert client.recv(1) == b"A"
            getattr(proxy, verb)()
            with contextlib.suppress(OSError):
                client.sendall(b"b")
        assert caplog.messages == []

"""Targets of several kinds on loopback that can be broken and mended, each by its name: real servers in this process.

A kind has `checks`, the lines of the configuration for each of its targets, and `break_` and `mend`. `slow`: seconds
more than a check's interval after which an outage shows itself.
"""

import socket
import socketserver
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import urlopen

import psycopg

from dns_server import Zone
from held_ports import hold_port, number_of
from postgres_versions import server

PULSE = 0.5
"""Seconds between the signals of what reports to the agent."""

GRACE = 10
"""Seconds for which what reports may be silent beyond its interval, which is as long as a kill and a start take."""


class Server(ThreadingHTTPServer):
    """A server on loopback in threads of its own."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, handler):
        super().__init__(("127.0.0.1", 0), handler)
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def port(self):
        return self.server_address[1]

    def handle_error(self, request, client_address):
        """Say nothing: clients that are killed leave in the middle."""


class Quiet(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def log_message(self, *_):
        """Say nothing."""

    def do_GET(self):
        self.take()

    def do_POST(self):
        self.take()

    def answer(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()


class Kind:
    """Targets of one kind. `broken`: the names of those that are."""

    slow = 0.0

    def __init__(self, names):
        self.names = names
        self.broken = set()

    def break_(self, name):
        self.broken.add(name)

    def mend(self, name):
        self.broken.discard(name)

    def checks(self):
        for name in self.names:
            yield f'[[check]]\nname = "{name}"\n{self.check(name)}'

    def close(self):
        """Let go of what outlives this process."""


class Http(Kind):
    """A path of one server for each: 503 while it is broken."""

    def __init__(self, names):
        super().__init__(names)
        kind = self

        class Handler(Quiet):
            def take(self):
                self.answer(503 if self.path.strip("/") in kind.broken else 200)

        self.server = Server(Handler)

    def check(self, name):
        return f'url = "http://127.0.0.1:{self.server.port}/{name}"'


class Tcp(Kind):
    """A port for each, which nobody listens on while it is broken."""

    def __init__(self, names):
        super().__init__(names)
        self.listeners = {}
        self._held = {name: hold_port() for name in names}
        self.ports = {name: number_of(held) for name, held in self._held.items()}
        for name in names:
            self._listen(name)

    def check(self, name):
        return f'url = "tcp://127.0.0.1:{self.ports[name]}"'

    def break_(self, name):
        super().break_(name)
        listener = self.listeners.pop(name)
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()

    def mend(self, name):
        self._listen(name)
        super().mend(name)

    def _listen(self, name):
        listener = self.listeners[name] = socket.create_server(("127.0.0.1", self.ports[name]), backlog=64)
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def _accept(self, listener):
        while True:
            try:
                stream, _ = listener.accept()
            except OSError:
                return
            stream.close()


class Dns(Kind):
    """A name of one server for each, which that does not know while it is broken."""

    def __init__(self, names):
        super().__init__(names)
        zone = self.zone = Zone()
        zone.records = [(f"{name}.test.", "A", "192.0.2.1") for name in names]
        kind = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                data, stream = self.request
                with kind.lock:
                    known = [each for each in zone.records if each[0].removesuffix(".test.") not in kind.broken]
                    answer = Zone(known).answer(data)
                stream.sendto(answer, self.client_address)

        self.lock = threading.Lock()
        self.server = socketserver.ThreadingUDPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def check(self, name):
        return f'url = "dns://127.0.0.1:{self.server.server_address[1]}/{name}.test?type=A"'


class Push(Kind):
    """Each reports to the agent, as long as it is not broken."""

    slow = GRACE + 2.0

    def __init__(self, names):
        super().__init__(names)
        self._held = hold_port()
        self.port = number_of(self._held)
        threading.Thread(target=self._report, daemon=True).start()

    def checks(self):
        yield f'[push]\nlisten = "127.0.0.1:{self.port}"'
        yield from super().checks()

    def check(self, name):
        return f'url = "push://{name}"\ntoken = "{self._token(name)}"\ninterval = "2s"\ngrace = "{GRACE}s"'

    @staticmethod
    def _token(name):
        return f"{name}-0123456789abcdef"

    def _report(self):
        while True:
            for name in self.names:
                if name not in self.broken:
                    try:
                        with urlopen(f"http://127.0.0.1:{self.port}/push/{self._token(name)}", timeout=2):
                            pass
                    except OSError:
                        pass
            time.sleep(PULSE)


class Postgres(Kind):
    """A database of one server for each, which lets nobody in while it is broken."""

    def __init__(self, names):
        super().__init__(names)
        self._held = hold_port()
        self.port = number_of(self._held)
        self.server = server(17, listen_addresses="127.0.0.1", port=self.port)
        self.server.dsn += f" port={self.port}"
        self.server.start()
        self._do(*(f"CREATE DATABASE {name}" for name in names))

    def check(self, name):
        return f'url = "postgresql://postgres@127.0.0.1:{self.port}/{name}"'

    def break_(self, name):
        self._do(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        super().break_(name)

    def mend(self, name):
        super().mend(name)
        self._do(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")

    def close(self):
        self.server.close()

    def _do(self, *statements):
        with psycopg.connect(f"host=127.0.0.1 port={self.port} user=postgres", autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)


KINDS = {"http": Http, "tcp": Tcp, "dns": Dns, "push": Push, "postgres": Postgres}


class Targets:
    """So many targets, of these kinds in turn. `outages`: (target, from, until) of each."""

    def __init__(self, count, kinds=tuple(KINDS)):
        self.names = [f"t{number}" for number in range(count)]
        self.kinds = [KINDS[kind](self.names[number :: len(kinds)]) for number, kind in enumerate(kinds)]
        self.kind_of = {name: kind for kind in self.kinds for name in kind.names}
        self.broken = {}
        self.outages = []

    def checks(self):
        """The lines of the configuration."""
        for kind in self.kinds:
            yield from kind.checks()

    def break_(self, name):
        self.kind_of[name].break_(name)
        self.broken[name] = time.time()

    def mend(self, name):
        self.kind_of[name].mend(name)
        self.outages.append((name, self.broken.pop(name), time.time()))

    def slow(self, name):
        """Seconds beyond a check's interval after which an outage of that target shows itself."""
        return self.kind_of[name].slow

    def close(self):
        for kind in self.kinds:
            kind.close()

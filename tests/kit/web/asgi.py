"""Calls of an ASGI app without a server: what is sent stands in the test, byte by byte."""

import json
from contextlib import asynccontextmanager
from urllib.parse import unquote

import anyio

from kit import PATIENCE, until


class Answered:
    """What came back: a status, a head and a body."""

    def __init__(self, messages):
        start, *rest = messages
        self.status = start["status"]
        self.headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in start["headers"]}
        self.body = b"".join(message.get("body", b"") for message in rest)

    def __repr__(self):
        return f"<{self.status} {self.body[:2000]!r}>"

    @property
    def json(self):
        """The body as JSON."""
        return json.loads(self.body)


class Message:
    """A server-sent event."""

    def __init__(self, text):
        lines = [line.split(": ", 1) for line in text.splitlines()]
        fields = {line[0]: line[-1] for line in lines}
        self.id, self.kind = fields.get("id"), fields.get("event")
        self.data = json.loads(fields["data"]) if "data" in fields else None

    def __repr__(self):
        return f"<{self.kind} {self.id} {self.data}>"


class Streaming:
    """What has come of an answer that goes on. A reader may stop reading."""

    def __init__(self):
        self.start = None
        self.pieces = []
        self.is_over = False
        self.is_complete = False
        self._asked = False
        self._left = anyio.Event()
        self._flows = anyio.Event()
        self._flows.set()

    @property
    def messages(self):
        """The events so far."""
        texts = b"".join(self.pieces).decode().split("\n\n")[:-1]
        return [each for each in map(Message, texts) if each.kind is not None]

    def of(self, kind):
        """Return the data of the events of one kind."""
        return [each.data for each in self.messages if each.kind == kind]

    @property
    def events(self):
        """What is told in them, one after another."""
        return [event for data in self.of("changes") for event in data["events"]]

    async def until(self, holds):
        """Wait until it holds for the messages so far."""
        await until(lambda: holds(self.messages))

    async def until_over(self):
        """Wait until the answer has ended."""
        await until(lambda: self.is_over)

    def stop_reading(self):
        """Let the server's buffer be full."""
        self._flows = anyio.Event()

    def go_on_reading(self):
        """Take what comes."""
        self._flows.set()

    def leave(self):
        """Hang up."""
        self._left.set()

    async def receive(self):
        """Give the request, and later that the caller has left."""
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def take(self, message):
        """Take a piece, as a server does whose buffer may be full."""
        if message["type"] == "http.response.start":
            self.start = message
            return
        self.pieces.append(message.get("body", b""))
        self.is_complete = not message.get("more_body", False)
        await self._flows.wait()


class Caller:
    """Calls an app as a server would, with headers of its own in each request."""

    def __init__(self, app, *, root_path="", headers=None):
        self.app = app
        self.root_path = root_path
        self.headers = headers or {}

    async def __call__(self, method, target, body=None, *, chunks=None, **headers):
        """Send one request. `body`: JSON, or bytes as they are. `chunks`: pieces of a body, one after another."""
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        named = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if data and "content-type" not in named:
            named["content-type"] = "application/json"
        return await self.send(self.scope(method, target, named), [data] if chunks is None else chunks)

    def scope(self, method, target, headers):
        """Return the ASGI scope of a request."""
        path, _, query = target.partition("?")
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": self.root_path + unquote(path),
            "raw_path": (self.root_path + path).encode(),
            "root_path": self.root_path,
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers.items()],
            "client": ("127.0.0.1", 50_000),
            "server": ("127.0.0.1", 80),
        }

    async def send(self, scope, chunks):
        """Let the app answer, and return what it sent."""
        rest, sent = list(chunks), []

        async def receive():
            if not rest:
                return {"type": "http.disconnect"}
            piece = rest.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(rest)}

        async def take(message):
            sent.append(message)

        with anyio.fail_after(PATIENCE):
            await self.app(scope, receive, take)
        return Answered(sent) if sent else None

    @asynccontextmanager
    async def stream(self, target, **headers):
        """Open a stream of server-sent events, and leave it at the end of the block."""
        stream = Streaming()
        scope = self.scope("GET", target, {**self.headers, **{k.replace("_", "-"): v for k, v in headers.items()}})

        async def run():
            await self.app(scope, stream.receive, stream.take)
            stream.is_over = True

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            yield stream
            stream.leave()
            await stream.until_over()

    async def get(self, target, **headers):
        """Read something."""
        return await self("GET", target, **headers)

    async def put(self, target, body=None, **headers):
        """Put something."""
        return await self("PUT", target, body, **headers)

    async def patch(self, target, body=None, **headers):
        """Change something."""
        return await self("PATCH", target, body, **headers)

    async def post(self, target, body=None, **headers):
        """Do something."""
        return await self("POST", target, body, **headers)

    async def delete(self, target, **headers):
        """Remove something."""
        return await self("DELETE", target, **headers)

"""Calls of an ASGI app without a server: what is sent stands in the test, byte by byte."""

import json
from urllib.parse import unquote

import anyio

from kit import PATIENCE


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

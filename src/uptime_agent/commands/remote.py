"""The control API of a running agent, as commands ask it."""

# ruff: noqa: PLC0415 - as in cli.py

from __future__ import annotations

import json
import os
import socket
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn
from urllib.parse import quote, urlencode, urlsplit

import click
from attrs import frozen

from ..output import BAD_USAGE, FAILED, end

if TYPE_CHECKING:
    from ..config import Api

WITHIN_S: Final = 30.0
"""Seconds without an answer."""

MOST_READ: Final = 64 * 1024 * 1024
"""Bytes of an answer."""

TOKEN: Final = "TIMERQUEUE_TOKEN"  # noqa: S105 - the name of a variable
_UNIX: Final = "unix:"


class NotAnswering(Exception):
    """No agent answers. The text says where, and why."""


@frozen
class Answered:
    """The answer to a request. `body`: JSON; None: there is none."""

    status: int
    body: Any

    @property
    def is_good(self) -> bool:
        """Whether the agent has done what was asked."""
        return self.status < HTTPStatus.BAD_REQUEST

    @property
    def why(self) -> str:
        """Why the agent refuses."""
        detail = self.body.get("detail") if isinstance(self.body, dict) else None
        return str(detail or f"the agent answers {self.status}")


class _Local(HTTPConnection):
    """A connection over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=WITHIN_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(WITHIN_S)
        self.sock.connect(self._path)


@frozen
class Remote:
    """Where an agent is asked. `path`: of its Unix socket; `url`: over TCP. `token`: None over a socket of ours."""

    path: str | None = None
    url: str | None = None
    token: str | None = None

    def __str__(self) -> str:
        return str(self.path or self.url)

    def ask(
        self, method: str, path: str, body: Any = None, *, query: Mapping[str, Any] | None = None, **more: str
    ) -> Answered:
        """Send a request, and return its answer. Raises NotAnswering."""
        target = path + (f"?{urlencode(query, doseq=True)}" if query else "")
        data = None if body is None else json.dumps(body).encode()
        headers = {} if data is None else {"Content-Type": "application/json"}
        headers |= {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        headers |= {name.replace("_", "-"): value for name, value in more.items()}
        connection, before = self._connection()
        try:
            connection.request(method, before + target, data, headers)
            answer = connection.getresponse()
            text = answer.read(MOST_READ)
            return Answered(answer.status, json.loads(text) if text else None)
        except (OSError, HTTPException) as exc:
            raise NotAnswering(f"no agent answers at {self}: {_reason(exc)}") from None
        except ValueError:
            raise NotAnswering(f"what answers at {self} is no agent") from None
        finally:
            connection.close()

    def _connection(self) -> tuple[HTTPConnection, str]:
        if self.path is not None:
            return _Local(self.path), ""
        split = urlsplit(self.url or "")
        host, before = split.hostname or "", split.path.rstrip("/")
        if split.scheme == "https":
            return HTTPSConnection(host, split.port, timeout=WITHIN_S, context=ssl.create_default_context()), before
        return HTTPConnection(host, split.port, timeout=WITHIN_S), before


def _reason(error: OSError | HTTPException) -> str:
    """Numbers of TLS and of name servers are none of the system."""
    if isinstance(error, OSError) and error.errno and not isinstance(error, (ssl.SSLError, socket.gaierror)):
        return os.strerror(error.errno).lower()
    return getattr(error, "verify_message", None) or getattr(error, "strerror", None) or str(error) or "no answer"


def _token() -> str | None:
    """Files of secrets end in a newline."""
    return os.environ.get(TOKEN, "").strip() or None


def remote_at(place: str, option: str = "--at") -> Remote:
    """Read a place: http://HOST:PORT, https://..., or unix:PATH. Raises UsageError."""
    token = _token()
    if place.startswith(_UNIX):
        return Remote(path=place.removeprefix(_UNIX), token=token)
    try:
        split = urlsplit(place)
        is_right = split.scheme in {"http", "https"} and split.hostname and split.port != 0 and "@" not in split.netloc
        is_right = is_right and place.isprintable() and " " not in place
    except ValueError:
        is_right = False
    if not is_right:
        raise click.UsageError(f"{option}: expected http://HOST:PORT, https://HOST or unix:PATH, found {place!r}")
    return Remote(url=place, token=token)


def remote_of(file: Path) -> Remote | None:
    """Find the agent of a configuration. None: the file has no [api]."""
    from ..config import read_config
    from ..output import config_or_end

    return remote_with(config_or_end(lambda: read_config(file, os.environ, needs_secrets=False)).api)


def remote_with(api: Api | None) -> Remote | None:
    """Return the agent with these settings. None: it has no [api]."""
    return None if api is None else Remote(path=str(api.socket), token=_token())


def agent_or_end(file: Path | None, at: str | None, option: str = "--at") -> Remote:
    """Find the agent, or end with the reason. `option`: names the place `at`."""
    if (file is None) == (at is None):
        raise click.UsageError(f"say which agent: either its FILE, or {option} URL")
    if at is not None:
        return remote_at(at, option)
    assert file is not None
    found = remote_of(file)
    if found is None:
        end(
            f"{file} has no [api], so its agent cannot be asked: add the line [api], and start the agent again",
            BAD_USAGE,
        )
    return found


def asked_or_end(remote: Remote, method: str, path: str, body: Any = None, **more: Any) -> Answered:
    """Ask, and end with the reason unless the answer is good."""
    try:
        answer = remote.ask(method, path, body, **more)
    except NotAnswering as exc:
        end(str(exc), FAILED)
    if not answer.is_good:
        refused(answer)
    return answer


def refused(answer: Answered) -> NoReturn:
    """End with why the agent refuses."""
    wrongly = {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}
    end(answer.why, BAD_USAGE if answer.status in wrongly else FAILED)


def path_of(id: str, act: str = "") -> str:
    """Return the path of a job, or of an act on it."""
    return f"/v1/jobs/{quote(id, safe='')}{f'/{act}' if act else ''}"

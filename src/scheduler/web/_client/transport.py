"""One request and its answer: bounded in time, and sent again only where that is safe. Any thread."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse
from threading import Event
from typing import Any, Final

from attrs import frozen

from timerqueue import Clock

from .address import Address, address_of
from .errors import Unreachable
from .refusals import refusal_of

_WAITS: Final = (0.1, 0.5)
"""Seconds before the second and the third try."""

_PIECE: Final = 64 * 1024
"""Bytes that are read at a time."""

_LARGEST: Final = 64 * 1024 * 1024
"""Bytes of an answer."""

_SAFE: Final = frozenset({"GET", "PUT", "DELETE"})
"""Methods that may be carried out twice."""


class _NotConnected(ConnectionError):
    """Nothing was sent."""


@frozen
class Answered:
    """`body`: JSON, or the text of something else."""

    status: HTTPStatus
    body: Any
    headers: Mapping[str, str]


class Transport:
    """Sends requests to an API, or to the address that it names with 421."""

    def __init__(self, address: Address, token: str | None, timeout: float, clock: Clock) -> None:
        self.address = address
        self._owner: Address | None = None
        self._timeout = timeout
        self._clock = clock
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def __repr__(self) -> str:
        return f"<Transport to {self.address.text}>"  # never the token

    def ask(self, method: str, target: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answered:
        """Return a good answer. Raises the library's errors, and Unreachable."""
        sent = {**self._headers, **(headers or {}), "Connection": "close"}
        data = None
        if body is not None:
            data = json.dumps(body, allow_nan=False).encode()
            sent["Content-Type"] = "application/json"
        may_repeat = method in _SAFE and not {"If-None-Match", "If-Match"} & sent.keys()
        answer = self._tried(method, target, data, sent, may_repeat=may_repeat)
        if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
            raise refusal_of(answer.status, answer.body)
        return answer

    def _tried(
        self, method: str, target: str, data: bytes | None, headers: Mapping[str, str], *, may_repeat: bool
    ) -> Answered:
        is_sent = False
        for wait in (*_WAITS, None):
            at = self._owner or self.address
            try:
                return self._followed(at, method, target, data, headers)
            except (OSError, HTTPException) as exc:
                is_sent = is_sent or not isinstance(exc, _NotConnected)
                self._owner = None  # another process may own the scheduler now
                if wait is None or (is_sent and not may_repeat):
                    raise _unreachable(at, method, target, exc, is_sent=is_sent and method != "GET") from exc
                Event().wait(wait)
        raise AssertionError  # the last try returns or raises

    def _followed(
        self, at: Address, method: str, target: str, data: bytes | None, headers: Mapping[str, str]
    ) -> Answered:
        answer = self._sent(at, method, target, data, headers)
        if self._owner is not None and answer.status is HTTPStatus.MISDIRECTED_REQUEST:  # it was the owner once
            self._owner = None
            answer = self._sent(self.address, method, target, data, headers)
        if answer.status is HTTPStatus.SERVICE_UNAVAILABLE:  # not sent again: the change may hold
            self._owner = None
        if answer.status is HTTPStatus.MISDIRECTED_REQUEST:
            self._owner = _owner_of(answer)
            return self._sent(self._owner, method, target, data, headers)
        return answer

    def _sent(self, at: Address, method: str, target: str, data: bytes | None, headers: Mapping[str, str]) -> Answered:
        deadline = self._clock.monotonic() + self._timeout
        connection = at.connection(self._timeout)
        try:
            _connect(connection)
            connection.request(method, f"{at.prefix}{target}", data, dict(headers))
            response = connection.getresponse()
            text = self._read(response, deadline)
        finally:
            connection.close()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Answered(_status_of(response.status), _json_of(text, found), found)

    def _read(self, response: HTTPResponse, deadline: float) -> bytes:
        found = bytearray()
        while piece := response.read1(_PIECE):
            found += piece
            if len(found) > _LARGEST:
                msg = f"the answer has more than {_LARGEST:,} bytes"
                raise HTTPException(msg)
            if self._clock.monotonic() > deadline:
                msg = f"the answer has not come within {self._timeout:g} s"
                raise TimeoutError(msg)
        return bytes(found)


def _connect(connection: HTTPConnection) -> None:
    try:
        connection.connect()
    except OSError as exc:
        raise _NotConnected(str(exc) or type(exc).__name__) from exc


def _status_of(number: int) -> HTTPStatus:
    try:
        return HTTPStatus(number)
    except ValueError:
        msg = f"the API answered with {number}, which is no status"
        raise HTTPException(msg) from None


def _json_of(data: bytes, headers: Mapping[str, str]) -> Any:
    """Return what the body says; text of proxies stays text."""
    if "json" not in headers.get("content-type", ""):
        return data.decode("utf-8", "replace") if data else None
    try:
        return json.loads(data)
    except ValueError:
        msg = "the answer is not the JSON that it says it is: perhaps it was cut off"
        raise HTTPException(msg) from None


def _owner_of(answer: Answered) -> Address:
    owner = answer.body.get("owner") if isinstance(answer.body, dict) else None
    try:
        return address_of(owner)
    except ValueError:
        raise refusal_of(answer.status, answer.body) from None


def _unreachable(at: Address, method: str, target: str, error: Exception, *, is_sent: bool) -> Unreachable:
    done = "it may have been carried out" if is_sent else "nothing has changed"
    why = str(error) or type(error).__name__
    return Unreachable(f"{method} {target.partition('?')[0]} at {at.text} was not answered: {why}; {done}")

"""Signals by HTTP.

    /push/TOKEN         it is well              /push/TOKEN/start    it has begun
    /push/TOKEN/fail    it is not               /push/TOKEN/log      a line for its history
    /push/TOKEN/3       it exited with 3        ?rid=ID              which run of it

PUT is like POST. GET and HEAD count only if configured, as crawlers send them unasked. OK means that the signal and its
consequences are stored. Unknown tokens are answered like known ones.
"""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable
from typing import Final

from timerqueue import Clock

from ..checks import Said, Signal, log_of
from ..web import HttpAnswer, HttpRequest, send_again

STEP: Final = 0.05
"""Seconds: answers leave at multiples of them."""

_POSTS: Final = frozenset({"POST", "PUT"})
_GETS: Final = frozenset({"GET", "HEAD"})
_PATH: Final = re.compile(r"/push/([A-Za-z0-9_-]{1,200})(?:/(start|fail|log|[0-9]{1,3}))?")
_RUN: Final = re.compile(r"(?:^|&)rid=([A-Za-z0-9_-]{1,64})(?:&|$)")
_HIGHEST_CODE: Final = 255

_OK: Final = HttpAnswer(200, "OK")
_NOT_FOUND: Final = HttpAnswer(404, "there is nothing here: signals go to /push/TOKEN")
_NO_SUCH_METHOD: Final = HttpAnswer(405, "signals are sent by POST", (("Allow", "POST, PUT"),))
NOT_BY_GET: Final = "a GET, which is no signal: send it by POST, or say get = true in [push]"

Take = Callable[[str, Signal, str], Awaitable[bool]]
"""Takes a token, its signal and the peer; returns once stored. False: unknown token. Raises NotKept."""


class NotKept(Exception):
    """A signal was not stored: its sender should repeat it."""


class PushRequests:
    """Requests to the push port. `takes_get`: whether a GET is a signal."""

    def __init__(self, clock: Clock, take: Take, *, takes_get: bool = False) -> None:
        self._clock = clock
        self._take = take
        self._takes_get = takes_get
        self._took = 0.0
        """Seconds, with the last known token."""

    async def answer(self, request: HttpRequest, peer: str) -> HttpAnswer:
        """Take and answer a request's signal."""
        path, _, query = request.target.partition("?")
        found = _PATH.fullmatch(path)
        said, code = (None, None) if found is None else _said(found[2])
        if found is None or said is None:
            return _NOT_FOUND
        if request.method not in _POSTS | _GETS:
            return _NO_SUCH_METHOD
        run, now = _RUN.search(query), self._clock.wall()
        counts = self._takes_get or request.method in _POSTS
        signal = Signal(said=Said.LOG, at=now, log=NOT_BY_GET)
        if counts:
            signal = Signal(said=said, at=now, run=run and run[1], code=code, log=log_of(request.body))
        began, is_ours = self._clock.monotonic(), False
        try:
            is_ours = await self._take(found[1], signal, peer)
            answer = _OK if counts else _NO_SUCH_METHOD
        except NotKept as exc:
            answer = send_again(str(exc))
        await self._wait(began, is_ours=is_ours)
        return answer

    async def _wait(self, began: float, *, is_ours: bool) -> None:
        """The answer's time must not tell whether a token is known."""
        took = self._clock.monotonic() - began
        if is_ours:
            self._took = took
        await self._clock.sleep(math.ceil(max(took, self._took, STEP) / STEP) * STEP - took)


def _said(word: str | None) -> tuple[Said | None, int | None]:
    if word is None:
        return Said.SUCCESS, None
    if not word.isdigit():
        return Said(word), None
    code = int(word)
    if code > _HIGHEST_CODE:
        return None, None
    return (Said.FAIL if code else Said.SUCCESS), code

"""The stream of events, as server-sent events."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from itertools import count
from typing import Final

import anyio
from attrs import frozen

from .._protocol import FLAG, Answer, Ask, Feed, Stream, given, unavailable
from .frames import GROUPS, Frames, frames_of, message

MOST_STREAMS: Final = 1_000

MOST_BEHIND: Final = 8
"""Frames that a stream may be behind: two seconds."""

QUIET_S: Final = 15.0
"""Seconds without an event after which a comment shows that the stream lives."""

FIRST: Final = b"retry: 1000\n\n"
ALIVE: Final = b": alive\n\n"
FAREWELL: Final = message("end", {})

_LONGEST_DIGITS: Final = 18

_numbers: Final = count()


@frozen(kw_only=True)
class EventsAsked:
    """Which events."""

    runs: bool = given(FLAG, False, "Also runs that begin or succeed.")  # noqa: FBT003 - a default


async def stream_events(ask: Ask[EventsAsked, None]) -> Answer:
    """Stream what happens, as server-sent events. Last-Event-ID goes on where an earlier stream ended.

    "changes": the last events about each job, at most four messages a second. "lagged": events are left out, so that
    the client reads the lists again. "end": the scheduler has stopped, or the caller has no access any more.
    """
    frames = frames_of(ask.s, ask.means.clock, has_runs=ask.query.runs)
    if frames.streams >= MOST_STREAMS:
        raise unavailable(f"{MOST_STREAMS} streams are open: close one, or ask another node")
    frames.catch_up()
    feed = partial(_feed, frames, ask.headers.get("last-event-id"), next(_numbers) % GROUPS)
    return Answer(HTTPStatus.OK, stream=Stream(feed, lambda: frames.is_over, FAREWELL))


async def _feed(frames: Frames, last_id: str | None, group: int, send: Feed) -> None:
    frames.streams += 1
    try:
        await _follow(frames, last_id, group, send)
    finally:
        frames.streams -= 1


async def _follow(frames: Frames, last_id: str | None, group: int, send: Feed) -> None:
    position = frames.position if last_id is None else _position_of(last_id, frames)
    news = frames.after(position)
    await send(FIRST + (_lagged(frames) if news.is_lagged else b""))
    for frame in news.frames:
        await send(frame.data)
    position = news.position
    while not frames.is_over:
        with anyio.move_on_after(QUIET_S) as quiet:
            await frames.wait(position, group)
        if quiet.cancelled_caught:
            await send(ALIVE)
        news = frames.after(position, most=MOST_BEHIND)
        pieces = _lagged(frames) if news.is_lagged else b"".join(frame.data for frame in news.frames)
        position = news.position
        if pieces:
            await send(pieces)


def _lagged(frames: Frames) -> bytes:
    return message("lagged", {}, f"{frames.name}-{frames.position}")


def _position_of(last_id: str, frames: Frames) -> int:
    """Return the position that an id names. -1: none of these frames."""
    name, _, digits = last_id.partition("-")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= _LONGEST_DIGITS
    return int(digits) if name == frames.name and is_number else -1

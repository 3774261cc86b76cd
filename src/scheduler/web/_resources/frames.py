"""Events as frames: rendered once for all streams of an event loop, four times a second at most.

A stream keeps only its position, so a slow one costs no memory. It finds that frames are gone, and is told so.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary, ref

import anyio
from anyio.lowlevel import RunVar
from attrs import frozen

from timerqueue import Clock, system_random

from ..._running import SchedulerState
from ..._scheduler import Scheduler
from ..._shape import to_json
from ..._values import Event, NumberedEvent, Outcome, RunEnded, RunMissed, RunStarted

WINDOW_S: Final = 0.25
"""Seconds between two frames."""

MOST_READ: Final = 4_096
"""Events of a window that are looked at."""

LONGEST_FRAME: Final = 16 * 1024
"""Characters of the events in a frame, roughly."""

KEPT: Final = 64
"""Frames that a stream can go on from."""

GROUPS: Final = 10
"""Streams are woken one group after another: all at once, they would hold up jobs."""

LONGEST: Final = 200
"""Characters of a text."""

SHOWN: Final = frozenset(
    "event job_id scope state due started ended attempt lateness duration outcome retry_at first_due last_due count "
    "is_exact until at seconds agent is_us taken given jobs stands_for max_skew interval is_taken_over".split()
)
"""Keys of events. Others may hold secrets: arguments, results, errors."""

WITH_REASON: Final = frozenset({"JobChanged", "RunMissed", "ScopePaused"})


@frozen
class Frame:
    """`last`: the number of its last event."""

    last: int
    data: bytes


@frozen
class News:
    """The next frames of a stream, and its new position. `is_lagged`: the stream has missed frames."""

    frames: tuple[Frame, ...]
    position: int
    is_lagged: bool = False


class Frames:
    """Frames of one scheduler, for the streams of one event loop. `has_runs`: also runs that begin or succeed."""

    def __init__(self, s: Scheduler, clock: Clock, *, has_runs: bool) -> None:
        self._s = ref(s)
        self._clock = clock
        self._has_runs = has_runs
        self.name = f"{int(system_random()() * 2**48):012x}"
        """Tells positions of another process apart."""
        self._frames: deque[Frame] = deque()
        self.position = 0
        self._complete_since = 0
        """The position behind which no frame is gone."""
        self._looked_at = float("-inf")
        self._is_looking = False
        self._news = [anyio.Event() for _ in range(GROUPS)]
        self._waiting = [0] * GROUPS
        self.rendered = 0
        """How many frames were made."""
        self.streams = 0
        """How many streams are open."""

    @property
    def is_over(self) -> bool:
        s = self._s()
        return s is None or s.state is SchedulerState.STOPPED

    def catch_up(self) -> None:
        """Look if no stream has done so for a window."""
        if not self._is_looking and self._clock.monotonic() - self._looked_at >= WINDOW_S:
            self.look()

    def look(self) -> None:
        """Render what has happened since the last look."""
        self._looked_at = self._clock.monotonic()
        if (s := self._s()) is None:
            return
        page = s.events(self.position, limit=MOST_READ)
        if page.lagged:
            self._frames.clear()
            self._complete_since = page.events[0].number - 1 if page.events else page.last
        self.position = page.last
        if (data := self._rendered(page.events)) is not None:
            if len(self._frames) == KEPT:
                self._complete_since = self._frames.popleft().last
            self._frames.append(Frame(page.last, data))
            self.rendered += 1

    def after(self, position: int, *, most: int = KEPT) -> News:
        """Return the frames behind that position. More than `most`, and the stream has lagged."""
        found = tuple(frame for frame in self._frames if frame.last > position)
        if not self._complete_since <= position <= self.position or len(found) > most:
            return News((), self.position, is_lagged=True)
        return News(found, self.position)

    async def wait(self, position: int, group: int) -> None:
        """Return when there is news behind that position, or at the end."""
        while not self.is_over:
            news = self.after(position)
            if news.frames or news.is_lagged:
                return
            if self._is_looking:
                await self._woken(group)
            else:
                await self._look_for_all()

    async def _woken(self, group: int) -> None:
        self._waiting[group] += 1
        try:
            await self._news[group].wait()
        finally:
            self._waiting[group] -= 1

    async def _look_for_all(self) -> None:
        """Look until there is news, and wake all streams. One stream does it for the others."""
        self._is_looking = True
        try:
            made = self.rendered
            while made == self.rendered and not self.is_over:
                await self._clock.sleep(max(0.0, self._looked_at + WINDOW_S - self._clock.monotonic()))
                self.look()
            for group in filter(self._waiting.__getitem__, range(GROUPS)):
                self._wake(group)
                if not self.is_over:
                    await self._clock.sleep(WINDOW_S / GROUPS / 2)
        finally:
            self._is_looking = False
            waiting = [*filter(self._waiting.__getitem__, range(GROUPS))]
            for group in waiting[:1]:  # one of its streams looks from here on
                self._wake(group)

    def _wake(self, group: int) -> None:
        self._news[group].set()
        self._news[group] = anyio.Event()

    def _rendered(self, events: tuple[NumberedEvent, ...]) -> bytes | None:
        """Return the last event about each job or other thing. None: nothing is shown."""
        latest: dict[tuple[str, str], NumberedEvent] = {}
        for each in events:
            if self._has_runs or not _is_of_good_run(each.event):
                latest.pop(key := _thing(each.event), None)
                latest[key] = each
        if not latest:
            return None
        shown = _first_that_fit(map(_view, reversed(latest.values())))
        body = {"events": shown[::-1], "left_out": len(latest) - len(shown)}
        return message("changes", body, f"{self.name}-{events[-1].number}")


def _first_that_fit(views: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    found, left = list[Mapping[str, Any]](), LONGEST_FRAME
    for view in views:
        left -= len(json.dumps(view))
        if left < 0:
            break
        found.append(view)
    return found


def message(kind: str, body: Mapping[str, Any], id: str | None = None) -> bytes:
    """Return a server-sent event."""
    text = json.dumps(body, separators=(",", ":"), allow_nan=False)
    place = "" if id is None else f"id: {id}\n"
    return f"{place}event: {kind}\ndata: {text}\n\n".encode()


def _is_of_good_run(event: Event) -> bool:
    return isinstance(event, RunStarted) or (isinstance(event, RunEnded) and event.outcome is Outcome.SUCCEEDED)


def _thing(event: Event) -> tuple[str, str]:
    """Of a job, one event is shown of each of: its runs, its missed ticks, itself."""
    kind = "run" if isinstance(event, RunStarted | RunEnded) else "missed" if isinstance(event, RunMissed) else "job"
    job_id = getattr(event, "job_id", None)
    if job_id is not None:
        return kind, job_id
    return type(event).__name__, getattr(event, "scope", getattr(event, "agent", ""))


def _view(each: NumberedEvent) -> dict[str, Any]:
    return {"number": each.number, **dict(_shown(to_json(each.event)))}


def _shown(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        is_shown = name in SHOWN or (name == "reason" and values["event"] in WITH_REASON)
        if is_shown and value is not None:
            yield name, value[:LONGEST] if isinstance(value, str) and name != "job_id" else value


_known: Final[RunVar[WeakKeyDictionary[Scheduler, dict[bool, Frames]]]] = RunVar("_known")
"""Of each event loop: its streams share frames."""


def frames_of(s: Scheduler, clock: Clock, *, has_runs: bool) -> Frames:
    """Return the frames that all streams of this event loop share."""
    try:
        of_loop = _known.get()
    except LookupError:
        _known.set(of_loop := WeakKeyDictionary())
    found = of_loop.setdefault(s, {})
    if has_runs not in found:
        found[has_runs] = Frames(s, clock, has_runs=has_runs)
        found[has_runs].look()
    return found[has_runs]

from __future__ import annotations

from collections.abc import Callable, Mapping
from logging import getLogger
from typing import Any, Final, get_args

from attrs import frozen

from timerqueue import is_async

from .events import Event, Listener
from .telling import error_text, loggable

logger = getLogger(__name__)

_KINDS: Final[tuple[object, ...]] = get_args(Event)


@frozen
class NumberedEvent:
    """An event of `Scheduler.events`. Numbers begin at 1 in each scheduler, without holes."""

    number: int
    event: Event


@frozen(kw_only=True)
class EventPage:
    """Events in order, and `last`, the position after which to read on.

    `lagged`: events after the given position are gone, or the position is none of this scheduler.
    """

    events: tuple[NumberedEvent, ...]
    last: int
    lagged: bool


class Listeners:
    """Listeners are called in the order added. Their errors are logged."""

    def __init__(self) -> None:
        # One dict operation at a time instead of a lock: a finalizer may end a listener at any point.
        self._registrations: dict[object, Listener] = {}
        self.anybody: Mapping[object, Listener] = self._registrations
        """True if there are listeners. Ask before making a frequent event."""

    def add(self, listener: Callable[[Any], object], *kinds: type) -> Callable[[], None]:
        """Tell `listener` of events, until the returned callable is called.

        `kinds`: only events of these classes. Raises TypeError unless `listener` is a plain callable and all `kinds`
        are events.
        """
        _check(listener, kinds)
        registration = object()  # unique, should the same listener be added twice
        self._registrations[registration] = _of_kinds(listener, kinds) if kinds else listener

        def end() -> None:
            self._registrations.pop(registration, None)

        return end

    def tell(self, event: Event) -> None:
        for listener in self._registrations.copy().values():
            try:
                listener(event)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as exc:
                kind, error = type(event).__name__, error_text(exc)
                logger.exception("a listener raised on %s: %s", kind, error, exc_info=loggable(exc))


def _check(listener: object, kinds: tuple[object, ...]) -> None:
    if not callable(listener) or listener in _KINDS:
        msg = f"a listener must be something that can be called with an event, not {listener!r}"
        raise TypeError(msg)
    if is_async(listener):
        msg = f"a listener is called and not awaited: let a plain `def` hand the event to {listener!r}"
        raise TypeError(msg)
    for kind in kinds:
        if kind not in _KINDS:
            msg = f"a listener is told of kinds of event, such as RunEnded, RunMissed, not of {kind!r}"
            raise TypeError(msg)


def _of_kinds(listener: Callable[[Any], object], kinds: tuple[type, ...]) -> Listener:
    def told(event: Event) -> None:
        if isinstance(event, kinds):
            listener(event)

    return told

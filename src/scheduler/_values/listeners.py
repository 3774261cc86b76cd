"""Who is told what happens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from logging import getLogger

from .events import Event, Listener
from .telling import error_text, loggable

logger = getLogger(__name__)


class Listeners:
    """Callables that are told of every event, in the order in which they came.

    What one raises is logged and hurts nobody.
    """

    def __init__(self) -> None:
        # One operation of a dict at a time instead of a lock: a finalizer may end a listener in the middle of anything.
        self._registrations: dict[object, Listener] = {}
        self.anybody: Mapping[object, Listener] = self._registrations
        """True if anybody listens. Ask before making an event that is made often."""

    def add(self, listener: Listener) -> Callable[[], None]:
        """Tell `listener` from now on, until the callable that this returns is called."""
        if not callable(listener):
            msg = f"a listener must be something that can be called with an event, not {listener!r}"
            raise TypeError(msg)
        registration = object()  # one of its own, should the same listener be added twice
        self._registrations[registration] = listener

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

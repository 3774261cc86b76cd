"""Who is told what happens."""

from __future__ import annotations

from collections.abc import Callable
from logging import getLogger
from threading import Lock

from ._events import Event, Listener

logger = getLogger(__name__)


class Listeners:
    """Callables that are told of every event, in the order in which they came.

    What one raises is logged and hurts nobody.
    """

    def __init__(self) -> None:
        self._registrations: tuple[list[Listener], ...] = ()
        self._lock = Lock()
        self.anybody = False
        """Whether anybody listens. Ask before making an event that is made often."""

    def add(self, listener: Listener) -> Callable[[], None]:
        """Tell `listener` from now on, until the callable that this returns is called."""
        if not callable(listener):
            msg = f"a listener must be something that can be called with an event, not {listener!r}"
            raise TypeError(msg)
        registration = [listener]  # one of its own, should the same listener be added twice
        with self._lock:
            self._registrations = (*self._registrations, registration)
            self.anybody = True

        def end() -> None:
            with self._lock:
                self._registrations = tuple(other for other in self._registrations if other is not registration)
                self.anybody = bool(self._registrations)

        return end

    def tell(self, event: Event) -> None:
        for (listener,) in self._registrations:
            try:
                listener(event)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException:  # a cancellation too: nothing is awaited here, so it is not ours
                logger.exception("a listener raised on %s", type(event).__name__)

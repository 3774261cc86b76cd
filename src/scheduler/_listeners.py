"""Who is told what happens."""

from __future__ import annotations

from collections.abc import Callable
from logging import getLogger

from ._events import Event, Listener

logger = getLogger(__name__)


class Listeners:
    """Callables that are told of every event, in the order in which they came.

    What one raises is logged and hurts nobody.
    """

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()
        self.anybody = False
        """Whether anybody listens. Ask before making an event that is made often."""

    def add(self, listener: Listener) -> Callable[[], None]:
        """Tell `listener` from now on, until the callable that this returns is called."""
        if not callable(listener):
            msg = f"a listener must be something that can be called with an event, not {listener!r}"
            raise TypeError(msg)
        self._listeners = (*self._listeners, listener)
        self.anybody = True

        def end() -> None:
            self._listeners = tuple(other for other in self._listeners if other is not listener)
            self.anybody = bool(self._listeners)

        return end

    def tell(self, event: Event) -> None:
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:
                logger.exception("a listener raised on %s", type(event).__name__)

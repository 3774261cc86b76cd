"""A control API over HTTP: read, add, change, pause and run the jobs of a scheduler.

`app(s, access=...)` is an ASGI app that any ASGI program mounts. It needs the extra `web`. Nothing is open by default.
"""

from .._scheduler import Scheduler
from ._app import App
from ._protocol import Access, GrantAccess

__all__ = ["Access", "GrantAccess", "app"]


def app(s: Scheduler, *, access: GrantAccess) -> App:
    """Return the control API of a scheduler as an ASGI app, to be mounted or served.

    `access`: is called with the ASGI scope of each request, and returns who asks and what they may, or None to refuse.
    It may be a coroutine function. Only /healthz and /readyz are answered without it.

    The app needs no lifespan: you run the scheduler. Its event loop may be the scheduler's, or one in another thread.
    """
    if not callable(access):
        msg = f"access must be a function that takes the ASGI scope of a request, not {access!r}"
        raise TypeError(msg)
    return App(s, access)

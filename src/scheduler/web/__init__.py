"""A control API over HTTP: read, add, change, pause and run the jobs of a scheduler.

`app(s, access=...)` is an ASGI app that any ASGI program mounts. It needs the extra `web`. Nothing is open by default.
`Client` has the verbs of a scheduler for other processes. It needs no extra.
"""

from typing import TYPE_CHECKING, Any

from .._scheduler import Scheduler
from ._client import ApiError, Client, NotAllowed, RemoteJob, RemoteRun, Summary, Unreachable
from ._elsewhere import Elsewhere

if TYPE_CHECKING:  # a client needs no ASGI toolkit
    from ._app import App
    from ._protocol import Access, GrantAccess

__all__ = [
    "Access",
    "ApiError",
    "Client",
    "Elsewhere",
    "GrantAccess",
    "NotAllowed",
    "RemoteJob",
    "RemoteRun",
    "Summary",
    "Unreachable",
    "app",
]


def app(s: Scheduler, *, access: "GrantAccess") -> "App":
    """Return the control API of a scheduler as an ASGI app, to be mounted or served.

    `access`: is called with the ASGI scope of each request, and returns who asks and what they may, or None to refuse.
    It may be a coroutine function. Only /healthz and /readyz are answered without it.

    The app needs no lifespan: you run the scheduler. Its event loop may be the scheduler's, or one in another thread.
    """
    from ._app import App  # noqa: PLC0415 - needs starlette

    if not callable(access):
        msg = f"access must be a function that takes the ASGI scope of a request, not {access!r}"
        raise TypeError(msg)
    return App(s, access)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in {"Access", "GrantAccess"}:
            msg = f"module 'scheduler.web' has no attribute {name!r}"
            raise AttributeError(msg)
        from . import _protocol  # noqa: PLC0415 - needs starlette

        return getattr(_protocol, name)


for _each in (ApiError, NotAllowed, Unreachable):  # a traceback names the module from which users import the error
    _each.__module__ = "scheduler.web"

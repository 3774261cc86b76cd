"""A control API over HTTP: read, add, change, pause and run the jobs of a scheduler.

`app(s, access=...)` is an ASGI app that any ASGI program mounts. It needs the extra `web`. Nothing is open by default.
`Client` has the verbs of a scheduler for other processes. It needs no extra.
"""

from typing import TYPE_CHECKING, Any

from .._scheduler import Scheduler
from ._client import ApiError, Client, NotAllowed, RemoteJob, RemoteRun, Summary, Unreachable
from ._elsewhere import Elsewhere

if TYPE_CHECKING:  # a client needs no ASGI toolkit
    from ._app import App, PlaceOf
    from ._protocol import (
        FLAG,
        INSTANT,
        TEXT,
        Access,
        Answer,
        Ask,
        GrantAccess,
        Nothing,
        Problem,
        Route,
        Routes,
        body_reader,
        given,
        optional,
        schema_of,
        whole,
    )
    from ._resources import durable, refuse_unless_running

__all__ = [
    "FLAG",
    "INSTANT",
    "TEXT",
    "Access",
    "Answer",
    "ApiError",
    "App",
    "Ask",
    "Client",
    "Elsewhere",
    "GrantAccess",
    "NotAllowed",
    "Nothing",
    "PlaceOf",
    "Problem",
    "RemoteJob",
    "RemoteRun",
    "Route",
    "Routes",
    "Summary",
    "Unreachable",
    "app",
    "body_reader",
    "durable",
    "given",
    "optional",
    "refuse_unless_running",
    "schema_of",
    "whole",
]


def _no_place(_id: str) -> None:
    return None


def app(s: Scheduler, *, access: "GrantAccess", routes: "Routes" = (), place_of: "PlaceOf" = _no_place) -> "App":
    """Return the control API of a scheduler as an ASGI app, to be mounted or served.

    `access`: is called with the ASGI scope of each request, and returns who asks and what they may, or None to refuse.
    It may be a coroutine function. Only /healthz and /readyz are answered without it.

    `routes`: further routes of the program, with scopes and audit as the others have them.
    `place_of`: returns where a job that the API may not change is defined, such as "jobs.toml:12", or None.

    The app needs no lifespan: you run the scheduler. Its event loop may be the scheduler's, or one in another thread.
    """
    from ._app import App  # noqa: PLC0415 - needs starlette
    from ._routes import ROUTES  # noqa: PLC0415

    if not callable(access):
        msg = f"access must be a function that takes the ASGI scope of a request, not {access!r}"
        raise TypeError(msg)
    return App(s, access, (*ROUTES, *routes), place_of)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            msg = f"module 'scheduler.web' has no attribute {name!r}"
            raise AttributeError(msg)
        from . import _app, _protocol, _resources  # noqa: PLC0415 - need starlette

        places = {"App": _app, "PlaceOf": _app, "durable": _resources, "refuse_unless_running": _resources}
        return getattr(places.get(name, _protocol), name)


for _each in (ApiError, NotAllowed, Unreachable):  # a traceback names the module from which users import the error
    _each.__module__ = "scheduler.web"

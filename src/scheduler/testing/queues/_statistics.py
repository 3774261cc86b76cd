"""The answers to `stats` and `stats-tube`, with every key of the real one; 0 for what a fake lacks."""

from __future__ import annotations

import os
import platform
from collections.abc import Collection
from typing import Any, Final

from ._session import COMMANDS, ServerSession, SessionServer

_COUNTED: Final = (
    *("put", "peek", "peek-ready", "peek-delayed", "peek-buried", "reserve", "reserve-with-timeout", "delete"),
    *("release", "use", "watch", "ignore", "bury", "kick", "touch", "stats", "stats-job", "stats-tube", "list-tubes"),
    *("list-tube-used", "list-tubes-watched", "pause-tube"),
)

assert {*_COUNTED} <= {"put", *COMMANDS}


def of_server(
    server: SessionServer, sessions: Collection[ServerSession], *, connections: int, uptime: int
) -> dict[str, Any]:
    """`connections`: how many there have been."""
    return {
        **server.jobs.counts(),
        **{f"cmd-{name}": server.commands[name] for name in _COUNTED},
        "job-timeouts": server.jobs.timeouts,
        "total-jobs": server.jobs.totals.total(),
        "max-job-size": server.longest_body,
        "current-tubes": len(server.tubes()),
        "current-connections": len(sessions),
        "current-producers": sum(each.has_put for each in sessions),
        "current-workers": sum(each.has_reserved for each in sessions),
        "current-waiting": sum(each.waits_until is not None for each in sessions),
        "total-connections": connections,
        "pid": os.getpid(),
        "version": '"fake"',
        "rusage-utime": "0.000000",
        "rusage-stime": "0.000000",
        "uptime": uptime,
        "binlog-oldest-index": 0,
        "binlog-current-index": 0,
        "binlog-records-migrated": 0,
        "binlog-records-written": 0,
        "binlog-max-size": 10_485_760,
        "draining": str(server.is_draining).lower(),
        "id": server.id,
        "hostname": platform.node(),
        "os": f'"{platform.version()}"',
        "platform": platform.machine(),
    }


def of_tube(server: SessionServer, sessions: Collection[ServerSession], tube: str) -> dict[str, Any]:
    jobs, now = server.jobs, server.now()
    watching = [each for each in sessions if tube in each.watching]
    left = jobs.pause_left(tube, now)
    return {
        "name": tube,
        **jobs.counts(tube),
        "total-jobs": jobs.totals[tube],
        "current-using": sum(each.using == tube for each in sessions),
        "current-watching": len(watching),
        "current-waiting": sum(each.waits_until is not None for each in watching),
        "cmd-delete": jobs.deletions[tube],
        "cmd-pause-tube": jobs.pauses_asked[tube],
        "pause": jobs.pauses.get(tube, 0) if left else 0,
        "pause-time-left": left,
    }

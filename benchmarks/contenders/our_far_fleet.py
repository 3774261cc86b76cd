"""Agents that share a PostgreSQL from which some of them are far: whether others that join get their part.

Whoever is far is behind a proxy that holds back whatever is said, in each direction. The rest is as in our_fleet.py.
"""

import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from child import Values, serve
from our_fleet import LEASE_S, MOVED, SETTLES_S, Member, ask, server

PARTS = "SELECT array_agg(n) FROM (SELECT count(*) AS n FROM timerqueue.shard GROUP BY owner ORDER BY owner) AS part"
SHARDS = 1_024


def far(*, jobs: int, rate: float, way_s: float, farthest_s: float, seconds: float) -> Values:
    """A fourth agent joins three that are far, one of them even more: the shards that it has after so many seconds, and
    how late all runs began before and since.
    """
    import fleet_members  # noqa: PLC0415 - these stand with the tests

    every = jobs / rate
    with ExitStack() as stack:
        started = stack.enter_context(server())
        config = {"every": every, "limit": 7}
        fleet = fleet_members.Fleet(started, Path(str(started.folder)), names="abcd", config=config)
        stack.enter_context(fleet)
        fleet.start(3, {"once": jobs})
        for member, way in zip(fleet.members, (way_s, farthest_s, way_s), strict=False):
            member.proxy.delay(way)
        time.sleep(2 * (SETTLES_S + every))
        joined = fleet_members.us_now()
        fleet.members[3].start()
        time.sleep(seconds)
        moved = ask(started, MOVED)[0]
        quiet = fleet_members.us_now()
        time.sleep(2 * LEASE_S)
        fleet.end()
        evidence = fleet.evidence(quiet=quiet, batch=jobs, limit=7)
    before = _late(evidence, joined - round(SETTLES_S * 1e6), joined)
    since = _late(evidence, joined, quiet)
    return {
        "fair_percent": moved / SHARDS * 400,
        "exits": fleet.exits,
        **{f"before_{key}": value for key, value in before.items()},
        **{f"since_{key}": value for key, value in since.items()},
    }


def _late(evidence: Any, since: int, until: int) -> Values:
    """How late runs began that were due between these."""
    first = (each[0] for each in evidence.by_tick.values())
    found = [each for each in first if since <= each.due - evidence.wall < until]
    late = sorted((each.at + evidence.wall - each.due) / 1e3 for each in found)
    shares = {"p50_ms": 0.5, "p99_ms": 0.99, "max_ms": 1.0}
    return {key: late[int(share * (len(late) - 1))] for key, share in shares.items()}


def behind(*, jobs: int, every_s: float, room: int, way_s: float, seconds: float) -> Values:
    """Two agents join one that cannot keep up, as it is far from the server and has room for few of its jobs."""
    from proxy import Proxy  # noqa: PLC0415 - it stands with the tests

    with server() as started, Proxy(started.folder / ".s.PGSQL.5432") as proxy, ExitStack() as stack:
        first = stack.enter_context(closing(Member(proxy.dsn, every=every_s, jobs=jobs, room=room)))
        proxy.delay(way_s)
        time.sleep(3 * every_s)
        first.figures()
        time.sleep(every_s)
        late = first.figures()["p50"]
        near = [stack.enter_context(closing(Member(started.dsn, every=every_s))) for _ in range(2)]
        time.sleep(seconds)
        parts = ask(started, PARTS)[0]
        for each in near:
            each.figures()
        time.sleep(every_s)
        theirs = max(each.figures()["p50"] for each in near)
        proxy.delay(0)
    return {"behind_s": late, "fair_percent": min(parts[1:]) / SHARDS * 300, "theirs_p50_ms": theirs * 1e3}


if __name__ == "__main__":
    serve({"fleet_far": far, "fleet_behind": behind}, distribution="timerqueue")

"""Agents that share a PostgreSQL, each a process: what a run costs, how work is shared out, how long a take-over takes.

The server is our own, on a Unix socket, with fsync on. Take-overs are played with the fleet of fleet_members.py,
and read from what its tasks wrote.
"""

import json
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from child import Unable, Values, serve
from meters import family_cpu_s, memory_mib

TESTS = Path(__file__).parents[2] / "tests" / "kit" / "servers"
MEMBER = Path(__file__).with_name("fleet_member.py")
sys.path.insert(0, str(TESTS))

LEASE_S = 3.0
LATER_S = 86_400.0
ON_TIME_S = 0.05
FOLLOWS_S = 10.0
"""Seconds after a trouble in which what is due is looked at."""

SETTLES_S = 8.0
"""Seconds after which agents that have come have their part."""

SOON_S = 0.5
"""Seconds from one look whether they have it to the next."""

SUCCEEDED = "SELECT count(*), count(DISTINCT (job_id, due_us)) FROM timerqueue.tick WHERE outcome = 'succeeded'"
STATEMENTS = "SELECT sum(calls) FROM pg_stat_statements WHERE query !~ 'pg_stat_statements'"
MOVED = "SELECT count(*) FROM chaos.shard WHERE owner = (SELECT max(epoch) FROM chaos.agent)"
OWNED = (
    "SELECT coalesce(array_agg(number), '{{}}') FROM chaos.shard JOIN chaos.agent ON epoch = owner WHERE name = '{}'"
)


class Member:
    """A process of fleet_member.py, which is told the rest."""

    def __init__(self, dsn: str, **config: Any) -> None:
        config["dsn"] = dsn
        self.process = subprocess.Popen(
            [sys.executable, MEMBER, json.dumps(config)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._read()

    def figures(self, say: str = "") -> dict[str, float]:
        """What has been since the last time. `say`: what it is to do before it tells that."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{say}\n")
        self.process.stdin.flush()
        return self._read()

    def close(self) -> None:
        """End it in order."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def _read(self) -> dict[str, float]:
        assert self.process.stdout is not None
        figures: dict[str, float] = json.loads(self.process.stdout.readline())
        return figures


@contextmanager
def server(*, counts_statements: bool = False) -> Iterator[Any]:
    """A PostgreSQL of our own; one that counts statements is one of those that PyPI brings with contrib."""
    try:
        import postgres_versions  # noqa: PLC0415 - it stands with the tests
        from postgres_server import PostgresServer  # noqa: PLC0415

        programs = postgres_versions.programs_of(17) if counts_statements else None
    except (ImportError, postgres_versions.Missing) as error:
        raise Unable(str(error)) from None
    settings = {"shared_preload_libraries": "pg_stat_statements"} if counts_statements else {}
    with PostgresServer(fsync=True, programs=programs, settings=settings) as started:
        if counts_statements:
            ask(started, "CREATE EXTENSION pg_stat_statements")
        yield started


def ask(started: Any, query: str) -> Any:
    """The first row, if there are any."""
    import psycopg  # noqa: PLC0415 - the driver is an extra

    with psycopg.connect(started.dsn, autocommit=True) as connection:
        found = connection.execute(query)
        return found.fetchone() if found.description else None


@contextmanager
def members(started: Any, count: int, *, every: float, jobs: int, paused: bool = False) -> Iterator[list[Member]]:
    """So many agents; the first has added the jobs, and all have their part."""
    with ExitStack() as stack:
        found = [stack.enter_context(closing(Member(started.dsn, every=every, jobs=jobs, paused=paused)))]
        found += [stack.enter_context(closing(Member(started.dsn, every=every))) for _ in range(count - 1)]
        time.sleep(SETTLES_S)
        yield found


# -- what a run costs, and how work is shared out ----------------------------------------------------------------------


def fleet_runs(jobs: int, warm_s: float, seconds: float) -> Values:
    """A closed loop with one agent, then the same with two."""
    one, two = (_closed_loop(count, jobs, warm_s, seconds) for count in (1, 2))
    values = {f"{name}_{key}": value for name, found in (("one", one), ("two", two)) for key, value in found.items()}
    return values | {"times": two["per_s"] / one["per_s"], "twice": one["twice"] + two["twice"]}


def _closed_loop(count: int, jobs: int, warm_s: float, seconds: float) -> Values:
    with server() as started:
        with members(started, count, every=0, jobs=jobs) as agents:
            time.sleep(warm_s)
            for each in agents:
                each.figures()
            cpu, began = family_cpu_s(started.pid), time.monotonic()
            time.sleep(seconds)
            found = [each.figures() for each in agents]
            took, cpu = time.monotonic() - began, family_cpu_s(started.pid) - cpu
        runs = sum(each["runs"] for each in found)
        records, ticks = ask(started, SUCCEEDED)
    agents_s = sum(each["cpu_s"] for each in found)
    return {"per_s": runs / took, "run_us": (agents_s + cpu) / runs * 1e6, "twice": records - ticks}


def fleet_share(jobs: int, every_s: float, seconds: float, agents: int) -> Values:
    """Jobs on a grid, over three agents: lateness, statements, and each agent's part. They are paused until all agents
    have theirs.
    """
    with (
        server(counts_statements=True) as started,
        members(started, agents, every=every_s, jobs=jobs, paused=True) as fleet,
    ):
        _wait_until_settled(started, agents)
        fleet[0].figures("resume")
        time.sleep(SETTLES_S)
        for each in fleet:
            each.figures()
        statements = ask(started, STATEMENTS)[0]
        time.sleep(seconds)
        found = [each.figures() for each in fleet]
        statements = ask(started, STATEMENTS)[0] - statements
    runs = sum(each["runs"] for each in found)
    parts = [each["runs"] / runs * 100 for each in found]
    return {
        "runs_per_s": runs / seconds,
        "late_p50_ms": median(each["p50"] for each in found) * 1e3,
        "late_p99_ms": max(each["p99"] for each in found) * 1e3,
        "late_max_ms": max(each["max"] for each in found) * 1e3,
        "statements_per_100": float(statements) / runs * 100,
        "least_percent": min(parts),
        "most_percent": max(parts),
        "core_percent": sum(each["cpu_s"] for each in found) / seconds * 100,
    }


def _wait_until_settled(started: Any, agents: int) -> None:
    """Each shard is with its rightful owner."""
    from scheduler.stores import rightful_owners  # noqa: PLC0415 - peers have environments without it

    while True:
        owners = ask(started, "SELECT array_agg(owner ORDER BY number) FROM timerqueue.shard")[0]
        if None not in owners and len(set(owners)) == agents and owners == rightful_owners(sorted(set(owners))):
            return
        time.sleep(SOON_S)


def fleet_idle(jobs: int, seconds: float, agents: int) -> Values:
    """Agents with many jobs of which none is due: what they ask, and what that costs."""
    with server(counts_statements=True) as started, members(started, agents, every=LATER_S, jobs=jobs) as fleet:
        for each in fleet:
            each.figures()
        statements = ask(started, STATEMENTS)[0]
        time.sleep(seconds)
        found = [each.figures() for each in fleet]
        statements = ask(started, STATEMENTS)[0] - statements
        resident = max(memory_mib("VmRSS", int(each["pid"])) for each in found)
    return {
        "statements_per_s": float(statements) / seconds / agents,
        "core_percent": max(each["cpu_s"] for each in found) / seconds * 100,
        "rss_mib": resident,
    }


# -- a limit that all of them have together ----------------------------------------------------------------------------


def fleet_limit(*, limit: int, jobs: int, takes_s: float, seconds: float, pairs: int, times: int) -> Values:
    """More work than a limit lets through: one agent with it as its own, and three with it as the fleet's, in turns.

    Then those three are killed and cut off in turns, `times` each. All is read from what the tasks wrote.
    """
    from proxy import Proxy  # noqa: PLC0415 - these stand with the tests
    from units_processes import Agents  # noqa: PLC0415

    found: dict[int, list[float]] = {1: [], 3: []}
    most, config = 0, {"jobs": jobs, "fleet": limit, "takes": takes_s}
    with server() as started, ExitStack() as stack:
        for number in range(2 * pairs):
            count = 3 if number % 2 else 1
            log = Path(str(started.folder)) / f"runs-{number}"
            with closing(Agents(f"limit_{number}", log, **config, shared=count > 1)) as agents:
                for member in range(count):
                    agents.start(f"agent-{member}", started.dsn)
                time.sleep(SETTLES_S)
                began, before = time.monotonic(), agents.begun()
                time.sleep(seconds)
                found[count].append((agents.begun() - before) / (time.monotonic() - began))
                agents.stop()
                most = max(most, agents.most_at_once())
        proxies = [stack.enter_context(Proxy(started.folder / ".s.PGSQL.5432")) for _ in range(3)]
        with closing(Agents("limit_in_trouble", Path(str(started.folder)) / "runs", **config)) as agents:
            _kill_and_cut(agents, proxies, times)
            most = max(most, agents.most_at_once())
    one, three = median(found[1]), median(found[3])
    return {"one_per_s": one, "three_per_s": three, "percent": three / one * 100, "most": most}


def _kill_and_cut(agents: Any, proxies: Sequence[Any], times: int) -> None:
    """Kill and cut off each in turn; another takes the place of who is killed."""
    for member, proxy in enumerate(proxies):
        agents.start(f"agent-{member}-0", proxy.dsn)
    agents.until_more()
    for number in range(times):
        member = number % len(proxies)
        agents.kill(f"agent-{member}-{number // 3}")
        agents.until_more()
        agents.start(f"agent-{member}-{number // 3 + 1}", proxies[member].dsn)
        agents.until_more()
    for number in range(times):
        proxy = proxies[number % len(proxies)]
        proxy.black_hole()
        time.sleep(LEASE_S + 1.5)
        agents.until_more()
        proxy.pass_on()
        time.sleep(1)
    agents.stop()


# -- how long a take-over takes ----------------------------------------------------------------------------------------


def take_over(way: str, jobs: int, rate: float, times: int, pause_s: float) -> Values:
    """One of three agents goes, again and again, under load: what was due elsewhere meanwhile, and how late it began.

    `way`: "kill" -9 with direct connections, "pooler" the same behind PgBouncer, "stop" by SIGSTOP, "cut" by a proxy,
    "leave" in order, "join": a fourth one comes and goes.
    """
    import fleet_members  # noqa: PLC0415 - these stand with the tests
    from debian_servers import PgBouncer  # noqa: PLC0415
    from fleet_judge import judge  # noqa: PLC0415

    with ExitStack() as stack:
        started = stack.enter_context(server())
        pooler = stack.enter_context(closing(PgBouncer(started, connections=20))) if way == "pooler" else None
        config = {"every": jobs / rate, "limit": 7}
        fleet = fleet_members.Fleet(started, Path(str(started.folder)), names="abcd", config=config)
        if way != "cut":
            fleet.dsn = started.dsn if pooler is None else pooler.dsn
        stack.enter_context(fleet)
        fleet.start(3, {"once": jobs})
        time.sleep(SETTLES_S + config["every"])
        played = [_trouble(fleet, way, number, pause_s) for number in range(times)]
        quiet = fleet_members.us_now()
        time.sleep(config["every"] + LEASE_S)
        fleet.end()
        evidence = fleet.evidence(quiet=quiet, batch=jobs, limit=7)
    had, moved = {since: shards for since, shards, _ in played}, [count for _, _, count in played]
    values = _of_victims(evidence, had) if way != "join" else _throughout(evidence)
    marked = sum(each.outcome == "crashed" for each in evidence.records)
    values |= {"marked": marked / times, "violations": sum(1 for _ in judge(evidence)), "exits": fleet.exits}
    return values | ({"moved_percent": median(moved) / 1024 * 100} if way == "join" else {})


def _trouble(fleet: Any, way: str, number: int, pause_s: float) -> tuple[int, frozenset[int], float]:
    """Let one go, and let another one come. When it went, the shards that it had, and how many a fourth one got."""
    import fleet_members  # noqa: PLC0415

    member = fleet.members[3 if way == "join" else number % 3]
    had = frozenset(ask(fleet.server, OWNED.format(member.name))[0])
    since, process, moved = fleet_members.us_now(), member.number, 0.0
    if way in {"kill", "pooler"}:
        member.kill()
        time.sleep(LEASE_S + 1)
        member.start()
    elif way == "stop":
        fleet_members.freeze(member, LEASE_S + 2)
    elif way == "cut":
        member.proxy.black_hole()
        time.sleep(LEASE_S + 2)
        member.proxy.pass_on()
    elif way == "leave":
        member.leave()
        time.sleep(1)
        member.start()
    else:
        member.start()
        time.sleep(pause_s)
        moved = ask(fleet.server, MOVED)[0]
        member.leave()
    fleet.note("kill" if way == "pooler" else way, process, since)
    time.sleep(pause_s)
    return since, had, moved


def _of_victims(evidence: Any, had: dict[int, frozenset[int]]) -> Values:
    """How late ticks of those who went began elsewhere, of all that were due before the last late one had begun.

    `had`: the shards of each, by the instant at which it went.
    """
    late: list[float] = []
    worst: list[float] = []
    for trouble in evidence.troubles:
        if trouble.since in had:
            until = min((since for since in had if since > trouble.since), default=sys.maxsize)
            found = list(_begun_elsewhere(evidence, trouble, had[trouble.since], until))
            worst.append(max((lateness for _, lateness in found), default=0.0))
            over = max((after + lateness for after, lateness in found if lateness > ON_TIME_S), default=0.0)
            late += [lateness for after, lateness in found if after <= over]
    late = sorted(late) or [0.0]
    return {
        "late_p50_ms": late[len(late) // 2] * 1e3,
        "late_p99_ms": late[int(0.99 * (len(late) - 1))] * 1e3,
        "worst_p50_ms": median(worst) * 1e3,
        "late_max_ms": late[-1] * 1e3,
    }


def _begun_elsewhere(evidence: Any, trouble: Any, shards: Collection[int], until: int) -> Iterator[tuple[float, float]]:
    """Of each job in these shards: seconds from the trouble to its next due instant, and how late that began. Of those
    that are due before `until`, which is the next trouble.
    """
    from scheduler.stores import shard_of  # noqa: PLC0415

    until, first = min(until, trouble.since + round(FOLLOWS_S * 1e6)), dict[str, Any]()
    for each in evidence.begun:
        if each.at >= trouble.since and (each.job not in first or each.at < first[each.job].at):
            first[each.job] = each
    for each in first.values():
        due = each.due - evidence.wall
        if each.process != trouble.process and due < until and shard_of(each.job) in shards:
            yield (due - trouble.since) / 1e6, (each.at - due) / 1e6


def _throughout(evidence: Any) -> Values:
    """How late all runs began that were due since the first trouble. Before it jobs are added, and agents start."""
    from fleet_evidence import lateness  # noqa: PLC0415

    late: Sequence[float] = lateness(evidence, since=evidence.troubles[0].since)
    shares = {"late_p50_ms": 0.5, "late_p99_ms": 0.99, "late_max_ms": 1.0}
    return {key: late[int(share * (len(late) - 1))] * 1e3 for key, share in shares.items()}


WAYS = ("kill", "pooler", "stop", "cut", "leave", "join")

if __name__ == "__main__":
    scenarios = {f"fleet_{way}": (lambda way=way, **sizes: take_over(way, **sizes)) for way in WAYS}
    serve(
        {
            "fleet_runs": fleet_runs,
            "fleet_share": fleet_share,
            "fleet_idle": fleet_idle,
            "fleet_limit": fleet_limit,
            **scenarios,
        },
        distribution="timerqueue",
    )

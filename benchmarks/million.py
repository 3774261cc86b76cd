"""Where the next limit of agents that share a store is: figures for a million jobs and a hundred agents.

`python -m benchmarks.million` prints what can be counted and simulated on one machine: how evenly shards and jobs fall
to agents, how many move when one comes or goes, what the rule costs, how large what agents ask each other is, how much
memory a job of another agent takes, and how many commits of so many agents one PostgreSQL of this machine carries out.
"""

import gc
import itertools
import random
import sys
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from schedule import Every
from scheduler import Scheduler
from scheduler.stores import SHARDS, rightful_owners, shard_of

JOBS = 1_000_000
RENEWALS_PER_S = 1.0
SAMPLE = 20_000
MARGIN_OF_ROWS = 30
"""Bytes of a row of PostgreSQL's answer besides its values."""

MORE = (1_024, 4_096, 16_384, 65_536)
TABLES = """
    CREATE TABLE agent (epoch bigint PRIMARY KEY);
    INSERT INTO agent SELECT generate_series(0, 99);
    CREATE TABLE tick (job_id text COLLATE "C", due_us bigint, outcome text, PRIMARY KEY (job_id, due_us));
"""
PUT = "INSERT INTO tick SELECT 'job-' || n, n, 'running' FROM generate_series(%s::bigint, %s::bigint) AS n"


def balance(agents: int, trials: int = 20) -> tuple[float, float]:
    """The most and the least that one of so many agents has, against its fair part; medians of the trials."""
    most, least = [], []
    for trial in range(trials):
        parts = Counter(rightful_owners(range(1 + trial * agents, 1 + (trial + 1) * agents)))
        fair = SHARDS / agents
        most.append(max(parts.values()) / fair)
        least.append(min(parts.get(1 + trial * agents + number, 0) for number in range(agents)) / fair)
    return median(most), median(least)


def moved(agents: int) -> tuple[float, float]:
    """The share of the shards that move when one more comes, and the fair part; no other shard moves."""
    before, after = rightful_owners(range(1, agents + 1)), rightful_owners(range(1, agents + 2))
    moves = [(one, other) for one, other in zip(before, after, strict=True) if one != other]
    if any(other != agents + 1 for _, other in moves):
        raise AssertionError("a shard moved between two that were there before")
    return len(moves) / SHARDS, 1 / (agents + 1)


def jobs_per_shard(jobs: int) -> tuple[int, int]:
    """The least and the most jobs in one shard."""
    counts = Counter(shard_of(f"job-{number}") for number in range(jobs))
    return min(counts.values()), max(counts.values())


def cost_of_the_rule(agents: int) -> float:
    """CPU seconds to find the owners of all shards once somebody has come or gone."""
    took: list[float] = []
    for trial in range(5):
        began = time.process_time()
        rightful_owners(range(1 + trial, 1 + trial + agents))
        took.append(time.process_time() - began)
    return median(took)


def balance_of(agents: int, shards: int) -> float:
    """The most that one has against its fair part, if there were so many shards: drawn at random, which is the same."""
    dice = random.Random(agents * shards)
    most = (max(Counter(dice.randrange(agents) for _ in range(shards)).values()) for _ in range(5))
    return median(most) / (shards / agents)


def commits_per_s(agents: int, rows: int, seconds: float = 3.0) -> float:
    """Commits a second of so many connections: each locks a row of its own, and puts so many rows with a key."""
    import psycopg  # noqa: PLC0415 - the driver is an extra

    def work(number: int) -> None:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            while time.monotonic() < over:
                first = next(numbers) * rows
                with connection.transaction():
                    connection.execute("SELECT FROM agent WHERE epoch = %s FOR NO KEY UPDATE", [number])
                    connection.execute(PUT, [first, first + rows - 1])
                done.append(number)

    done: list[int] = []
    numbers = itertools.count()
    with postgres_server()(fsync=True) as server:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute(TABLES)
        over = time.monotonic() + seconds
        threads = [threading.Thread(target=work, args=(number,)) for number in range(agents)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return len(done) / seconds


def postgres_server() -> Any:
    """The server that the tests use, too."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "kit" / "servers"))
    from postgres_server import PostgresServer  # noqa: PLC0415 - it stands with the tests

    return PostgresServer


def looking_around(agents: int) -> tuple[float, float]:
    """Statements a second for all leases, and bytes a second that the server sends: owners and peers, to each agent."""
    owners = sum(len(str(owner)) + 1 for owner in rightful_owners(range(1, agents + 1)))
    peers = agents * (MARGIN_OF_ROWS + 40)
    return agents * RENEWALS_PER_S, agents * RENEWALS_PER_S * (owners + peers)


def memory_of_a_job() -> float:
    """Bytes that Python allocates for a job that stands in a scheduler and does not run."""
    s = Scheduler()
    every = Every("1h")
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    s.add_many(nothing, [(f"job-{number}", every) for number in range(SAMPLE)])
    gc.collect()
    found = (tracemalloc.get_traced_memory()[0] - before) / SAMPLE
    tracemalloc.stop()
    return found


async def nothing() -> None:
    """A job with nothing to do."""


def lines() -> Sequence[str]:
    """What there is to tell."""
    said = [
        "| agents | most, of a fair part | least | move when one comes | fair | rule, ms | bytes/s looking around |"
    ]
    said.append("| ---: " * 7 + "|")
    for agents in (2, 3, 10, 30, 100, 300):
        most, least = balance(agents)
        share, fair = moved(agents)
        cost, (_, sent) = cost_of_the_rule(agents), looking_around(agents)
        said.append(
            f"| {agents} | {most:.2f} | {least:.2f} | {share:.1%} | {fair:.1%} | {cost * 1e3:.0f} | {sent:,.0f} |"
        )
    fewest, most_jobs = jobs_per_shard(JOBS)
    said.append("")
    said.append(f"{JOBS:,} jobs in {SHARDS:,} shards: {fewest:,} to {most_jobs:,} in one")
    said.append(f"a job that waits: {memory_of_a_job():,.0f} bytes that Python allocates")
    wanted = {agents: [balance_of(agents, shards) for shards in MORE] for agents in (30, 100, 300)}
    for agents, found in wanted.items():
        shown = ", ".join(f"{shards:,}: {most:.2f}" for shards, most in zip(MORE, found, strict=True))
        said.append(f"most of a fair part for {agents} agents, with shards: {shown}")
    for rows in (1, 10, 100):
        shown = ", ".join(f"{agents}: {commits_per_s(agents, rows):,.0f}" for agents in (1, 2, 10, 30))
        said.append(f"commits a second of {rows} rows each, by agents: {shown}")
    return said


if __name__ == "__main__":
    print("\n".join(lines()))

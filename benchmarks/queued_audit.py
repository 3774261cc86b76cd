"""A beanstalkd that has lost everything: how long one audit takes until each job has its execution in it again.

    python -m benchmarks.queued_audit [--jobs 10000]

One scheduler, on servers of its own: PostgreSQL with fsync on a Unix socket, and beanstalkd without a log, which is
killed and started again. It prints one JSON object: seconds of the audit, seconds until all executions are in the
server, and until the store knows where; CPU of this process for all of it; how many were put again and how many there
are, and what a second audit has found wrong.
"""

import argparse
import json
import logging
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "kit" / "servers"))

from beanstalkd_server import BeanstalkdServer
from postgres_server import PostgresServer
from scheduler import AuditEnded, Scheduler
from scheduler.queues import Kind, QueueUnavailable
from scheduler.queues.beanstalkd import BeanstalkdQueue
from scheduler.stores.postgres import PostgresStore

ELSEWHERE = "SELECT count(*) FROM timerqueue.execution WHERE instance IS DISTINCT FROM %s"
"""Executions of which the store does not know that they stand in that server."""


async def until(holds):
    """Wait for it, and look every 10 ms."""
    while not holds():  # noqa: ASYNC110 - nobody there would set an event
        await anyio.sleep(0.01)


def answers(queue):
    """Tell whether its server can be asked."""
    try:
        return bool(queue.instance())
    except QueueUnavailable:
        return False


async def work():
    """Take no time. It is due in a day."""


async def measure(jobs):
    """Lose all, audit, and return what was found."""
    audits = []
    with PostgresServer(fsync=True) as server, BeanstalkdServer(log=False) as broker:
        store = PostgresStore(server.dsn, shared=True)
        queue = BeanstalkdQueue(broker.address)
        scheduler = Scheduler(store=store, queue=queue, blocked_after=None)
        scheduler.listen(lambda event: audits.append(event.audit), AuditEnded)

        def elsewhere():
            with psycopg.connect(server.dsn) as connection:
                return connection.execute(ELSEWHERE, [queue.instance()]).fetchone()[0]

        async with scheduler:
            scheduler.register("work", work)
            start = datetime.now(UTC) + timedelta(days=1)
            for number in range(jobs):
                scheduler.add("work", "@every 1d", id=f"job-{number}", start=start)
            await scheduler.flush()
            await until(lambda: queue.census(Kind.RUN).total >= jobs)
            await until(lambda: not elsewhere())
            broker.restart(log=False)
            await until(lambda: answers(queue))
            del audits[:]
            began, cpu = time.monotonic(), time.process_time()
            await scheduler._memory.membership.audit.audit()
            audited = time.monotonic() - began
            await until(lambda: queue.census(Kind.RUN).total >= jobs)
            put = time.monotonic() - began
            await until(lambda: not elsewhere())
            known, cpu = time.monotonic() - began, time.process_time() - cpu
            await scheduler._memory.membership.audit.audit()
            there = queue.census(Kind.RUN).total
            scheduler.stop(grace=1)
    return {
        "jobs": jobs,
        "audit_s": round(audited, 2),
        "with_the_puts_s": round(put, 2),
        "with_the_rows_s": round(known, 2),
        "cpu_s": round(cpu, 2),
        "put_again": max(audit.requeued for audit in audits),
        "in_the_server": there,
        "second_audit_mended": audits[-1].mended,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=10_000)
    logging.basicConfig(level=logging.ERROR)
    print(json.dumps(anyio.run(measure, parser.parse_args().jobs)))


if __name__ == "__main__":
    main()

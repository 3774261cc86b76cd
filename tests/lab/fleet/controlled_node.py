"""A scheduler whose control API is served by uvicorn, as a process, alone or as a node of a fleet.

    python controlled_node.py '{"store": {"kind": "sqlite", "path": ...}, "fd": 5, "log": ...}'
    python controlled_node.py '{"store": {"kind": "postgres", "dsn": ..., "schema": ..., "name": "n1"}, "fd": 5, ...}'

`fd`: a bound socket. `log`: each run of the task "note" writes a line there. It says "runs" on standard output once it
answers, and stops when standard input ends.
"""
# ruff: noqa: T201 - it speaks to who started it

import json
import logging
import os
import socket
import sys

import anyio
import uvicorn
from anyio.to_thread import run_sync

from scheduler import Scheduler, current_run, rate
from scheduler.stores.postgres import PostgresStore
from scheduler.stores.sqlite import SQLiteStore
from scheduler.web import Access, app


def store_of(kind, **options):
    """Make the store."""
    return SQLiteStore(options["path"]) if kind == "sqlite" else PostgresStore(**options, shared="name" in options)


def access(scope):
    """Let in who says who it is, as `ann:admin`."""
    said = dict(scope["headers"]).get(b"authorization", b"").decode().removeprefix("Bearer ")
    name, _, scopes = said.partition(":")
    return Access(name, scopes) if scopes else None


async def main(config):
    log = os.open(config["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def note(value=None):
        run = current_run()
        os.write(log, f"{run.job_id} {round(run.due.timestamp() * 1e6)} {run.attempt}\n".encode())
        return value

    async def fail():
        msg = "no disk"
        raise OSError(msg)

    s = Scheduler(store=store_of(**config["store"]), crash_floor="50ms", limits={"http": 2, "pace": rate(100, "1s")})
    s.register("note", note)
    s.register("fail", fail)
    server = uvicorn.Server(uvicorn.Config(app(s, access=access), lifespan="off", log_level="warning"))
    async with s, anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [socket.socket(fileno=config["fd"])])
        while not server.started:  # noqa: ASYNC110 - uvicorn sets no event
            await anyio.sleep(0.01)
        print("runs", flush=True)
        await run_sync(sys.stdin.read, abandon_on_cancel=True)
        server.should_exit = True


if __name__ == "__main__":
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    anyio.run(main, json.loads(sys.argv[1]))

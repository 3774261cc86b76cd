"""Kill an agent again and again while it works, and see what its store and its runs tell afterwards.

    python crash_loop.py --store sqlite|postgres [--kills 200] [--seed 0] [--backend asyncio|trio] [--keep FOLDER]

The agent is crash_load.py, what must hold is in crash_check.py. Exits with 0 if all of it holds, with 1 if not, and
with 2, "inconclusive", if something never happened without which the rest proves little. 200 kills take some minutes.
"""
# ruff: noqa: T201 - it speaks to who started it

import argparse
import json
import random
import select
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from crash_check import check
from crash_load import Notes, store_of

PATIENCE = 60.0
SETTLE = 3.0
"""Seconds that the last agent works before it stops in order: more than the longest interval and the floor."""


class Agent:
    """A process of crash_load.py. It imports what it needs while the one before it is still at work."""

    def __init__(self, config):
        self._process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("crash_load.py"), json.dumps(config)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def begin(self, number, last_seconds=0):
        self._await("here")
        self._process.stdin.write(f"{number} {last_seconds}\n")
        self._process.stdin.flush()

    def await_ready(self):
        self._await("ready")

    def kill(self):
        self._process.kill()
        self._process.communicate()
        assert self._process.returncode == -9, f"it ended by itself, with status {self._process.returncode}"

    def finish(self):
        self._process.communicate(timeout=PATIENCE)
        assert self._process.returncode == 0, f"it ended with status {self._process.returncode}"

    def _await(self, word):
        assert select.select([self._process.stdout], [], [], PATIENCE)[0], f"no {word!r} within {PATIENCE:.0f} s"
        found = self._process.stdout.readline().strip()
        assert found == word, f"{found!r} instead of {word!r}; status {self._process.poll()}"


@contextmanager
def store_spec(options, folder):
    """Describe the store to use; with PostgreSQL, a server of our own unless there is a `--dsn`."""
    if options.store == "sqlite":
        yield {"kind": "sqlite", "path": str(folder / "jobs.sqlite")}
    elif options.dsn:
        yield {"kind": "postgres", "dsn": options.dsn, "schema": options.schema}
    else:
        from postgres_server import PostgresServer  # noqa: PLC0415 - the other store needs no server

        with PostgresServer() as server:
            yield {"kind": "postgres", "dsn": server.dsn, "schema": options.schema}


def note_what_is_owed(notes, number, store):
    """Write down what this kill has cut off, and what was owed before it."""
    store.open(time.time_ns() // 1000, lambda: None)
    for word, ticks in (("cut-off", store.running()), ("owed", store.owed())):
        for tick in ticks:
            notes.write(word, number, tick.job_id, tick.due_us, tick.attempt)
    store.close()


def loop(options, config):
    """Start an agent and kill it, `--kills` times; then let one settle everything. How many were ready when killed."""
    dice = random.Random(options.seed)
    notes = Notes(config["owed"])
    ready = 0
    following = Agent(config)
    for number in range(options.kills):
        agent, following = following, Agent(config | {"knows_all": number + 1 == options.kills})
        agent.begin(number)
        if number == 0 or dice.random() < 0.9:
            agent.await_ready()
            ready += 1
        time.sleep(dice.uniform(0.02, 0.3))
        agent.kill()
        note_what_is_owed(notes, number, store_of(config["store"]))
        if sys.stderr.isatty():
            print(f"\r{number + 1} kills", end="", file=sys.stderr)
    following.begin(options.kills, SETTLE)
    following.finish()
    return ready


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", choices=("asyncio", "trio"), default="asyncio")
    parser.add_argument("--dsn", help="of a PostgreSQL that runs already")
    parser.add_argument("--schema", default="crash_loop")
    parser.add_argument("--keep", type=Path, help="folder for the files, to be looked at afterwards")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="timerqueue-crash-") as name:
        folder = options.keep or Path(name)
        folder.mkdir(exist_ok=True, parents=True)
        with store_spec(options, folder) as spec:
            config = {name: str(folder / name) for name in ("effects", "changes", "owed", "log")}
            config |= {"seed": options.seed, "backend": options.backend, "store": spec, "knows_all": False}
            began = time.monotonic()
            ready = loop(options, config)
            print(f"{options.store}, seed {options.seed}, {time.monotonic() - began:.0f} s")
            print(f"kills {options.kills}, of which {ready} after the agent was ready")
            return check(folder, store_of(spec))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

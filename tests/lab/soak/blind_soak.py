"""Take an agent's store away for a while, or its health, and see what people and a watcher outside are told.

    python tests/lab/soak/blind_soak.py --for 60s [--only sqlite-locked,postgres-away] [--heartbeats 20]

Stores: agents check targets once a second while their stores are locked, full or away, all at once, each in its own
way. Meanwhile a target is broken and mended, and another is broken to the end. The judge reads what the channel has
taken, what the agent has shown, and the store afterwards: each outage was told within the interval and the timeout, no
check was left out, and each has one record.

Heartbeats: so many agents at once stand still, have a full disk, a dead channel, or a loop that is always late. The
judge sees that no request came later than the grace after that began, and that they came again after its end.

Prints a line for each case; exits with 0 if all of them hold, with 1 if not.
"""
# ruff: noqa: T201 - it speaks to who started it

import argparse
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import psycopg

from notify_soak import seconds
from postgres_server import PostgresServer
from soak_targets import Quiet, Server

INTERVAL, TIMEOUT = 1.0, 2.0
SLACK = 2.0
"""Seconds for which two busy cores may make it later."""

GRACE = 3.0
LATE_BY = 2.5
PATIENCE = 60.0


def until(holds, what, patience=PATIENCE):
    deadline = time.monotonic() + patience
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {patience:g} s: {what}")
        time.sleep(0.02)


class Target:
    """A server that answers, unless it is broken. `asked`: when it was."""

    def __init__(self):
        self.is_broken = False
        self.asked = []
        target = self

        class Handler(Quiet):
            def take(self):
                target.asked.append(time.time())
                self.answer(503 if target.is_broken else 204)

        self.server = Server(Handler)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.port}/"


class Receiver(Target):
    """A channel's other end. `taken`: when each message came, and the message."""

    def __init__(self):
        self.taken = []
        self.refused = []
        self.is_dead = False
        receiver = self

        class Handler(Quiet):
            def take(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if receiver.is_dead:
                    receiver.refused.append(time.time())
                    self.answer(503)
                    return
                receiver.taken += [(time.time(), each) for each in body.get("messages", [body])]
                self.answer(204)

        self.server = Server(Handler)

    def when(self, kind, target):
        """When a message of that kind about a target came first; None: not yet."""
        return next((at for at, each in self.taken if (each["kind"], each["target"]) == (kind, target)), None)


class Agent:
    """The command `timerqueue run` with three targets, and what it says."""

    def __init__(self, folder, name, store="", more=""):
        self.name = name
        self.targets = {each: Target() for each in ("shop", "blog", "wiki")}
        self.channel = Receiver()
        self.database = folder / f"{name}.db"
        file = folder / f"{name}.toml"
        file.write_text("\n".join([store or f'store = "sqlite:///{name}.db"', *self._lines(), more]))
        command = [sys.executable, "-m", "uptime_agent", "run", file, "--json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        self.lines = []
        self.reader = threading.Thread(target=lambda: self.lines.extend(self.process.stdout), daemon=True)
        self.reader.start()

    def _lines(self):
        yield f'[defaults]\ninterval = "{INTERVAL:g}s"\ntimeout = "{TIMEOUT:g}s"'
        yield f'[notify]\ndigest = false\n[[channel]]\nname = "ops"\nkind = "webhook"\nurl = "{self.channel.url}"'
        for name, target in self.targets.items():
            yield f'[[check]]\nname = "{name}"\nurl = "{target.url}"'

    def said(self):
        return [json.loads(line) for line in list(self.lines)]

    def has_said(self, text):
        return any(text in each.get("text", "") for each in self.said())

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)
        self.reader.join(PATIENCE)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


# -- the troubles of stores --------------------------------------------------------------------------------------------


class SqliteCase:
    store = ""

    def __init__(self, trouble):
        self.trouble = trouble

    @contextmanager
    def troubled(self, agent):
        if self.trouble == "locked":
            with closing(sqlite3.connect(agent.database, isolation_level=None)) as hand:
                hand.execute("BEGIN IMMEDIATE")
                yield
        elif self.trouble == "away":
            elsewhere = agent.database.rename(f"{agent.database}.away")
            yield
            elsewhere.rename(agent.database)
        else:
            with full_disk(agent.pid):
                yield

    def query(self, agent, sql):
        with closing(sqlite3.connect(agent.database)) as hand:
            return hand.execute(sql).fetchall()


class PostgresCase:
    def __init__(self, server, trouble, schema):
        self.server, self.trouble, self.schema = server, trouble, schema
        self.store = f'store = "postgresql://postgres@/postgres?host={server.folder}&schema={schema}"'

    @contextmanager
    def troubled(self, agent):
        if self.trouble == "away":
            self.server.stop("immediate")
            yield
            self.server.start()
        elif self.trouble == "frozen":
            with self.server.frozen(*self.server.pids()):
                yield
        elif self.trouble == "locked":
            with psycopg.connect(self.server.dsn) as hand:
                hand.execute(f"LOCK TABLE {self.schema}.tick IN ACCESS EXCLUSIVE MODE")
                yield
        else:
            yield from self._full()

    def _full(self):
        refuse = f"""
            CREATE FUNCTION {self.schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$;
            CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON {self.schema}.tick
            EXECUTE FUNCTION {self.schema}.refuse()
        """
        with psycopg.connect(self.server.dsn, autocommit=True) as hand:
            hand.execute(refuse)
            yield
            hand.execute(f"DROP FUNCTION {self.schema}.refuse CASCADE")

    def query(self, agent, sql):
        with psycopg.connect(self.server.dsn) as hand:
            return hand.execute(f"SET search_path = {self.schema}").connection.execute(sql).fetchall()


@contextmanager
def full_disk(pid):
    """No file of that process can grow."""
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    yield
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def play_store(case, agent, length):
    """Trouble the store of an agent, break and mend its targets, and say what is wrong with what came of it."""
    until(lambda: all(target.asked for target in agent.targets.values()), "all targets are checked")
    broken = {}

    def break_(name):
        broken[name] = time.time()
        agent.targets[name].is_broken = True

    with case.troubled(agent):
        began = time.monotonic()
        time.sleep(length * 0.2)
        break_("shop")
        time.sleep(length * 0.3)
        agent.targets["shop"].is_broken = False
        time.sleep(length * 0.3)
        break_("blog")
        time.sleep(max(began + length - time.monotonic(), 0))
    until(lambda: agent.has_said("the store works again"), "the store works again")
    agent.targets["blog"].is_broken = False
    until(lambda: agent.channel.when("resolved", "blog"), "the end of the last outage is told")
    until(lambda: len([each for _, each in agent.channel.taken if each["kind"] == "resolved"]) == 3, "three ends")
    agent.stop()
    return [*late_alarms(agent, broken), *wrong_records(case, agent), *gaps(agent)]


def late_alarms(agent, broken):
    for name, at in broken.items():
        told = agent.channel.when("trigger", name)
        most = INTERVAL + TIMEOUT + SLACK
        if told is None or told - at > most:
            after = "never" if told is None else f"after {told - at:.1f} s"
            yield f"{name}: told {after}, and not within {most:g} s"
    keys = [each["key"] for _, each in agent.channel.taken]
    if len(keys) != len(set(keys)):
        yield f"told twice: {sorted(each for each in set(keys) if keys.count(each) > 1)}"


def wrong_records(case, agent):
    checks = [each for each in agent.said() if each["event"] == "check"]
    for name in agent.targets:
        shown = [each["status"] for each in checks if each["name"] == name]
        stored = case.query(agent, f"SELECT outcome, result, reason FROM tick WHERE job_id = '{name}'")
        found = [json.loads(result)["status"] for outcome, result, _ in stored if outcome == "succeeded"]
        if sorted(shown) != sorted(found):
            yield f"{name}: {len(shown)} checks shown, {len(found)} stored"
        others = [outcome if reason is None else reason for outcome, _, reason in stored if outcome != "succeeded"]
        if set(others) - {"stopped"}:
            yield f"{name}: records that are no checks: {others}"
    if left := case.query(agent, "SELECT id FROM job WHERE id LIKE 'notify:%'"):
        yield f"messages are left: {left}"


def gaps(agent):
    for name, target in agent.targets.items():
        pairs = zip(target.asked, target.asked[1:], strict=False)
        longest = max((after - before for before, after in pairs), default=0.0)
        if longest > 2 * INTERVAL + SLACK:
            yield f"{name}: not checked for {longest:.1f} s"


# -- the heartbeat -----------------------------------------------------------------------------------------------------


def play_heart(trouble, agent, watcher):
    """Trouble an agent, and say what is wrong with its heartbeats."""
    until(lambda: len(watcher.asked) >= 3, "heartbeats come")
    began = TROUBLES[trouble](agent, lambda at: time.time() - at < GRACE + 5 * INTERVAL)
    ended = time.time()
    late = [at - began for at in watcher.asked if began + GRACE + 0.5 < at < ended]
    if late:
        yield f"a heartbeat came {late[-1]:.1f} s after the trouble began, of a grace of {GRACE:g} s"
    try:
        until(lambda: watcher.asked and watcher.asked[-1] > ended, "heartbeats come again")
    except TimeoutError as exc:
        yield str(exc)


def stand_still(agent, goes_on):
    began = time.time()
    os.kill(agent.pid, signal.SIGSTOP)
    while goes_on(began):
        time.sleep(0.05)
    os.kill(agent.pid, signal.SIGCONT)
    return began


def fill_disk(agent, goes_on):
    began = time.time()
    with full_disk(agent.pid):
        while goes_on(began):
            time.sleep(0.05)
    return began


def kill_channel(agent, goes_on):
    agent.channel.is_dead = True
    agent.targets["shop"].is_broken = True
    until(lambda: agent.channel.refused, "a message is refused")
    began = agent.channel.refused[0]
    while goes_on(began):
        time.sleep(0.05)
    agent.channel.is_dead = False
    return began


def hold_up(agent, goes_on):
    began = time.time()
    while goes_on(began):
        os.kill(agent.pid, signal.SIGSTOP)
        time.sleep(LATE_BY)
        os.kill(agent.pid, signal.SIGCONT)
        time.sleep(0.1)
    return began


TROUBLES = {"stands still": stand_still, "full disk": fill_disk, "dead channel": kill_channel, "late loop": hold_up}


# -- all of it ---------------------------------------------------------------------------------------------------------


def play_all(plays):
    """Play all of these at once: what was wrong with each, by name."""
    wrong = {}

    def play(name, func):
        try:
            wrong[name] = list(func())
        except Exception as exc:  # noqa: BLE001 - one that fails is wrong, and the others go on
            wrong[name] = [f"{type(exc).__name__}: {exc}"]

    threads = [threading.Thread(target=play, args=each) for each in plays.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


def play_stores(folder, length, only):
    with ExitStack() as stack:
        cases = {f"sqlite-{each}": SqliteCase(each) for each in ("locked", "full", "away")}
        names = [each for each in ("locked", "full", "away", "frozen") if not only or f"postgres-{each}" in only]
        for each in names:
            server = stack.enter_context(PostgresServer())
            cases[f"postgres-{each}"] = PostgresCase(server, each, "up")
        cases = {name: case for name, case in cases.items() if not only or name in only}
        agents = {name: Agent(folder, name, case.store) for name, case in cases.items()}
        for agent in agents.values():
            stack.callback(agent.kill)
        return play_all({name: lambda name=name: play_store(cases[name], agents[name], length) for name in cases})


def play_hearts(folder, trouble, times):
    agents, watchers = {}, {}
    with ExitStack() as stack:
        for number in range(times):
            name = f"{trouble.replace(' ', '-')}-{number}"
            watchers[name] = Target()
            url = watchers[name].url
            more = f'[heartbeat]\nurl = "{url}"\ninterval = "{INTERVAL:g}s"\ngrace = "{GRACE:g}s"'
            agents[name] = Agent(folder, name, more=more)
            stack.callback(agents[name].kill)
        return play_all({name: lambda name=name: play_heart(trouble, agents[name], watchers[name]) for name in agents})


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--for", dest="length", type=seconds, default=60.0, help="how long stores are in trouble")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[], help="as in sqlite-full,postgres-away")
    parser.add_argument("--heartbeats", type=int, default=0, help="so many agents for each trouble")
    parser.add_argument("--no-stores", action="store_true")
    options = parser.parse_args()
    has_failed = False
    with tempfile.TemporaryDirectory(prefix="blind-soak-") as folder:
        rounds = [] if options.no_stores else [lambda: play_stores(Path(folder), options.length, options.only)]
        if options.heartbeats:
            rounds += [lambda each=each: play_hearts(Path(folder), each, options.heartbeats) for each in TROUBLES]
        for play in rounds:
            for name, wrong in play().items():
                has_failed |= bool(wrong)
                print(f"{name}: {'; '.join(wrong) or 'as it should be'}", flush=True)
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main())

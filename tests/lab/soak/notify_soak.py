"""Break and mend targets while the agent is killed and a channel is down, and see what its receivers got.

    python notify_soak.py --for 30m [--kill-every 2m] [--targets 15] [--kinds http,tcp] [--seed 0] [--json]

The agent is the command `timerqueue run` with a SQLite store. It has two channels, webhooks of this program: "steady"
always takes what comes; "shaky" is down for the middle third of the time: refused, hanging, answered with 503. The
targets are real servers of several kinds (soak_targets.py), which are broken and mended; at the end all are mended, and
nobody is killed any more.

The judge reads only what the receivers have taken and what was broken: each incident has exactly one delivered trigger
and one delivered resolved by key, in this order, for each channel; each outage of a target is told, and nothing that
was well is. Prints its counts; exits with 0 if all of that holds, with 1 if not.
"""
# ruff: noqa: T201 - it speaks to who started it

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from soak_targets import KINDS, Quiet, Server, Targets

CHANNELS = ("steady", "shaky")
INTERVAL = 1.0
"""Seconds between checks."""

LONGEST_SETTLING = 150.0
"""Seconds at the end in which everything is to be delivered: rests after a death, and retries with backoff."""

BLIND = 20.0
"""Seconds after a death in which a target may not be checked: a start, and ten seconds of rest for a check that the
death has cut off. An outage that shows itself in no other time need not be told.
"""

ENOUGH = 2
LONGEST_WAIT = 120.0
"""A course goes on for up to so many seconds more until there were more outages than these, and an attempt in vain."""

_UNITS = {"s": 1, "m": 60, "h": 3600}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--for", dest="seconds", type=seconds, default=1800.0, help="how long, as in 60s or 30m")
    parser.add_argument("--kill-every", type=seconds, default=120.0)
    parser.add_argument("--targets", type=int, default=15)
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=list(KINDS), help="as in http,tcp,dns")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", help="where to leave the agent's files")
    parser.add_argument("--json", action="store_true", help="print an object instead of lines")
    return parser.parse_args()


def seconds(text):
    found = re.fullmatch(r"([0-9]+)([smh])", text)
    if not found:
        raise argparse.ArgumentTypeError(f"expected a length such as 60s or 30m, found {text!r}")
    return float(found[1]) * _UNITS[found[2]]


# -- the servers ---------------------------------------------------------------------------------------------------


class Receiver:
    """A channel's other end. `trouble`: None, "refuses", "hangs" or "busy". `taken`: (when, key, message) by key."""

    def __init__(self):
        self.trouble = None
        self.taken = []
        self.refused = 0
        self.lock = threading.Lock()
        receiver = self

        class Handler(Quiet):
            def take(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                receiver.take(self, body)

        self.server = Server(Handler)

    def take(self, handler, body):
        trouble = self.trouble
        if trouble is None:
            with self.lock:
                for message in body.get("messages", [body]):
                    self.taken.append((time.time(), message["key"], message))
            handler.answer(204)
            return
        self.refused += 1
        if trouble == "hangs":
            time.sleep(20)
        elif trouble == "busy":
            handler.answer(503)
        handler.close_connection = True


# -- the agent -----------------------------------------------------------------------------------------------------


def configuration(targets, receivers):
    yield '[defaults]\ntimeout = "2s"\nmax_attempts = 1'
    yield f'interval = "{INTERVAL:g}s"'
    yield '[limits]\n"host:*" = 100'
    yield '[notify]\nexpiry = "2h"\ndigest = { above = 6, within = "5s" }'
    for name, receiver in receivers.items():
        yield f'[[channel]]\nname = "{name}"\nkind = "webhook"\ntimeout = "3s"'
        yield f'url = "http://127.0.0.1:{receiver.server.port}/"'
    yield from targets.checks()


class Agent:
    """The command, again and again."""

    def __init__(self, folder, text):
        self.file = Path(folder, "soak.toml")
        self.file.write_text(text, "utf-8")
        self.log = Path(folder, "log").open("ab")  # noqa: SIM115 - for as long as it runs
        self.kills = []
        self.start()

    def start(self):
        command = [sys.executable, "-m", "uptime_agent", "run", str(self.file), "--json"]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, start_new_session=True)

    def kill(self):
        assert self.process.poll() is None, f"it ended by itself, with status {self.process.returncode}"
        self.process.kill()
        self.process.wait()
        self.kills.append(time.time())
        self.start()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(60)
        if self.process.poll() is None:
            self.process.kill()
        return self.process.wait()


# -- the course ----------------------------------------------------------------------------------------------------


@contextmanager
def place_of(options):
    """A folder for the agent's files, which goes with the end unless it is to be kept."""
    if options.keep:
        Path(options.keep).mkdir(parents=True)
        yield options.keep
    else:
        with tempfile.TemporaryDirectory(prefix="notify-soak-") as folder:
            yield folder


def soak(options):
    """Run it: what was broken, what was taken, and the counts of what was done."""
    chance = random.Random(options.seed)
    targets, receivers = Targets(options.targets, options.kinds), {name: Receiver() for name in CHANNELS}
    with closing(targets), place_of(options) as folder:
        agent = Agent(folder, "\n".join(configuration(targets, receivers)))
        try:
            time.sleep(8 * INTERVAL)  # nothing flaps that was well for some checks
            course(options, chance, targets, receivers, agent)
            settle(receivers, min(15.0, options.seconds / 4))
        finally:
            status = agent.stop()
    return {"targets": targets, "receivers": receivers, "kills": agent.kills, "status": status}


def course(options, chance, targets, receivers, agent):
    """Break and mend, trouble the shaky channel in the middle third of the time, in each way it can be, and kill."""
    began, killed = time.monotonic(), time.monotonic()
    mends, shaky = {}, receivers["shaky"]
    while (now := time.monotonic() - began) < options.seconds + (0 if has_happened(targets, shaky) else LONGEST_WAIT):
        shaky.trouble = trouble_at(now / options.seconds, shaky.refused)
        for name in [name for name, at in mends.items() if at <= now]:
            targets.mend(name)
            mends[name] = float("inf")
        well = [name for name in targets.names if name not in targets.broken and rested(targets, name, agent.kills)]
        if well and chance.random() < INTERVAL / 4:
            name = chance.choice(well)
            targets.break_(name)
            mends[name] = now + chance.uniform(8, 30) * INTERVAL + targets.slow(name)
        if time.monotonic() - killed >= options.kill_every:
            killed = time.monotonic()
            agent.kill()
        time.sleep(INTERVAL / 4)
    shaky.trouble = None
    for name in list(targets.broken):
        targets.mend(name)


def trouble_at(share, refused):
    """What the shaky channel suffers from when that share of the time has passed: until it has refused something."""
    if share < 1 / 3 or (share >= 2 / 3 and refused):
        return None
    return ("refuses", "hangs", "busy", "refuses")[min(int(share * 9) - 3, 3)]


def has_happened(targets, shaky):
    """Whether there was what is to be judged. On a machine that is busy a short course goes on until it was."""
    return shaky.refused > 0 and len(targets.outages) + len(targets.broken) > ENOUGH


def rested(targets, name, kills):
    """Whether the target was seen to be well for so long that its next outage is one of its own."""
    latest = max((until for each, _, until in targets.outages if each == name), default=0.0)
    return longest_seen(latest, time.time(), [kill for kill in kills if kill > latest - BLIND]) > 8 * INTERVAL


def settle(receivers, quiet):
    """Wait until each trigger that was taken has its resolved, and nothing more has come for a while."""
    deadline = time.monotonic() + LONGEST_SETTLING
    quiet_since, seen = time.monotonic(), 0
    while time.monotonic() < deadline:
        taken = sum(len(receiver.taken) for receiver in receivers.values())
        if taken != seen:
            quiet_since, seen = time.monotonic(), taken
        is_even = all(not open_incidents(receiver) for receiver in receivers.values())
        if is_even and time.monotonic() - quiet_since > quiet:
            return
        time.sleep(0.5)


def open_incidents(receiver):
    kinds = defaultdict(set)
    for _, _, message in list(receiver.taken):
        kinds[message["incident"]].add(message["kind"])
    return [incident for incident, found in kinds.items() if found != {"trigger", "resolved"}]


# -- the judge -----------------------------------------------------------------------------------------------------


def judge(targets, receivers, kills):
    """Each thing that is wrong, by what the receivers have taken and what was broken."""
    for name, receiver in receivers.items():
        first = {}
        for when, key, message in receiver.taken:
            first.setdefault(key, (when, message))
        incidents = defaultdict(dict)
        for when, message in first.values():
            incidents[message["incident"]][message["kind"]] = when, message
        for incident, kinds in incidents.items():
            if set(kinds) != {"trigger", "resolved"}:
                yield f"{name}: {incident} has only {', '.join(sorted(kinds))}"
            elif kinds["trigger"][0] > kinds["resolved"][0]:
                yield f"{name}: {incident} was resolved before it was told"
        told = [kinds["trigger"][1] for kinds in incidents.values() if "trigger" in kinds]
        yield from outages_not_told(name, targets.outages, told, kills, targets.slow)
        yield from told_without_outage(name, targets.outages, told)


def outages_not_told(name, outages, told, kills, slow=lambda _target: 0.0):
    for target, begin, until in outages:
        if longest_seen(begin, until, kills) > 5 * INTERVAL + slow(target) and not any(
            fits(message, target, begin, until) for message in told
        ):
            yield f"{name}: nobody heard that {target} was broken from {begin:.1f} to {until:.1f}"


def longest_seen(begin, until, kills):
    """The longest part of an outage, in seconds, in which a living agent was to see it."""
    longest, start = 0.0, begin
    for kill in sorted(kills):
        longest = max(longest, min(kill, until) - start)
        start = max(start, kill + BLIND)
    return max(longest, until - start)


def told_without_outage(name, outages, told):
    for message in told:
        if not any(fits(message, *outage) for outage in outages):
            yield f"{name}: {message['incident']} is told, and {message['target']} was well"


def fits(message, target, begin, until):
    """Whether a message may be of that outage: it began during it, or as soon as a new agent looked."""
    began = time_of(message["began"])
    return message["target"] == target and begin - 1 <= began <= until + 2 * INTERVAL


def time_of(text):
    from datetime import datetime  # noqa: PLC0415 - only here

    return datetime.fromisoformat(text).timestamp()


def counts_of(found, wrong):
    receivers = found["receivers"]
    for name, receiver in receivers.items():
        keys = [key for _, key, _ in receiver.taken]
        yield f"messages taken by {name}", len(keys)
        yield f"keys taken by {name}", len(set(keys))
        yield f"taken twice by {name}", len(keys) - len(set(keys))
        yield f"attempts in vain at {name}", receiver.refused
    yield "outages", len(found["targets"].outages)
    yield "kills", len(found["kills"])
    yield "violations", len(wrong)


def main():
    options = arguments()
    found = soak(options)
    wrong = list(judge(found["targets"], found["receivers"], found["kills"]))
    if found["status"]:
        wrong.append(f"the last agent ended with status {found['status']}")
    counts = dict(counts_of(found, wrong))
    if options.json:
        print(json.dumps({"counts": counts, "violations": wrong}))
    else:
        for name, count in counts.items():
            print(f"{name} {count}")
        for each in wrong[:20]:
            print(f"    {each}")
    return 1 if wrong else 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())

"""Give an agent hostile inputs over each of its boundaries, next to fifty healthy targets of the same agent.

    python3 tests/lab/beside/beside_healthy.py [BOUNDARY ...] [--inputs 10000] [--seed 1] [--at-once 2] [--plays 3]
                                    [--defect NAME] [--json]

Each boundary gets an agent of its own. `beside_judge.py` has the demands and the way to judge them. Exits with 0 if
they are met, with 1 if not, and with 2 if this machine cannot play. `--defect` plants a defect of `beside_defects.py`.

It enters a network namespace with `lo` alone.
"""
# ruff: noqa: T201 - it speaks to who started it

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from attrs import asdict

import hostile_servers
from beside_agent import WatchedAgent
from beside_boundaries import BOUNDARIES, HEALTHY, command_of, configuration, file_in, port_of
from beside_judge import Seen, Verdict, verdicts
from in_memory import lie_in_memory
from lone_network import enter, refuse

HERE = Path(__file__).resolve()
AGENT = [sys.executable, "-m", "uptime_agent"]


class Hostile:
    """The process that gives the inputs, and its output so far."""

    def __init__(self, boundary, inputs, seed, opened):
        command = [sys.executable, str(HERE.with_name("beside_hostile.py")), boundary, str(inputs), seed]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        opened.callback(self.process.kill)
        self.ports = json.loads(self.process.stdout.readline())
        self.given, self.is_done = 0, False
        self.signals, self.defects, self.memory = Counter(), [], 0
        os.set_blocking(self.process.stdout.fileno(), False)
        self._rest = b""

    def begin(self, **agent):
        """Tell it where the agent is."""
        self.process.stdin.write(json.dumps(agent).encode() + b"\n")
        self.process.stdin.flush()

    def progress(self):
        """Read its output. Return True once all inputs are given, and before that their number."""
        *lines, self._rest = (self._rest + (self.process.stdout.read() or b"")).split(b"\n")
        for word, _, more in (line.decode().partition(" ") for line in lines):
            match word:
                case "signal":
                    number, _, said = more.partition(" ")
                    self.signals[said] += int(number)
                case "defect":
                    self.defects.append(more)
                case "memory":
                    self.memory = int(more)
                case "done":
                    self.is_done = True
                case _:
                    self.given = int(word)
        return self.is_done or self.given


def play(boundary, inputs, seed, program):
    """Give all inputs to a new agent. Return the evidence."""
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix=f"beside-{boundary}-")))
        hostile = Hostile(boundary, inputs, seed, opened)
        text = configuration(boundary, healthy_port(opened), hostile.ports, push_port := port_of(boundary), inputs)
        file_in(folder).write_text(text)
        agent = WatchedAgent(command_of(boundary, program), folder, file_in(folder), HEALTHY)
        opened.callback(agent.process.kill)
        stuck = agent.until_all_are_checked()
        place = {"pid": agent.process.pid, "file": str(file_in(folder)), "output": str(agent.output)}
        hostile.begin(**place, text=text, push_port=push_port)
        stuck = stuck or agent.until(hostile.progress) or agent.until_all_are_checked()
        ended = agent.stop()
        return Seen(
            wanted=inputs,
            given=hostile.given,
            exit=ended,
            stuck=stuck,
            checks=tuple(agent.checks),
            samples=tuple(agent.samples),
            peak=max(agent.peak, hostile.memory),
            memory=tuple(agent.memory),
            defects=(*hostile.defects, *agent.defects()),
            others=dict(agent.others),
            reached={each: agent.has_said(each) for each in BOUNDARIES[boundary].reaches},
            signals=dict(hostile.signals),
        )


def healthy_port(opened):
    """Start the server of the healthy targets. Return its port."""
    command = [sys.executable, hostile_servers.__file__, "healthy"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    opened.callback(process.kill)
    return int(process.stdout.readline())


def judged(boundary, options, program):
    """Play until no timed verdict fails, `plays` times at most. Return the last evidence and its verdicts."""
    for _ in range(options.plays):
        seen = play(boundary, options.inputs * BOUNDARIES[boundary].times, options.seed, program)
        found = list(verdicts(seen))
        if all(each.holds or not each.is_timed for each in found):
            break
    return seen, found


def report(boundary, options):
    """Judge one boundary in a process of its own, so that its witness waits for no other."""
    command = [sys.executable, str(HERE), boundary, "--inputs", str(options.inputs), "--seed", options.seed, "--json"]
    command += ["--plays", str(options.plays)]
    command += [] if options.defect is None else ["--defect", options.defect]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout)[boundary]
    except ValueError:
        return {"verdicts": [asdict(Verdict("judged", f"status {done.returncode}: {done.stderr[-2000:]}", False))]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "boundaries", nargs="*", choices=[*BOUNDARIES, []], metavar="BOUNDARY", help=", ".join(BOUNDARIES)
    )
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--at-once", type=int, default=2, help="agents that run at a time")
    parser.add_argument("--plays", type=int, default=3, help="each of which has to fail for a timed verdict to fail")
    parser.add_argument("--defect", help="plant this defect in the agent")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    enter(HERE)
    if not Path("/proc/self/schedstat").exists():
        refuse(HERE, "this system does not count how long a thread had no core (/proc/PID/schedstat)")
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup the agent would ignore the signal to read its file
    lie_in_memory()
    boundaries = options.boundaries or list(BOUNDARIES)
    program = (
        AGENT if options.defect is None else [sys.executable, str(HERE.with_name("beside_defects.py")), options.defect]
    )
    if len(boundaries) == 1:
        seen, found = judged(boundaries[0], options, program)
        reports = {boundaries[0]: {"others": seen.others, "verdicts": [asdict(each) for each in found]}}
    else:
        with ThreadPoolExecutor(options.at_once) as pool:
            reports = dict(zip(boundaries, pool.map(lambda each: report(each, options), boundaries), strict=True))
    if options.json:
        print(json.dumps(reports))
    else:
        tell(reports)
    sys.exit(0 if all(each["holds"] for one in reports.values() for each in one["verdicts"]) else 1)


def tell(reports):
    """Print a line for each verdict."""
    for boundary, one in reports.items():
        print(f"{boundary}: {one.get('others', '')}")
        for each in one["verdicts"]:
            print(f"  {'ok  ' if each['holds'] else 'FAIL'}  {each['what']:<24} {each['seen']}")


if __name__ == "__main__":
    main()

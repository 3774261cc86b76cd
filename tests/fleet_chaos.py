"""Trouble a fleet of agents that share a PostgreSQL, and judge it by what its tasks wrote.

    python3 tests/fleet_chaos.py --for 10m --seed 1 --jobs 20000 --rate 1000

Three agents run so many jobs, so many starts a second, each agent behind a proxy of its own. Every few seconds one of
KINDS befalls one of them, or the server; mostly while a commit of that agent is in flight: its COMMIT is held on the
way, or the answer to it. The same seed gives the same troubles, not at the same instants to the microsecond. One agent
at least is left alone at any time.

Exits with 0 if all holds that fleet_judge.py looks at, with 1 if not, and with 2, "inconclusive", if one of the kinds
befell nobody often enough, or never while a commit was in flight.
"""
# ruff: noqa: T201 - it speaks to who started it

import argparse
import importlib.util
import json
import os
import random
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

if importlib.util.find_spec("anyio") is None:  # an interpreter without our dependencies: dev.py has one with them
    dev = Path(__file__).resolve().parents[1] / "dev.py"
    os.execv(sys.executable, [sys.executable, str(dev), "chaos", *sys.argv[1:]])

import scheduler
from fleet_judge import judge, lateness
from fleet_members import Fleet, freeze, us_now
from postgres_server import PostgresServer

LEASE = 3.0
LIMIT = 7
IN_FLIGHT = 0.7
"""How many of the troubles wait for a commit first."""

UNITS = {"s": 1, "m": 60, "h": 3600}
EDITED = 0.05
SHARES = {"again": 0.05, "limited": 0.05, "edited": EDITED}
"""Of the jobs; the rest runs at most once, without a limit."""

STEPS = (-3600.0, -20.0, -2.0, 2.0, 20.0, 3600.0)
"""Seconds by which the wall clock of an agent is set."""


# -- what befalls whom: each returns once it is over -------------------------------------------------------------------


def kill(fleet, member, dice):
    """Kill -9. A commit that is held on the way goes on after a while: its agent may have been replaced by then."""
    member.kill()
    time.sleep(LEASE + 2 if member.held == "words" else dice.choice((0, 0.5)))
    member.proxy.let_go()
    member.launch()


def lose(fleet, member, dice):
    """Kill -9, with a commit on the way that arrives once others have taken over. Nobody takes its place."""
    member.hold_a_commit(answer=False)
    member.kill()
    time.sleep(LEASE + 2)
    member.proxy.let_go()


def stop(fleet, member, dice):
    """Freeze it, for less than its lease, or for more."""
    freeze(member, dice.choice((0.2, 1.0, LEASE - 0.5, LEASE + 1, LEASE + 3)))


def freeze_for_long(fleet, member, dice):
    """Freeze it until others have taken over."""
    freeze(member, LEASE + 3)


def cut(fleet, member, dice):
    """Cut it off: nothing goes through, and all that was said arrives afterwards."""
    member.proxy.black_hole()
    time.sleep(dice.choice((0.5, LEASE - 0.5, LEASE + 1, LEASE + 3)))
    member.proxy.pass_on()


def half_open(fleet, member, dice):
    """Let one side believe that the connection is there."""
    if dice.choice((True, False)):
        member.proxy.leave_clients_hanging()
    else:
        member.proxy.leave_server_hanging()
        time.sleep(LEASE)
        member.proxy.reset()


def reset(fleet, member, dice):
    """Reset its connections, and refuse others for a while."""
    member.proxy.refuse()
    time.sleep(dice.choice((0, 0.5, LEASE + 1)))
    member.proxy.pass_on()


def delay(fleet, member, dice):
    """Let everything that is said take longer."""
    member.proxy.delay(dice.choice((0.02, 0.1, 0.3)))
    time.sleep(2)
    member.proxy.pass_on()


def restart(fleet, member, dice):
    """Restart the server; "immediate" is a crash of it."""
    fleet.server.restart(dice.choice(("fast", "immediate")))
    member.proxy.let_go()


def edit(fleet, member, dice):
    """Have it change jobs, whoever has them."""
    ids = [f"edited-{number}" for number in range(fleet.counts["edited"])]
    for job in dice.sample(ids, min(3, len(ids))):
        verb = dice.choice(("remove", "add", "add", "pause", "resume", "update"))
        every = fleet.config["every"] * dice.choice((0.5, 1.0))
        asked = us_now()
        command = {"verb": verb, "id": job, "every": every}
        is_done = member.ask(meanwhile=lambda: (time.sleep(0.1), member.proxy.let_go()), **command)
        if is_done is not False:  # that one says that there is no such job
            fleet.note_edit(verb, job, round(every * 1e6), asked, is_done=is_done)


def clock(fleet, member, dice):
    """Set its wall clock, and back after a while."""
    member.ask(verb="clock", offset=dice.choice(STEPS))
    time.sleep(dice.choice((0.5, 3.0)))
    member.ask(verb="clock", offset=0.0)


def leave(fleet, member, dice):
    """End it in order. Later another one takes its place."""
    threading.Timer(0.2, member.proxy.let_go).start()
    member.leave()
    time.sleep(dice.choice((0.2, 2.0)))
    member.launch()


def join(fleet, member, dice):
    """Let a fourth one come, and leave."""
    fourth = fleet.members[-1]
    fourth.start()
    member.proxy.let_go()
    time.sleep(dice.choice((1.0, 3.0)))
    fourth.leave()


KINDS = {each.__name__: each for each in (kill, stop, cut, half_open, reset, delay, restart, edit, clock, leave, join)}
ALSO = {"lose": lose, "freeze": freeze_for_long}
"""What befalls nobody unless it is asked for."""


class Operator:
    """Who troubles a fleet. `wanted`: the kinds; `least`: how often each has to befall somebody."""

    def __init__(self, fleet, *, seed, wanted, pace):
        self.fleet = fleet
        self.seed = seed
        self.wanted = wanted
        self.pace = pace
        self._untroubled = list(fleet.members[:-1])
        self._some_are_free = threading.Condition()
        self._at_the_server = threading.Lock()
        self._joins = threading.Lock()
        self._threads = []
        self.errors = []

    def trouble(self, seconds):
        """Trouble it for so long; return once the last trouble is over."""
        over = time.monotonic() + seconds
        for number, kind in enumerate(self._plan()):
            if time.monotonic() > over or self.errors:
                break
            member = self._one_that_is_free(random.Random(f"{self.seed} who {number}"))
            thread = threading.Thread(target=self._befall, args=(kind, member, number), daemon=True)
            self._threads.append(thread)
            thread.start()
            time.sleep(self.pace)
        for thread in self._threads:
            thread.join()
        for member in self.fleet.members:
            member.proxy.pass_on()

    def _plan(self):
        """Yield the kinds, each as often as any other."""
        for turn in range(10_000):
            kinds = list(self.wanted)
            random.Random(f"{self.seed} turn {turn}").shuffle(kinds)
            yield from kinds

    def _one_that_is_free(self, dice):
        """Take one away; one has to stay that is left alone."""
        with self._some_are_free:
            self._some_are_free.wait_for(lambda: len(self._untroubled) > 1)
            self._untroubled.sort(key=lambda member: member.name)
            return self._untroubled.pop(dice.randrange(len(self._untroubled)))

    def _befall(self, kind, member, number):
        dice = random.Random(f"{self.seed} {number}")
        try:
            with self._at_the_server if kind == "restart" else self._joins if kind == "join" else threading.Lock():
                self._befall_now(kind, member, dice)
        except Exception as error:  # noqa: BLE001 - told in the end
            self.errors.append(f"{kind} of {member.name}: {error!r}")
        finally:
            with self._some_are_free:
                self._untroubled.append(member)
                self._some_are_free.notify()

    def _befall_now(self, kind, member, dice):
        member.held = ""
        if dice.random() < IN_FLIGHT:
            member.hold_a_commit(answer=dice.choice((True, False)))
        since, number = us_now(), member.number
        (KINDS | ALSO)[kind](self.fleet, member, dice)
        self.fleet.note(kind, number, since, in_flight=bool(member.held))


def chaos(server, folder, options):
    """Play it. Returns the evidence, and what kept it from being played as planned."""
    counts = {kind: max(2, round(options.jobs * share)) for kind, share in SHARES.items()}
    counts["once"] = options.jobs - sum(counts.values())
    is_limited_together = hasattr(scheduler, "fleet")
    config = {"every": options.jobs / options.rate, "limit": LIMIT}
    fleet = Fleet(server, folder, names="abcdefgh"[: options.agents + 1], config=config, defect=options.defect)
    fleet.counts = counts
    with fleet:
        fleet.start(options.agents, counts)
        operator = Operator(fleet, seed=options.seed, wanted=options.kinds, pace=options.pace)
        operator.trouble(options.seconds)
        quiet = us_now()
        time.sleep(2 * config["every"] + LEASE + 2)
        fleet.end()
        batch = 50 + 5 * options.rate
        evidence = fleet.evidence(
            quiet=quiet, batch=batch, limit=LIMIT * (1 if is_limited_together else options.agents + 1)
        )
    return evidence, operator.errors


def is_inconclusive(evidence, options):
    """Yield the kinds that did not befall anybody often enough."""
    befell = Counter(each.kind for each in evidence.troubles)
    in_flight = Counter(each.kind for each in evidence.troubles if each.in_flight)
    for kind in options.kinds:
        if befell[kind] < options.least:
            yield f"{kind} befell {befell[kind]} times, fewer than {options.least}"
        if options.least and not in_flight[kind]:
            yield f"{kind} never befell while a commit was in flight"


def told(evidence):
    """Yield what there is to say of a run, line by line."""
    befell = Counter(each.kind for each in evidence.troubles)
    in_flight = Counter(each.kind for each in evidence.troubles if each.in_flight)
    yield "troubles (with a commit in flight): " + ", ".join(
        f"{kind} {befell[kind]} ({in_flight[kind]})" for kind in befell
    )
    late = lateness(evidence)
    shown = ", ".join(f"{share:.0%} {late[int(share * (len(late) - 1))] * 1e3:,.1f} ms" for share in (0.5, 0.99, 1))
    cut_off = sum(each.outcome == "crashed" for each in evidence.records)
    yield f"{len(evidence.begun):,} runs of {len(evidence.by_tick):,} ticks by {len(evidence.gone)} incarnations"
    yield f"begun late: {shown}"
    yield f"cut off, with a record: {cut_off}; in quarantine: {len(evidence.quarantined)}; edits: {len(evidence.edits)}"


def seconds(text):
    """Read a length such as 30s or 10m."""
    found = re.fullmatch(r"([0-9]+)([smh])", text)
    if not found:
        raise argparse.ArgumentTypeError(f"expected a length such as 30s or 10m, found {text!r}")
    return float(found[1]) * UNITS[found[2]]


def arguments(given=None):
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--for", dest="seconds", type=seconds, default=600.0, help="how long, as in 30s or 10m")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--rate", type=float, default=1_000.0, help="starts a second")
    parser.add_argument("--agents", type=int, default=3)
    parser.add_argument("--pace", type=float, default=5.0, help="seconds from one trouble to the next")
    parser.add_argument("--least", type=int, default=5, help="how often each kind has to befall somebody")
    parser.add_argument("--kinds", nargs="+", choices=KINDS | ALSO, default=list(KINDS))
    parser.add_argument("--defect", default="", help="plant this one: the judge has to find it")
    parser.add_argument("--keep", type=Path, help="a folder for the files, to be looked at afterwards")
    return parser.parse_args(given)


def main(given=None):
    options = arguments(given)
    with tempfile.TemporaryDirectory(prefix="timerqueue-chaos-") as name, PostgresServer() as server:
        folder = options.keep or Path(name)
        folder.mkdir(exist_ok=True, parents=True)
        evidence, errors = chaos(server, folder, options)
    if options.keep:
        kept = {
            "records": evidence.records,
            "troubles": evidence.troubles,
            "edits": evidence.edits,
            "gone": evidence.gone,
        }
        (folder / "evidence.json").write_text(json.dumps(kept | {"wall": evidence.wall, "quiet": evidence.quiet}))
    for line in told(evidence):
        print(line)
    wrong = [*(f"operator: {error}" for error in errors), *judge(evidence)]
    for line in wrong[:30]:
        print(line)
    print(f"violations {len(wrong)}")
    lacking = list(is_inconclusive(evidence, options))
    for line in lacking:
        print(f"inconclusive: {line}")
    return 1 if wrong else 2 if lacking else 0


if __name__ == "__main__":
    sys.exit(main())

"""Trouble a fleet of agents that share a PostgreSQL and a beanstalkd, and judge it by what its tasks wrote.

    python3 tests/lab/fleet/fleet_chaos.py --for 10m --seed 1 --jobs 20000 --rate 1000

Four agents run so many jobs, so many starts a second. A fifth of the jobs have their executions in the beanstalkd; the
rest belong to the agents by shards; some of those share a limit of the fleet, and some are run by two agents or by
all. Each agent reaches each server through a proxy of its own, as far from PostgreSQL as `--distances` says. Every few
seconds one of fleet_troubles.KINDS befalls one of them, or a server; mostly while a commit of that agent is
in flight: its COMMIT is held on the way, or the answer to it. The same seed gives the same troubles, not at the same
instants to the microsecond. One agent at least is left alone at any time.

The bad days of PostgreSQL (fleet_outage_troubles.py) come one at a time, when no other trouble goes on: so it is seen
how long it takes from its return until all starts are on time again.

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
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter, defaultdict
from contextlib import ExitStack
from pathlib import Path

if importlib.util.find_spec("anyio") is None:  # an interpreter without our dependencies: dev.py has one with them
    dev = Path(__file__).resolve().parents[3] / "dev.py"
    os.execv(sys.executable, [sys.executable, str(dev), "chaos", *sys.argv[1:]])

import beanstalkd_server
import fleet_outage_troubles as bad_days
from faked_clock import FAKETIME
from fleet_evidence import lateness
from fleet_judge import judge, unexplained
from fleet_members import Fleet, us_now
from fleet_outage_judge import told_of_outages
from fleet_troubles import ALSO, AT_THE_BROKER, KINDS, LEASE, ONE_AT_A_TIME
from postgres_server import PostgresServer

ALL_KINDS = KINDS | bad_days.ALONE | bad_days.BESIDE

IN_FLIGHT = 0.7
"""How many of the troubles wait for a commit first; all until their kind has met one."""

LOOKED_AT = 1.5
"""Seconds until the next trouble, from when all has to be well again after a bad day of the server."""

BURST = 60
"""Jobs that are all due at once, and take a second each."""

LONG = 4.0
"""Seconds that some runs take, if there are bad days: these would be cut off."""

UNITS = {"s": 1, "m": 60, "h": 3600}
SHARES = {"again": 0.05, "limited": 0.05, "edited": 0.05}
"""Of the jobs; the rest runs at most once, without a limit."""

PARTED = {"many": 0.02, "everywhere": 0.01}
"""Of the jobs, if there are two agents or more: each tick is run by two of them, or by all."""

LASTING = {"long": 0.005}
"""Of the jobs, if there are bad days of the server."""

QUEUED = {"queued": 0.2, "queued_edited": 0.05}
"""Of the jobs, if there is a broker."""

SHOWN_OF_A_RULE = 12

PATIENCE = 120.0
"""Seconds after the end in which what is owed may still begin."""

SHOWN = (0.5, 0.99, 1)
"""Quantiles of lateness."""

USED = 0.5
"""How much of the limit its jobs need, if nothing befalls them: the rest makes up for what did."""


class Operator:
    """Who troubles a fleet. `wanted`: the kinds; `least`: how often each has to befall somebody."""

    def __init__(self, fleet, *, seed, wanted, pace):
        self.fleet = fleet
        self.seed = seed
        self.wanted = wanted
        self.pace = pace
        self._untroubled = list(fleet.members[:-1])
        self._some_are_free = threading.Condition()
        self._one_at_a_time = defaultdict(threading.Lock)
        self._met = set()
        """Kinds that have met a commit in flight."""
        self._threads = []
        self._lasting = []
        self.errors = []

    def trouble(self, seconds):
        """Trouble it for so long; return once the last trouble is over."""
        over = time.monotonic() + seconds
        for number, kind in enumerate(self._plan()):
            if time.monotonic() > over or self.errors:
                break
            if kind in bad_days.ENDS_SESSIONS:
                self._wait_for(self._lasting)
            if kind in bad_days.ALONE:
                self._have_a_bad_day(kind, number)
                continue
            beside = kind in bad_days.BESIDE
            member = self._one_of_all(number) if beside else self._one_that_is_free(self._dice_for(number))
            thread = threading.Thread(target=self._befall, args=(kind, member, number, beside), daemon=True)
            (self._lasting if kind in bad_days.LASTING else self._threads).append(thread)
            thread.start()
            time.sleep(self.pace)
        self._wait_for(self._threads)
        self._wait_for(self._lasting)
        for member in self.fleet.members:
            for proxy in member.proxies():
                proxy.pass_on()

    def _have_a_bad_day(self, kind, number):
        """Trouble a fleet that is well, and look at it until it has to be well again."""
        self._wait_for(self._threads)
        time.sleep(LEASE)
        self._befall(kind, self._one_of_all(number), number, beside=True)
        time.sleep(self.fleet.within + LOOKED_AT)

    def _wait_for(self, threads):
        while threads:
            threads.pop().join()

    def _plan(self):
        """Yield the kinds, each as often as any other: first what lasts, and last what would end it."""
        for turn in range(10_000):
            kinds = list(self.wanted)
            random.Random(f"{self.seed} turn {turn}").shuffle(kinds)
            kinds.sort(key=lambda kind: (kind != "hold_snapshots", kind in bad_days.ENDS_SESSIONS, kind != "publish"))
            yield from kinds

    def _dice_for(self, number):
        return random.Random(f"{self.seed} who {number}")

    def _one_of_all(self, number):
        """Choose one of those that can be troubled, whatever befalls it."""
        return self._dice_for(number).choice(self.fleet.members[:-1])

    def _one_that_is_free(self, dice):
        """Take one away; one has to stay that is left alone."""
        with self._some_are_free:
            self._some_are_free.wait_for(lambda: len(self._untroubled) > 1)
            self._untroubled.sort(key=lambda member: member.name)
            return self._untroubled.pop(dice.randrange(len(self._untroubled)))

    def _befall(self, kind, member, number, beside):
        """Have it befall a member; `beside`: whatever befalls that one, which is not taken away from the others."""
        dice = random.Random(f"{self.seed} {number}")
        try:
            with self._one_at_a_time[(ONE_AT_A_TIME | bad_days.ONE_AT_A_TIME).get(kind, number)]:
                self._befall_now(kind, member, dice)
        except Exception as error:  # noqa: BLE001 - told in the end
            where = traceback.extract_tb(error.__traceback__)[-1]
            self.errors.append(f"{kind} of {member.name}: {error!r} in {where.name}, line {where.lineno}")
            print(self.errors[-1], file=sys.stderr)
        finally:
            if not beside:
                with self._some_are_free:
                    self._untroubled.append(member)
                    self._some_are_free.notify()

    def _befall_now(self, kind, member, dice):
        member.held, meets = "", kind not in bad_days.BESIDE
        if meets and (kind not in self._met or dice.random() < IN_FLIGHT):
            member.hold_a_commit(answer=dice.choice((True, False)))
        if member.held:
            self._met.add(kind)
        since, number = us_now(), member.number
        span = (ALL_KINDS | ALSO)[kind](self.fleet, member, dice)
        in_flight = meets and bool(member.held)
        if kind in bad_days.ALONE or kind in bad_days.LASTING:
            since, until, lost = span
            self.fleet.note(kind, number, since, in_flight=in_flight, until=until, lost=lost)
        elif kind != "narrow":  # which has noted itself, with who came
            self.fleet.note(kind, number, since, in_flight=in_flight)


def counts_of(options):
    """How many jobs there are of each kind."""
    shares = SHARES | (QUEUED if has_broker(options) else {})
    shares |= LASTING if not bad_days.ALONE.keys().isdisjoint(options.kinds) else {}
    counts = {kind: max(2, round(options.jobs * share)) for kind, share in shares.items()}
    counts["limited"] = max(counts["limited"], 3 * options.limit)
    parted = {kind: max(1, round(options.jobs * share)) for kind, share in PARTED.items()}
    starts = sum(counts.values()) + 2 * parted["many"] + options.agents * parted["everywhere"]
    counts |= {"queued_burst": BURST} if "narrow" in options.kinds else {}
    return counts | parted | {"once": max(2, options.jobs - starts)}


def has_broker(options):
    """Whether anything is to befall a broker."""
    return not {*AT_THE_BROKER, "narrow"}.isdisjoint(options.kinds)


def chaos(server, broker, folder, options):
    """Play it. Returns the evidence, and what kept it from being played as planned."""
    counts, every = counts_of(options), options.jobs / options.rate
    config = {
        "every": every,
        "limit": options.limit,
        "takes": {
            "again": 0.01,
            "limited": USED * options.limit * every / counts["limited"],
            "long": min(LONG, every / 2),
            "queued_burst": 1.0,
        },
        "audits": options.audits,
    }
    fleet = Fleet(
        server,
        folder,
        names="abcdefgh"[: options.agents + 1],
        config=config,
        broker=broker,
        schema=options.schema,
        defect=options.defect,
        distances=options.distances,
    )
    fleet.counts, fleet.within = counts, options.within
    with fleet:
        fleet.start(options.agents, counts)
        if "bulk_edit" in options.kinds:
            bad_days.fall_asleep(fleet, options.asleep)
        operator = Operator(fleet, seed=options.seed, wanted=options.kinds, pace=options.pace)
        operator.trouble(options.seconds)
        found = {"quiet": us_now(), "batch": 50 + 5 * options.rate, "limit": options.limit}
        found |= {"within": options.within, "on_time": 0.5 + 5 * max(options.distances)}
        time.sleep(every + LEASE + 2 + (options.audits if broker else 0))
        if not options.defect:
            await_the_rest(fleet, found)
        fleet.end()
        evidence = fleet.evidence(**found)
    return evidence, operator.errors


def await_the_rest(fleet, found):
    """Wait until all that was due has begun, on a slow machine too; or until it does not get less, or too long."""
    over = time.monotonic() + PATIENCE
    before, lacking = float("inf"), len(list(unexplained(fleet.evidence(**found))))
    while 0 < lacking < before and time.monotonic() < over:
        print(f"{lacking:,} that were due have not begun yet", file=sys.stderr)
        time.sleep(2 * LEASE)
        before, lacking = lacking, len(list(unexplained(fleet.evidence(**found))))


def is_inconclusive(evidence, options):
    """Yield the kinds that did not befall anybody often enough."""
    befell = Counter(each.kind for each in evidence.troubles)
    in_flight = Counter(each.kind for each in evidence.troubles if each.in_flight)
    for kind in options.kinds:
        if befell[kind] < options.least:
            yield f"{kind} befell {befell[kind]} times, fewer than {options.least}"
        if options.least and not in_flight[kind] and kind not in bad_days.BESIDE:
            yield f"{kind} never befell while a commit was in flight"


def told(evidence):
    """Yield what there is to say of a run, line by line."""
    befell = Counter(each.kind for each in evidence.troubles)
    in_flight = Counter(each.kind for each in evidence.troubles if each.in_flight)
    yield "troubles (with a commit in flight): " + ", ".join(
        f"{kind} {befell[kind]} ({in_flight[kind]})" for kind in befell
    )
    cut_off = sum(each.outcome == "crashed" for each in evidence.records)
    yield f"{len(evidence.begun):,} runs of {len(evidence.by_tick):,} ticks by {len(evidence.gone)} incarnations"
    yield from told_of_outages(evidence)
    for kind in ("", "once", "again", "limited", "many", "everywhere", "queued", "queued_burst"):
        if late := lateness(evidence, kind):
            shown = ", ".join(f"{share:.0%} {late[int(share * (len(late) - 1))] * 1e3:,.1f} ms" for share in SHOWN)
            yield f"begun late, {kind or 'all'}: {shown}"
    yield f"cut off, with a record: {cut_off}; in quarantine: {len(evidence.quarantined)}; edits: {len(evidence.edits)}"


def shown(wrong):
    """Yield the first violations of each rule, and how many there are of it."""
    of_rules = defaultdict(list)
    for line in wrong:
        of_rules[line.partition(":")[0]].append(line)
    for rule, lines in of_rules.items():
        yield from lines[:SHOWN_OF_A_RULE]
        yield f"{rule}: {len(lines):,} in all"


def seconds(text):
    """Read a length such as 30s or 10m."""
    found = re.fullmatch(r"([0-9]+)([smh])", text)
    if not found:
        raise argparse.ArgumentTypeError(f"expected a length such as 30s or 10m, found {text!r}")
    return float(found[1]) * UNITS[found[2]]


def distances(text):
    """Read milliseconds such as 0,5,60,100. Returns seconds."""
    try:
        return tuple(float(each) / 1e3 for each in text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"expected milliseconds such as 0,5,60,100, found {text!r}") from error


def new_folder(text):
    """Make a folder that is not there yet: logs of another run would be taken for this one's."""
    folder = Path(text)
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"expected a folder that can be made: {error}") from error
    return folder


def arguments(given=None):
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--for", dest="seconds", type=seconds, default=600.0, help="how long, as in 30s or 10m")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--rate", type=float, default=1_000.0, help="starts a second")
    parser.add_argument("--agents", type=int, default=4)
    parser.add_argument(
        "--distances", type=distances, default=distances("0,5,60,100"), help="from PostgreSQL, one way, in ms, in turn"
    )
    parser.add_argument(
        "--within", type=float, default=2.0, help="seconds after a server's return until all is on time"
    )
    parser.add_argument(
        "--asleep", type=int, default=40_000, help="jobs beside the others that only a bulk edit touches"
    )
    parser.add_argument("--limit", type=int, default=7, help="of the fleet, for a part of the jobs")
    parser.add_argument("--pace", type=float, default=5.0, help="seconds from one trouble to the next")
    parser.add_argument("--audits", type=float, default=10.0, help="seconds from one audit of the queue to the next")
    parser.add_argument("--least", type=int, default=5, help="how often each kind has to befall somebody")
    parser.add_argument("--kinds", nargs="+", choices=ALL_KINDS | ALSO, default=list(ALL_KINDS))
    parser.add_argument("--schema", default="chaos", help="in which all of it stands")
    parser.add_argument("--defect", default="", help="plant this one: the judge has to find it")
    parser.add_argument("--keep", type=new_folder, help="a folder for the files, to be looked at afterwards")
    return parser.parse_args(given)


def needed_for(kinds):
    """Return the options of a server that these kinds may befall.

    Its clock is faked for steps of the clock only: with faketime a server has crashed in its waits.
    """
    settings = bad_days.SETTINGS if bad_days.OF_OWN_SERVERS.intersection(kinds) else {}
    return {"faketime": FAKETIME if "server_clock" in kinds else None, "settings": settings}


def main(given=None, server=None):
    """Play it on that server, or on one of its own."""
    options = arguments(given)
    needs = has_broker(options) or "server_clock" in options.kinds
    if needs and (why := beanstalkd_server.why_not(steps=True)):
        print(why)
        return 2
    with ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="timerqueue-chaos-")))
        server = server or stack.enter_context(PostgresServer(**needed_for(options.kinds)))
        broker = stack.enter_context(beanstalkd_server.BeanstalkdServer(steps=True)) if has_broker(options) else None
        if options.keep:
            stack.callback(lambda: shutil.copy(server.folder / "log", folder / "server.log"))
        evidence, errors = chaos(server, broker, folder, options)
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
    for line in shown(wrong):
        print(line)
    print(f"violations {len(wrong)}")
    lacking = list(is_inconclusive(evidence, options))
    for line in lacking:
        print(f"inconclusive: {line}")
    return 1 if wrong else 2 if lacking else 0


if __name__ == "__main__":
    sys.exit(main())

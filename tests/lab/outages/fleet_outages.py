"""What an outage of PostgreSQL costs a fleet of four agents at unlike distances, as a table, row by row.

    python3 tests/lab/outages/fleet_outages.py --lengths 1 10 --kinds stop freeze --source ../another-checkout

Each row is a fleet of its own: jobs of each second, and runs that go on for as long as anybody looks. Then an outage
befalls the server. The row says how long that was away, how many starts were late, how many agents were taken for dead,
how many runs they cut off, how many are on record as crashes, and how long after the server's return all starts were on
time again. Agents reach the server through proxies of their own, and with a pooler all of them through one PgBouncer,
which asks a server that refused it again after a second. Rows that are played at once have servers and folders of their
own. The row `nothing` says whether the machine is fast enough for so many.

    stop        it is stopped and started
    freeze      all its processes stand still
    lock        the table of agents is locked
    promotion   it crashes, and after that time an asynchronous standby is promoted in its place
    used_up     another program has all its connections, and the connections end over which one agent works; behind
                the pooler, whose connections are everybody's, all of them end
    nothing     befalls it: a row that has to be 0 throughout, or this machine is too slow for the others
    password    the password of the agents is another one, and connections end as above
"""
# ruff: noqa: T201 - it speaks to who started it

import argparse
import importlib.util
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, nullcontext
from itertools import product
from pathlib import Path

if importlib.util.find_spec("anyio") is None:  # an interpreter without our dependencies: dev.py has one with them
    dev = Path(__file__).resolve().parents[3] / "dev.py"
    os.execv(sys.executable, [sys.executable, str(dev), "outages", *sys.argv[1:]])

import psycopg

import server_outages
from beanstalkd_server import BeanstalkdServer
from debian_servers import PgBouncer
from fleet_evidence import Evidence, kind_of
from fleet_members import Fleet, socket_of, us_now
from fleet_recovery import gaps, late_starts
from postgres_server import PostgresServer
from proxy import Proxy

AGENTS = "abcd"
DISTANCES = (0.0, 0.005, 0.06, 0.1)
NEAR = (0.0, 0.002, 0.005, 0.01)
"""Seconds from PostgreSQL. With a queue all are near: one that is further away takes more than it can begin on time,
with no outage at all.
"""

SHORT, LONG = 100, 40
"""Jobs of each second, and runs that go on."""

SETTLED = 5.0
"""Seconds after the last agent has come, until what follows is an outage and no coming."""

BEGUN = 9.0
"""Seconds from an edit that adds the long runs until all go on, and the farthest agent is on time again."""

ON_TIME = 1.0
"""Seconds after its due instant at which a start is on time, from a tenth of a second away."""

ROLE = "fleet"
LOGIN = f"user={ROLE} password=right"
HEAD = """\
| outage | seconds | way | queue | away, s | late | buried | cut off | crashed | on time again after, s |
|---|---|---|---|---|---|---|---|---|---|"""


# -- outages -----------------------------------------------------------------------------------------------------------


def stop(place):
    return server_outages.stopped(place.server)


def freeze(place):
    return server_outages.still(place.server)


def lock(place):
    return server_outages.locked(place.server, place.fleet.schemas)


def used_up(place):
    return server_outages.used_up(place.server, place.victim)


@contextmanager
def password(place):
    """Change the password, and back."""
    with psycopg.connect(place.server.dsn, autocommit=True) as hand:
        hand.execute(f"ALTER ROLE {ROLE} PASSWORD 'wrong'")
        place.victim.end(hand)
        yield
        hand.execute(f"ALTER ROLE {ROLE} PASSWORD 'right'")


@contextmanager
def promotion(place):
    """Have a standby follow it, and promote that one once it has crashed."""
    place.server.stop("immediate")
    yield
    place.standby.promote()
    place.move_to(place.standby)


def nothing(_place):
    return nullcontext()


OUTAGES = {each.__name__: each for each in (stop, freeze, lock, promotion, used_up, password)}
ENDS_SESSIONS = {"used_up", "password"}
CONTROL = {"nothing": nothing}
"""What shows whether this machine is fast enough: all starts have to be on time then."""


# -- one row -----------------------------------------------------------------------------------------------------------


class Place:
    """A server, what lies before it, and a fleet that shares it."""

    def __init__(self, stack, row, options):
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="timerqueue-outages-")))
        self.server = stack.enter_context(PostgresServer(settings={"max_connections": 80}))
        self._let_in()
        self.door = Proxy(socket_of(self.server))
        self.leads_on = self.door if row.way == "pooler" else None
        front = None
        if self.leads_on:
            stack.enter_context(self.door)
            front = stack.enter_context(closing(self._pooler())).folder / ".s.PGSQL.6432"
        broker = stack.enter_context(BeanstalkdServer()) if row.has_queue else None
        config = {"every": 1.0, "limit": 7, "takes": {"long": 1e6, "queued_long": 1e6}, "audits": 10.0, "login": LOGIN}
        source = {"PYTHONPATH": str(Path(options.source).resolve() / "src")} if options.source else {}
        self.fleet = Fleet(
            self.server,
            folder,
            names=AGENTS,
            config=config | {"has_only_queue": row.has_queue, "room": 1_000},
            broker=broker,
            distances=NEAR if row.has_queue else DISTANCES,
            door=front,
            environment=source,
        )
        if row.has_queue:
            del self.fleet.schemas["chaos"]
        self.victim = self.standby = None
        stack.enter_context(self.fleet)

    def _let_in(self):
        """Let the agents log in with a password."""
        rules = self.server.folder / "data" / "pg_hba.conf"
        rules.write_text(f"local all {ROLE} scram-sha-256\n" + rules.read_text())
        server_outages.ask(self.server, f"CREATE ROLE {ROLE} SUPERUSER LOGIN PASSWORD 'right'")
        server_outages.ask(self.server, "SELECT pg_reload_conf()")

    def _pooler(self):
        return PgBouncer(
            self.server,
            20,
            leads_to=f"host=127.0.0.1 port={self.door.port}",
            users=f'"{ROLE}" "right"\n',
            more="server_login_retry = 1\nignore_startup_parameters = extra_float_digits\n",
        )

    def move_to(self, server):
        """Let all find that server where the former one was."""
        if self.leads_on:
            self.leads_on.lead_to(socket_of(server))
            self.fleet.server = server
        else:
            self.fleet.move_to(server)


def victim_of(row, server):
    """Return whose sessions end. Behind a pooler an agent whose session has ended is given another one at once."""
    if row.way == "pooler":
        return server_outages.Victim.all_of(ROLE)
    return server_outages.Victim.working(server, f"{AGENTS[1]}-queue" if row.has_queue else AGENTS[1])


class Row:
    """One row of the table."""

    def __init__(self, kind, length, way, has_queue):
        self.kind = kind
        self.length = length
        self.way = way
        self.has_queue = has_queue
        self.place = f"{kind} | {length:g} | {way} | {'yes' if has_queue else 'no'}"

    def text(self, options):
        """Play the row. Returns its text; where it could not be played, that says why."""
        try:
            return f"| {self.place} | {self.played(options)} |"
        except Exception as error:  # noqa: BLE001 - the other rows are worth playing
            return f"| {self.place} | could not be played: {error!r} |"

    def played(self, options):
        """Play it. Returns the figures."""
        with ExitStack() as stack:
            place = Place(stack, self, options)
            place.fleet.start(1, {"queued" if self.has_queue else "once": SHORT})
            for member in place.fleet.members[1:]:
                member.launch()
            for member in place.fleet.members[1:]:
                member.await_begin()
            if self.kind == "promotion":
                place.standby = stack.enter_context(server_outages.Standby(place.server))
                place.standby.catch_up()
            time.sleep(SETTLED)
            long = "queued_long" if self.has_queue else "long"
            place.fleet.members[0].ask(verb="add", id=long, ids=[f"{long}-{n}" for n in range(LONG)], every=1.0)
            time.sleep(BEGUN)
            if self.kind in ENDS_SESSIONS:
                place.victim = victim_of(self, place.server)
            since = us_now()
            with (OUTAGES | CONTROL)[self.kind](place):
                time.sleep(self.length)
            back = us_now()
            time.sleep(options.observe)
            until = us_now()
            evidence = place.fleet.evidence(quiet=until, batch=0, limit=7)
            for member in place.fleet.members:
                member.kill()
        return self.figures(evidence, since, back, until)

    def figures(self, evidence, since, back, until):
        """Return the row's figures. The outage went on from `since` to `back`, and starts are counted to `until`."""
        short = of_short_runs(evidence)
        last = max([back, *late_starts(short, since, until), *gaps(short, back, until)])
        after = f"{(last - back) / 1e6:.1f}" if last < until else f"not within {(until - back) / 1e6:.0f}"
        buried = len({each.process for each in evidence.events if each.kind == "lost"})
        cut_off = sum(1 for job, *_ in evidence.cut_off if "long" in kind_of(job))
        crashed = sum(each.outcome == "crashed" for each in evidence.records)
        late = sum(each.at >= since and was_due >= since - short.on_time * 1e6 for each, was_due in short.late)
        return f"{(back - since) / 1e6:.1f} | {late} | {buried} | {cut_off} | {crashed} | {after}"


def of_short_runs(evidence):
    """Return the evidence of runs that end at once."""
    begun = [each for each in evidence.begun if "long" not in kind_of(each.job)]
    more = {"every": evidence.every, "limit": 0, "batch": 0, "quiet": evidence.quiet, "wall": evidence.wall}
    return Evidence(begun=begun, ended=(), on_time=ON_TIME, **more)


def arguments(given=None):
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lengths", nargs="+", type=float, default=[0.3, 1, 3, 10, 60], help="of the outages, seconds")
    parser.add_argument("--kinds", nargs="+", choices=OUTAGES | CONTROL, default=list(OUTAGES))
    parser.add_argument("--ways", nargs="+", choices=("direct", "pooler"), default=["direct", "pooler"])
    parser.add_argument("--queues", nargs="+", choices=("no", "yes"), default=["no", "yes"])
    parser.add_argument("--observe", type=float, default=12.0, help="seconds from the server's return to the end")
    parser.add_argument("--at-once", type=int, default=1, help="rows that are played at the same time")
    parser.add_argument("--source", help="another checkout, whose source the agents run")
    return parser.parse_args(given)


def in_order(play, rows, at_once):
    """Play so many rows at a time. Yields what each gave in the order of the rows, as soon as it is there."""
    with ThreadPoolExecutor(at_once) as pool:
        yield from pool.map(play, rows)


def main(given=None):
    """Play the rows, and print each when it has been played."""
    options = arguments(given)
    print(HEAD, flush=True)
    found = product(options.lengths, options.queues, options.ways, options.kinds)
    rows = [Row(kind, length, way, queue == "yes") for length, queue, way, kind in found]
    for text in in_order(lambda row: row.text(options), rows, options.at_once):
        print(text, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

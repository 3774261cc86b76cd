"""Bad days of the server that a fleet shares, kind by kind: for the operator of fleet_chaos.py.

Each kind is a function of the fleet, of a member and of dice, as in fleet_troubles.py. It returns the Span in which it
went on, which is what the judge counts from; what has to be done before and after does not belong to it.
"""

import contextlib
import threading
import time
from typing import NamedTuple

import psycopg
from psycopg import sql

import server_outages
from fleet_agent import ASLEEP
from fleet_members import us_now
from kit import wait_until

LEASE = 3.0
LENGTHS = (1, 3, 10)
"""Seconds of an outage: a part of a lease, a lease, and more."""

BEHIND = (0.0, 0.5, 2.0)
"""Seconds by which a standby may be behind when its primary fails."""

STARVES = 14.0
"""Seconds without a free connection: more than a lease, the time for others to take over, and some to look at."""

LETS_GO = 0.2
"""Seconds for which a commit is held at most while a server goes away."""

HOLDS = 60.0
PUBLISHES = 10.0
NARROW = 5.0
"""Seconds from when a worker comes that has room for one run until all ticks of a burst are due, and until it goes."""


class Span(NamedTuple):
    """From when to when it went on. `lost`: from when on what was committed before it is not known any more."""

    since: int
    until: int
    lost: int | None = None


def outage(block, seconds):
    """Return the kind of trouble that the server is away, by that block, for so long.

    A commit that is held goes on once the server is away. A lock waits for it, so that goes on soon in any case.
    """

    def befall(fleet, member, _dice):
        since = us_now()
        soon = threading.Timer(LETS_GO, member.proxy.let_go)
        soon.start()
        with block(fleet):
            soon.cancel()
            member.proxy.let_go()
            time.sleep(seconds)
        return Span(since, us_now())

    return befall


BLOCKS = {
    "stop": lambda fleet: server_outages.stopped(fleet.server),
    "freeze": lambda fleet: server_outages.still(fleet.server),
    "lock": lambda fleet: server_outages.locked(fleet.server, fleet.schemas),
}
OUTAGES = {f"outage_{name}_{seconds}": outage(block, seconds) for name, block in BLOCKS.items() for seconds in LENGTHS}


def promote_sync(fleet, member, dice):
    """Promote a synchronous standby."""
    with fleet.standby() as standby:
        standby.become_synchronous()
        since = us_now()
        if dice.random() < 0.5:
            standby.fall_behind()  # and commits wait for it
            time.sleep(BEHIND[-1])
        return fail_over(fleet, member, standby, dice)._replace(since=since)


def promote_async(fleet, member, dice):
    """Promote a standby that is behind. Another node may have joined in the seconds that are lost. It is cut off until
    one more has joined, which gets its number.
    """
    last = fleet.members[-1]
    with fleet.standby() as standby:
        behind, joins = dice.choice(BEHIND), dice.random() < 0.5
        lost = us_now()  # what is committed while the standby is being cut off may be lost already
        if behind:
            standby.fall_behind()
            if joins:
                last.launch()
                wait_until(lambda: fleet.has_joined(last))
            time.sleep(behind)
            if joins:
                last.proxy.black_hole()
        span = fail_over(fleet, member, standby, dice)
    if behind and joins:
        former = member.number
        member.kill()
        fleet.note("kill", former, us_now())
        member.launch()
        wait_until(lambda: fleet.has_joined(member))
        last.proxy.pass_on()
        time.sleep(2 * LEASE)
        fleet.note("unknown", last.number, lost)
        last.leave()
    return span._replace(lost=lost)


def fail_over(fleet, member, standby, dice):
    """Have the primary crash, and promote a standby. The agents find it there before it is promoted, or after."""
    since = us_now()
    fleet.server.stop("immediate")
    member.proxy.let_go()
    time.sleep(dice.choice((0.0, 1.0)))
    if dice.random() < 0.5:
        fleet.move_to(standby)
        standby.promote()
    else:
        standby.promote()
        fleet.move_to(standby)
    return Span(since, us_now())


def starve(fleet, member, _dice):
    """Let another program have all connections, and end that over which the member commits."""
    member.proxy.let_go()
    victim = server_outages.Victim.working(fleet.server, member.name)  # it has to commit meanwhile
    if member.held:
        member.hold_a_commit(answer=member.held == "answer")
    since = us_now()
    with server_outages.used_up(fleet.server, victim):
        member.proxy.let_go()
        time.sleep(STARVES)
    return Span(since, us_now())


def bulk_edit(fleet, member, dice):
    """Change all jobs by hand, in one statement. No server is away, so what counts is the time from its beginning."""
    jobs = sql.Identifier(next(iter(fleet.schemas)), "job")
    since = us_now()
    server_outages.ask(fleet.server, sql.SQL("UPDATE {} SET name = %s").format(jobs), f"edit {dice.random()}")
    member.proxy.let_go()
    return Span(since, since)


def hold_snapshots(fleet, member, _dice):
    """Keep a transaction open for a minute that has written, and reads what there was at its beginning."""
    since = us_now()
    with contextlib.suppress(psycopg.OperationalError), psycopg.connect(fleet.server.dsn) as hand:  # a restart ends it
        hand.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        hand.execute("SELECT pg_current_xact_id()")
        time.sleep(HOLDS)
        hand.rollback()
    return Span(since, us_now())


def publish(fleet, member, _dice):
    """Publish all tables, and read what is published."""
    since = us_now()
    with server_outages.published(fleet.server) as read:
        over = time.monotonic() + PUBLISHES
        while time.monotonic() < over:
            read()
            time.sleep(0.5)
    return Span(since, us_now())


def narrow(fleet, member, _dice):
    """Let a worker come that has room for one run of those whose executions stand in the broker, and leave."""
    last, every = fleet.members[-1], fleet.config["every"]
    time.sleep((-time.time() - NARROW) % every)
    since = us_now()
    last.start(room=1)
    time.sleep(min(every, 2 * NARROW))
    fleet.note("narrow", last.number, since)
    last.leave()


def fall_asleep(fleet, count):
    """Add jobs that are due on some leap day: rows for whoever changes all of them."""
    jobs = sql.Identifier(next(iter(fleet.schemas)), "job")
    add = sql.SQL(
        "INSERT INTO {} (id, task, schedule, args) SELECT %s || number, 'work', '0 0 29 2 *', '[0]'"
        " FROM generate_series(1, %s) AS number"
    )
    server_outages.ask(fleet.server, add.format(jobs), f"{ASLEEP}-", count)


ALONE = {**OUTAGES, **{each.__name__: each for each in (promote_async, promote_sync, starve, bulk_edit)}}
"""What befalls a fleet that is well otherwise, so that it can be seen how long it takes to be well again."""

BESIDE = {each.__name__: each for each in (hold_snapshots, publish, narrow)}
"""What goes on while other troubles befall it."""

LASTING = {*BESIDE} - {"narrow"}
"""What a restart of the server would end."""

ENDS_SESSIONS = {"restart", "publish"} | {each for each in ALONE if each.startswith(("outage_stop", "promote"))}
"""What ends sessions of the server, or waits until all transactions are over: not beside what is LASTING."""

ONE_AT_A_TIME = {"narrow": "join", "publish": "publish", "hold_snapshots": "hold_snapshots"}
"""As in fleet_troubles.py."""

OF_OWN_SERVERS = {*ALONE, *BESIDE} - {"narrow"}
"""What may befall only servers that nobody else uses, and that are set up for it."""

SETTINGS = {"wal_level": "logical", "max_connections": 140}
"""Of a server that all these may befall."""

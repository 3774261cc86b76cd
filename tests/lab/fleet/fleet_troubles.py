"""What befalls a fleet of agents, kind by kind: for the operator of fleet_chaos.py.

Each kind is a function of the fleet, of the member that it befalls, and of dice; it returns once it is over. A commit
of the member may be held on its way meanwhile (`member.held`).
"""

import threading
import time

from fleet_members import freeze, us_now

LEASE = 3.0
STEPS = (-3600.0, -20.0, -2.0, 2.0, 20.0, 3600.0)
"""Seconds by which a wall clock is set."""


# -- an agent ----------------------------------------------------------------------------------------------------------


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


def edit(fleet, member, dice):
    """Have it change jobs, whoever has them, and jobs whose executions stand in the broker."""
    kinds = ("edited", "queued_edited")
    ids = [f"{kind}-{number}" for kind in kinds for number in range(fleet.counts.get(kind, 0))]
    for job in dice.sample(ids, min(3, len(ids))):
        verb = dice.choice(("remove", "add", "add", "pause", "resume", "update"))
        every = fleet.config["every"] * dice.choice((0.5, 1.0))
        asked = us_now()
        command = {"verb": verb, "id": job, "every": every}
        is_done = member.ask(meanwhile=lambda: (time.sleep(0.1), member.proxy.let_go()), **command)
        if is_done is not False:  # that one says that there is no such job
            fleet.note_edit(verb, job, round(every * 1e6), asked, is_done=is_done)


# -- its way to PostgreSQL, and that server ----------------------------------------------------------------------------


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
    """Restart the server; "immediate" is a crash of it, and its log is read then."""
    fleet.server.restart(dice.choice(("fast", "immediate")))
    member.proxy.let_go()


def set_and_back(server, member, dice):
    """Set the wall clock of a server's machine, and back after a while."""
    step = dice.choice(STEPS)
    server.step(step)
    member.proxy.let_go()
    time.sleep(dice.choice((0.5, 3.0)))
    server.step(-step)


def server_clock(fleet, member, dice):
    """Set the wall clock of PostgreSQL's machine, and back after a while."""
    set_and_back(fleet.server, member, dice)


# -- its way to beanstalkd, and that server ----------------------------------------------------------------------------


def broker_cut(fleet, member, dice):
    """Cut it off from beanstalkd, or reset its connections to it."""
    dice.choice((member.broker_proxy.black_hole, member.broker_proxy.refuse))()
    member.proxy.let_go()
    time.sleep(dice.choice((0.5, 3.0, 8.0)))
    member.broker_proxy.pass_on()


def broker_restart(fleet, member, dice):
    """Kill beanstalkd. It comes again with its log."""
    fleet.broker.kill()
    member.proxy.let_go()
    time.sleep(dice.choice((0, 2.0)))
    fleet.broker.start()


def broker_loss(fleet, member, dice):
    """Kill beanstalkd. It comes again without its log, and knows nothing."""
    fleet.broker.restart(log=False)
    member.proxy.let_go()


def broker_freeze(fleet, member, dice):
    """Freeze beanstalkd."""
    with fleet.broker.frozen():
        member.proxy.let_go()
        time.sleep(dice.choice((0.5, 3.0, 8.0)))


def broker_clock(fleet, member, dice):
    """Set the wall clock of beanstalkd, and back after a while."""
    set_and_back(fleet.broker, member, dice)


AT_THE_BROKER = {each.__name__: each for each in (broker_cut, broker_restart, broker_loss, broker_freeze, broker_clock)}
AT_THE_SERVER = (restart, server_clock)
KINDS = {
    each.__name__: each for each in (kill, stop, cut, half_open, reset, delay, edit, clock, leave, join, *AT_THE_SERVER)
} | AT_THE_BROKER
ALSO = {"lose": lose, "freeze": freeze_for_long}
"""What befalls nobody unless it is asked for."""

ONE_AT_A_TIME = {"join": "join"} | {each.__name__: "server" for each in AT_THE_SERVER}
ONE_AT_A_TIME |= dict.fromkeys(set(AT_THE_BROKER) - {"broker_cut"}, "broker")
"""What can befall somebody only once at a time, and what stands in each other's way."""

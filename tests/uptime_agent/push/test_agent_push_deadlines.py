"""Deadlines of push targets lie in the store: as far ahead as anybody likes, and met after a restart."""

from datetime import timedelta

import pytest
from attrs import evolve

from kit import T0
from schedule import Cron, Every
from scheduler import RunEnded, RunMissed, SchedulerStarted, StoreDown, StoreUp
from scheduler.stores.memory import MemoryStore
from scheduler.testing import simulate
from timerqueue.testing import START
from uptime_agent.assembly import checking_of
from uptime_agent.checks import Holdups, Resolver, Said, Signal
from uptime_agent.config import Network
from uptime_agent.config.config import parse_config
from uptime_agent.push import Signals
from uptime_agent.standing import Closed, Opened
from uptime_agent.targets import CheckDeps
from uptime_agent.text import Redactor
from uptime_agent.web import Peers, peers as peers_module

TOKEN = "backup-7f3a9c51d2e8"
FILE = f"""
store = "memory"
[push]
listen = "127.0.0.1:8075"
[[check]]
name = "backup"
url = "push://backup"
token = "{TOKEN}"
grace = "5m"
"""
HOUR, DAY = 3_600, 86_400


class World:
    """A push target in what the agent has around it, over processes; what was told of it, and when."""

    def __init__(self, schedule):
        (target,) = parse_config(FILE, "uptime.toml", {}).targets
        self.target = evolve(target, schedule=schedule)
        self.store, self.told, self.peers = MemoryStore(), [], Peers(10)

    def live(self, since, until, signals=()):
        """Play from one second to another; `signals`: (when, what), or (when, what is called then)."""

        async def sending(taking, clock):
            for at, said in signals:
                await clock.sleep(T0 + at - clock.wall())
                if callable(said):
                    said()
                else:
                    await taking.take(TOKEN, Signal(said=said, at=clock.wall()), "peer")

        def begin(scheduler, clock):
            ways = CheckDeps(Resolver({}), clock, Redactor(), Holdups(clock))
            checking = checking_of(scheduler, ways, Network())
            checking.targets.begin([self.target])
            checking.board.subscribe(self._hear)
            scheduler.listen(checking.board.listen)
            taking = Signals(scheduler, lambda _: None, now=clock.wall, peers=self.peers)
            taking.follow([self.target])
            scheduler.listen(taking.listen, RunMissed, RunEnded, StoreDown, StoreUp)
            scheduler.listen(lambda _: taking.plan(), SchedulerStarted)
            return sending(taking, clock)

        start = START + timedelta(seconds=since)
        simulate(begin, until - since, start=start, store=self.store, limits={"push": 9})
        return self.told

    def _hear(self, news):
        if isinstance(news, Opened):
            self.told.append(("+", news.incident.began - T0))
        elif isinstance(news, Closed):
            self.told.append(("-", news.ended - T0))


@pytest.mark.parametrize(
    ("schedule", "deadline"),
    [
        (Every("48h"), HOUR + 48 * HOUR + 300),
        (Every("400d"), HOUR + 400 * DAY + 300),
        (Cron("0 3 1 6 *"), 151 * DAY + 3 * HOUR + 300),  # the first of June, at three
    ],
)
def test_a_deadline_of_any_length_is_met_after_a_restart(schedule, deadline):
    """Neither sooner, because a process has begun, nor later, because one was away (uptime-kuma#6866)."""
    world = World(schedule)
    world.live(0, 2 * HOUR, [(HOUR, Said.SUCCESS)])
    assert world.live(10 * HOUR, deadline - 1) == []
    assert world.live(deadline - 0.5, deadline + HOUR) == [("+", pytest.approx(deadline, abs=0.1))]


def test_a_signal_after_a_restart_moves_the_deadline_on():
    """And one that says that all is well ends the incident."""
    world = World(Every("48h"))
    world.live(0, 2 * HOUR, [(HOUR, Said.SUCCESS)])
    world.live(40 * HOUR, 41 * HOUR, [(40.5 * HOUR, Said.SUCCESS)])
    deadline = 88.5 * HOUR + 300
    back = [(90 * HOUR, Said.SUCCESS), (91 * HOUR, Said.SUCCESS), (92 * HOUR, Said.SUCCESS)]
    told = world.live(80 * HOUR, 100 * HOUR, back)
    assert told[0] == ("+", pytest.approx(deadline, abs=0.1))
    assert [sign for sign, _ in told] == ["+", "-"]


@pytest.mark.parametrize("back", [50 * HOUR, 60 * HOUR])
def test_a_deadline_that_passes_while_the_agent_is_away_is_no_alarm(back):
    """Whoever sent a signal to nobody has until the next one, from when somebody listens again."""
    world = World(Every("48h"))
    world.live(0, 2 * HOUR, [(HOUR, Said.SUCCESS)])
    told = world.live(back, 200 * HOUR)
    assert told == [("+", pytest.approx(back + 48 * HOUR + 300, abs=1))]


def test_a_deadline_by_the_calendar_that_passes_while_the_agent_is_away_is_the_next_one():
    """With its grace: at the hour itself the backup only begins."""
    world = World(Cron("0 3 * * *"))
    world.live(0, 4 * HOUR, [(3.01 * HOUR, Said.SUCCESS)])
    told = world.live(28 * HOUR, 60 * HOUR)
    assert told == [("+", pytest.approx(51 * HOUR + 300, abs=1))]


def test_a_deadline_that_passes_while_connections_of_its_peer_were_turned_away_is_no_alarm():
    """One of them may have brought the signal: nobody knows. It has until the next deadline, and no longer."""
    world = World(Every("48h"))
    turned_away = (10 * HOUR, lambda: world.peers.turned_away("peer"))
    told = world.live(0, 200 * HOUR, [(HOUR, Said.SUCCESS), turned_away])
    first = HOUR + 48 * HOUR + 300
    assert told == [("+", pytest.approx(first + 48 * HOUR + 300, abs=1))]


def test_a_deadline_that_passes_while_nobody_could_be_let_in_is_no_alarm():
    """Without descriptors nobody knows who it was."""
    world = World(Every("48h"))
    told = world.live(0, 60 * HOUR, [(HOUR, Said.SUCCESS), (10 * HOUR, world.peers.deaf)])
    assert told == []


@pytest.mark.parametrize(("peer", "at"), [("a stranger", 10 * HOUR), ("peer", 0.5 * HOUR)])
def test_strangers_that_are_turned_away_hide_no_silence(peer, at):
    """Nor does what was turned away before the last signal. Else anybody could keep all alarms back."""
    world = World(Every("48h"))
    acts = sorted([(HOUR, Said.SUCCESS), (at, lambda: world.peers.turned_away(peer))], key=lambda act: act[0])
    assert world.live(0, 60 * HOUR, acts) == [("+", pytest.approx(HOUR + 48 * HOUR + 300, abs=1))]


def test_a_peer_that_many_others_push_out_has_lost_nothing_by_it(monkeypatch):
    """Its target's alarm was a deadline late: what strangers had lost before was taken for a loss of the peer."""
    monkeypatch.setattr(peers_module, "MOST_KNOWN", 1)
    world = World(Every("48h"))
    acts = [
        (0.5 * HOUR, lambda: world.peers.turned_away("a stranger")),
        (HOUR, Said.SUCCESS),
        (2 * HOUR, lambda: world.peers.know("another")),
        (3 * HOUR, lambda: world.peers.turned_away("a stranger")),
    ]
    assert world.live(0, 60 * HOUR, acts) == [("+", pytest.approx(HOUR + 48 * HOUR + 300, abs=1))]


@pytest.mark.parametrize("pushed_out_at", [2 * HOUR, 4 * HOUR])
@pytest.mark.parametrize("known_again_at", [2.5 * HOUR, 5 * HOUR, 70 * HOUR])
def test_what_a_peer_loses_is_counted_though_others_push_it_out(monkeypatch, pushed_out_at, known_again_at):
    """Before or after. Its count was gone with it, or began anew with a signal of another of its targets."""
    monkeypatch.setattr(peers_module, "MOST_KNOWN", 1)
    world = World(Every("48h"))
    acts = [
        (HOUR, Said.SUCCESS),
        (pushed_out_at, lambda: world.peers.know("another")),
        (3 * HOUR, lambda: world.peers.turned_away("peer")),
        (known_again_at, lambda: world.peers.know("peer")),
    ]
    assert world.live(0, 60 * HOUR, sorted(acts, key=lambda act: act[0])) == []

"""Groups of agents that share a store: how one stands follows from its members, and is judged when they change."""

from datetime import timedelta
from functools import partial

import pytest
from hypothesis import given, strategies as st

from kit import T0, when
from schedule import At, Every, Missed
from scheduler import RunEnded
from scheduler.stores.memory import MemoryStore
from scheduler.testing import simulate
from timerqueue.testing import START
from uptime_agent.checks import CheckResult, Status
from uptime_agent.relations import Elsewhere, GroupPlan, Groups, SharedGroups
from uptime_agent.relations.groups import GroupState
from uptime_agent.relations.judging import GroupMember, judged, state_of
from uptime_agent.relations.shared import GROUP, LIMIT
from uptime_agent.standing import TASK, Board, Checked, CheckTask, Closed, Opened, Recall
from uptime_agent.standing.flapping import TargetStanding, TargetState
from uptime_agent.standing.status import TargetStatus

NAMES = ["a", "b", "c", "d"]
FOREVER = 1e9


def stand(target, now, *, is_down, is_excused):
    """Let a target stand so since that instant, if it stood otherwise."""
    status = TargetStanding.DOWN if is_down else TargetStanding.UP
    if target.state is None or target.state.status is not status:
        target.state = TargetState(id="", number=0, started_at=now, status=status)
    target.is_excused = is_excused


def news_of(before, after):
    """What is told when a group stands so after it stood otherwise."""
    if before.incident is None and after.incident is not None:
        return [("+", after.incident.began, after.incident.id, after.incident.error)]
    if before.incident is not None and after.incident is None:
        return [("-", after.changed, before.incident.id, before.incident.error)]
    return []


def member(target):
    """The target as a member, as SharedGroups sees it."""
    return GroupMember(
        target.name, target.state.status is TargetStanding.DOWN, target.is_excused, target.state.started_at
    )


@given(
    at_least=st.sampled_from([1, 2, 3, None]),
    changes=st.lists(st.tuples(st.sampled_from(NAMES), st.booleans()), min_size=1, max_size=30),
)
def test_it_is_judged_as_one_agent_would(at_least, changes):
    """The same beginnings and ends at the same instants, by the same names, if it is judged after each change. What is
    kept of it in between is JSON.
    """
    plan, told = GroupPlan("all", tuple(NAMES), at_least), []
    targets = {name: TargetStatus(name, "", "") for name in NAMES}
    for target in targets.values():
        stand(target, 0.0, is_down=False, is_excused=False)

    def tell(news):
        if isinstance(news, Opened):
            told.append(("+", news.incident.began, news.incident.id, news.incident.error))
        elif isinstance(news, Closed):
            told.append(("-", news.ended, news.incident.id, news.incident.error))

    groups = Groups(targets, lambda _name: True, tell)
    groups.follow([plan], 0.0)
    state, found = GroupState(), []
    for number, (name, is_down) in enumerate(changes, 1):
        stand(targets[name], float(number), is_down=is_down, is_excused=False)
        groups.hear(ended(targets[name], float(number)))
        before = state_of("all", state.values())
        state = judged(plan, before, [member(each) for each in targets.values()], float(number))
        found += news_of(before, state)
    assert found == told


def ended(target, at):
    """The news that a target was checked, with a run that ended then."""

    class Run:
        ended = when(at)

    target.last_run = Run
    return Checked(target, is_change=False)


@given(downs=st.lists(st.floats(1.0, 100.0), min_size=2, max_size=4, unique=True), late=st.floats(0.0, 1000.0))
def test_it_does_not_matter_how_late_it_is_judged(downs, late):
    """It is down since the second of its members is, and that is in the name of its incident."""
    members = [GroupMember(name, True, False, at) for name, at in zip(NAMES, downs, strict=False)]
    plan = GroupPlan("all", tuple(NAMES), 2)
    first = judged(plan, GroupState(), members, 200.0)
    assert first == judged(plan, GroupState(), members, 200.0 + late)
    assert first.incident.began == sorted(downs)[1]
    ups = [GroupMember(each.name, False, False, 300.0 + each.since) for each in members]
    assert judged(plan, first, ups, 900.0 + late).changed == 300.0 + sorted(downs)[len(downs) - 2]


def test_members_that_are_unreachable_open_nothing():
    """Whoever is above them is to blame, until one of them is down for itself."""
    plan = GroupPlan("all", ("a", "b"))
    excused = [GroupMember("a", True, True, 1.0), GroupMember("b", True, True, 2.0)]
    assert judged(plan, GroupState(), excused, 3.0) == GroupState()
    assert judged(plan, GroupState(), [excused[0], GroupMember("b", True, False, 2.0)], 3.0).incident.began == 2.0


def test_what_makes_no_sense_in_a_job_is_taken_for_a_group_that_was_never_down():
    """Others may have written it."""
    for values in ({}, {"number": "x", "changed": 0}, {"number": 1, "changed": 2, "incident": []}):
        assert state_of("all", values) == GroupState()


class Site:
    """A group of targets that are checked every minute, and are down in between these seconds."""

    def __init__(self, down):
        self.down, self.told, self.read, self.store = down, [], [], MemoryStore()

    def latest(self, names):
        """Read the last reports of targets that have not been checked since the start."""
        self.read.append(names)
        ticks = [self.store.history(name, limit=10) for name in names]
        return [next(tick for tick in each if tick.result) for each in ticks if each]

    def hear(self, news):
        """Note what is told of the group."""
        if isinstance(news, (Opened, Closed)) and news.incident.is_group:
            self.told.append(news)

    def live(self, seconds, since=0, *, is_shared=True, reloads=()):
        """Play so many seconds; return how often the group was judged. Not `is_shared`: with an agent of its own.
        `reloads`: pairs of when the file changes, and how many members are then enough; 0: there is no group.
        """
        targets = {name: TargetStatus(name, "http://h", "http") for name in NAMES}
        board = Board(targets.values())
        board.subscribe(self.hear)

        def build(scheduler, clock):
            def check_of(name):
                class Check:
                    async def run(_self):  # noqa: N805 - the site is `self` here
                        begin, end = self.down.get(name, (FOREVER, FOREVER))
                        is_down = begin <= clock.wall() - T0 < end
                        return CheckResult(status=Status.DOWN if is_down else Status.UP)

                return Check()

            recall = Recall(scheduler, targets, board.remembered, clock)
            elsewhere = Elsewhere(self.latest, str)
            groups = (
                SharedGroups(scheduler, targets, elsewhere, board.tell, is_here=recall.has, now=clock.wall)
                if is_shared
                else Groups(targets, recall.has, board.tell)
            )
            scheduler.register(TASK, CheckTask({n: check_of(n) for n in NAMES}, targets, recall.recall, clock).run)
            scheduler.listen(board.listen)
            if is_shared:
                scheduler.listen(groups.listen, RunEnded)
            board.subscribe(groups.hear)
            groups.follow([GroupPlan("all", tuple(NAMES), 2)], clock.wall())
            if is_shared:
                groups.begin()
            for at_s, at_least in reloads:
                plans = [GroupPlan("all", tuple(NAMES), at_least)] if at_least else []
                when = At(START + timedelta(seconds=at_s))
                scheduler.add(partial(groups.follow, plans, at_s + T0), when, id=f"reload {at_s}", durable=False)
            for number, name in enumerate(NAMES):
                every = Every(60, anchor=START + timedelta(seconds=number))
                options = {"missed": Missed.SKIP, "grace": 6, "on_conflict": "update"}
                scheduler.add(TASK, every, id=name, args=(name,), **options)

        before = len(self.judgements())
        simulate(build, seconds, start=START + timedelta(seconds=since), store=self.store, limits={LIMIT: 1})
        return len(self.judgements()) - before

    def judgements(self):
        """Read the runs of the group."""
        return [tick for tick in self.store.history(f"{GROUP}all", limit=10_000) if tick.outcome == "succeeded"]

    def said(self):
        """Tell what was told, and when it was."""
        return [
            ("+", each.incident.began - T0) if isinstance(each, Opened) else ("-", each.ended - T0)
            for each in self.told
        ]


def test_a_group_is_judged_when_a_member_changes_and_else_once_an_hour():
    """Of an hour of 240 checks there are five runs: the first, three for the changes, and the hour's."""
    site = Site({"a": (600, 1_200), "b": (900, FOREVER)})
    assert site.live(3_600) <= 6
    assert site.said() == [("+", 901.0), ("-", 1_200.0)]
    assert len(site.read) == 1


@pytest.mark.parametrize(
    ("until", "since"),
    [(900, 930), (601.5, 610), (1_199, 1_300), (1_201.5, 1_202), (660.5, 661)],
)
@pytest.mark.parametrize("more", [{}, {"c": (0, 61)}])
def test_a_group_goes_on_as_it_was_told_when_its_store_becomes_shared(until, since, more):
    """Its incident was given another name: one was resolved, and another told, for nothing had happened."""
    site = Site({"a": (600, 1_200), "b": (600, 1_200)} | more)
    site.live(until, is_shared=False)
    site.live(900, since=since)
    assert [what for what, _ in site.said()] == ["+", "-"]
    assert site.said()[0] == ("+", 601.0)
    assert len({each.incident.id for each in site.told}) == 1


def test_a_group_that_comes_back_does_not_stand_as_before_its_store_was_shared():
    """Reports of that time said that it was down: it was taken up again, and nobody was told."""
    site = Site({"a": (600, FOREVER), "b": (600, FOREVER)})
    site.live(700, is_shared=False)
    site.live(500, since=710, reloads=[(800, 0), (900, 2)])
    assert [what for what, _ in site.said()] == ["+", "-", "+"]


def test_a_group_follows_the_file():
    """With more members to be down it is up again, and without a group in the file there is nothing to be told of. One
    that comes back is judged at once.
    """
    site = Site({"a": (600, FOREVER), "b": (600, FOREVER)})
    site.live(1_500, reloads=[(700, 3), (800, 2), (900, 0), (1_000, 2)])
    assert site.said() == [("+", 601.0), ("-", 700.0), ("+", 700.0), ("-", 900.0), ("+", 601.0)]
    assert [each.is_gone for each in site.told if isinstance(each, Closed)] == [False, True]
    site.live(500, since=1_600, reloads=[])
    assert len(site.told) == 5


def test_a_restart_goes_on_with_the_incident_of_a_group():
    """Its job says how it stood. Nothing is told again, and the end once."""
    site = Site({"a": (600, 1_200), "b": (600, 1_200)})
    site.live(900)
    site.live(900, since=930)
    assert site.said() == [("+", 601.0), ("-", 1_200.0)]
    assert len({each.incident.id for each in site.told}) == 1

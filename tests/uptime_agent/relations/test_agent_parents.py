"""Parents: under one that is down a target is unreachable, and nobody is told of it."""

from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from kit import T0, lines_of, when
from schedule import Every, Missed
from scheduler import Outcome, RunEnded, Scheduler
from scheduler.stores.memory import MemoryStore
from scheduler.testing import simulate
from timerqueue.testing import START
from uptime_agent.checks.contract.result import CheckResult, Status
from uptime_agent.relations import Above, Elsewhere, GroupPlan, Groups, Here, Parents, SharedGroups, circle
from uptime_agent.standing import TASK, Board, CheckTask, Closed, Opened, Recall, Recheck
from uptime_agent.standing.flapping import TargetStanding
from uptime_agent.standing.report import report_of
from uptime_agent.standing.status import TargetStatus

FOREVER = 1e9


class Site:
    """Targets that are checked every 60 s, each so many seconds into the minute, and down in between these seconds."""

    is_shared = False

    def __init__(self, parents, down, after=None, groups=()):
        self.parents, self.down, self.after, self.groups = parents, down, after or {}, groups
        self.store, self.told, self.options, self.takes = MemoryStore(), [], {}, {}

    def latest(self, names):
        """Read the last reports of targets that other agents have."""
        ticks = [self.store.history(name, limit=10) for name in names]
        return [next(tick for tick in each if tick.result) for each in ticks if each]

    def parents_of_others(self, elsewhere, since):
        """Make parents that are known from their last reports only, and so are the members of groups."""

        def known(name):
            return elsewhere.of(name) if name in self.targets else None

        groups = SharedGroups(
            Scheduler(), self.targets, elsewhere, self.told.append, is_here=lambda _name: False, now=lambda: T0
        )
        groups.follow(self.groups, T0 + since)
        return Parents(self.targets, groups, known)

    def has(self, name):
        """Tell whether the past of a target is known."""
        return self.recall.has(name)

    def live(self, seconds, since=0):
        """Play so many seconds; return what was told: + or -, of which target, when."""
        names = sorted(set(self.parents) | set(self.down))
        self.targets = {name: TargetStatus(name, "http://h", "http", **self.options.get(name, {})) for name in names}
        board = Board(self.targets.values())
        board.subscribe(lambda news: self.told.append(news) if isinstance(news, (Opened, Closed)) else None)
        groups = Groups(self.targets, self.has, board.tell)
        elsewhere = Elsewhere(self.latest, str)
        parents = self.parents_of_others(elsewhere, since) if self.is_shared else Parents(self.targets, groups)
        parents.follow(self.parents)
        groups.follow(self.groups, T0 + since)
        board.subscribe(groups.hear)

        def build(scheduler, clock):
            def check_of(name):
                class Check:
                    async def run(_self):  # noqa: N805 - the site is `self` here
                        is_down = any(begin <= clock.wall() - T0 < end for begin, end in down_at)
                        await clock.sleep(self.takes.get(name, 1.0))
                        return CheckResult(
                            status=Status.DOWN if is_down else Status.UP, error="no" if is_down else None
                        )

                down_at = self.down.get(name, ())
                return Check()

            async def look(name):
                if self.is_shared:
                    await elsewhere.read(parents.above(name))

            self.recall = Recall(scheduler, self.targets, board.remembered, clock)
            above = Above(self.targets, parents, Here(self.targets, self.recall), self.recall)
            checks = {name: check_of(name) for name in names}
            task = CheckTask(
                checks, self.targets, above.recall, clock, cause=parents.cause, asks=parents.unchecked, look=look
            )
            scheduler.register(TASK, task.run)
            scheduler.listen(board.listen)
            board.subscribe(Recheck(scheduler, board.targets).hear)
            for name in names:
                every = Every(60, anchor=START + timedelta(seconds=self.after.get(name, 0)))
                options = {"missed": Missed.SKIP, "grace": 6, "on_conflict": "update"}
                scheduler.add(TASK, every, id=name, args=(name,), **options)

        simulate(build, seconds, start=START + timedelta(seconds=since), store=self.store)
        return [("+" if isinstance(each, Opened) else "-", each.incident.target) for each in self.told]


@pytest.fixture(autouse=True, params=[False, True], ids=["one agent", "several"])
def agents(request, monkeypatch):
    """Let all that is above a target be another agent's, which says the same."""
    monkeypatch.setattr(Site, "is_shared", request.param)


def test_a_target_under_one_that_is_down_is_unreachable_and_opens_nothing():
    """It is checked on, and says by whom; the alarm is that of the one above, which counts those below."""
    site = Site({"shop": ["router"], "mail": ["switch"], "switch": ["router"]}, {
        "router": [(200, FOREVER)], "switch": [(200, FOREVER)], "shop": [(200, FOREVER)], "mail": [(200, FOREVER)],
    }, {"switch": 1, "shop": 2, "mail": 3})  # fmt: skip
    assert site.live(400) == [("+", "router")]
    (opened,) = site.told
    assert opened.incident.members == 3
    shop, mail = site.targets["shop"], site.targets["mail"]
    assert (shop.status, shop.last.cause, shop.last.error) == (Status.DOWN, "router", "unreachable by router: no")
    assert mail.last.cause == "router"  # the topmost, not the switch that is unreachable itself


def test_what_is_down_for_itself_once_its_parent_is_up_is_told_then():
    """A check that began while the parent was still down does not count."""
    site = Site({"shop": ["router"]}, {"router": [(220, 300)], "shop": [(220, FOREVER)]}, {"shop": 30})
    assert site.live(600) == [("+", "router"), ("+", "shop"), ("-", "router")]
    opened = site.told[1].incident
    assert opened.target == "shop"
    assert site.targets["shop"].last.cause is None


def test_an_incident_that_was_told_before_its_parent_went_down_closes_as_ever():
    """Whoever heard that it began hears that it is over."""
    site = Site({"shop": ["router"]}, {"router": [(300, 500)], "shop": [(200, 400)]}, {"shop": 30})
    assert site.live(900) == [("+", "shop"), ("+", "router"), ("-", "shop"), ("-", "router")]


def test_a_restart_under_a_parent_that_is_down_opens_nothing():
    """That a target was unreachable stands in its report."""
    site = Site({"shop": ["router"]}, {"router": [(220, FOREVER)], "shop": [(220, FOREVER)]}, {"shop": 30})
    assert site.live(400) == [("+", "router")]
    assert site.live(400, since=400) == [("+", "router")]
    assert site.targets["shop"].last.cause == "router"


def test_a_target_checked_right_after_a_restart_knows_of_its_parent():
    """History is read for those above it too, before they are checked themselves: at once it is unreachable."""
    site = Site({"shop": ["switch"], "switch": ["router"]}, {
        name: [(220, FOREVER)] for name in ("router", "switch", "shop")
    }, {"switch": 1, "shop": 30})  # fmt: skip
    assert site.live(260) == [("+", "router")]
    assert site.live(20, since=265) == [("+", "router")]
    assert site.targets["router"].checks_now == 0
    assert site.targets["shop"].last.cause == "router"


@pytest.mark.parametrize(("most", "retry", "began"), [(1, 0.0, 212), (3, 0.0, 212), (3, 2.0, 218)])
def test_a_target_that_fails_before_its_parent_is_checked_has_it_checked_first(most, retry, began):
    """Whichever of them comes first in the minute: the one above is asked at once, and there is one alarm."""
    site = Site({"shop": ["router"]}, {"router": [(200, FOREVER)], "shop": [(200, FOREVER)]}, {"shop": 30})
    site.options = {"shop": {"max_attempts": most, "retry_interval": retry}}
    assert site.live(239) == [("+", "router")]
    assert site.told[0].incident.began - T0 == began  # long before its own turn
    assert site.targets["shop"].last.cause == "router"
    assert site.targets["shop"].state.status is TargetStanding.DOWN


def test_a_target_that_fails_under_a_parent_that_is_up_is_down_all_the_same():
    """As soon as the one above has answered, by another attempt."""
    site = Site({"shop": ["router"]}, {"router": [], "shop": [(200, FOREVER)]}, {"shop": 30})
    assert site.live(239) == [("+", "shop")]
    assert site.told[0].incident.began - T0 == 213.0
    assert site.targets["router"].counts == {Status.UP: 4}


def test_many_that_fail_together_have_their_parent_checked_once():
    """And each is tried again after it."""
    shops = [f"shop{number}" for number in range(20)]
    down = {name: [(200, FOREVER)] for name in (*shops, "router")}
    site = Site({shop: ["router"] for shop in shops}, down, dict.fromkeys(shops, 30))
    assert site.live(239) == [("+", "router")]
    assert site.targets["router"].counts == {Status.UP: 3, Status.DOWN: 1}


def test_a_target_waits_for_all_above_it_and_not_for_the_quickest():
    """The line that is down says so late: whoever is behind it is unreachable all the same."""
    down = {"shop": [(200, FOREVER)], "line 1": [], "line 2": [(200, FOREVER)]}
    site = Site({"shop": ["line 1", "line 2"]}, down, {"shop": 50, "line 1": 10, "line 2": 10})
    site.takes = {"line 2": 9.0}
    assert site.live(249) == [("+", "line 2")]
    assert site.targets["shop"].last.cause == "line 2"


AZ = ("a", "z")


def test_a_target_may_be_reached_through_a_group():
    """It is unreachable by the group once so many of its members are down, and down for itself as long as fewer are."""
    down = {"a": [(200, FOREVER)], "z": [(620, FOREVER)], "shop": [(260, 280), (620, FOREVER)]}
    site = Site({"shop": ["lines"]}, down, {"a": 1, "z": 2, "shop": 30}, [GroupPlan("lines", AZ)])
    assert site.live(779) == [("+", "a"), ("+", "shop"), ("-", "shop"), ("+", "lines"), ("+", "z")]
    assert site.targets["shop"].last.cause == "lines"
    assert site.targets["shop"].last.error == "unreachable by lines: no"


def test_members_of_a_group_are_asked_before_a_target_below_it_is_down():
    """All of them that have not been checked since, at once."""
    down = {name: [(200, FOREVER)] for name in ("a", "z", "shop")}
    site = Site({"shop": ["lines"]}, down, {"shop": 50, "a": 10, "z": 10}, [GroupPlan("lines", AZ)])
    site.takes = {"z": 9.0}
    assert site.live(249) == [("+", "a"), ("+", "lines"), ("+", "z")]
    assert site.targets["shop"].last.cause == "lines"


def test_of_a_group_that_is_unreachable_itself_the_one_above_is_to_blame():
    """There is one alarm, that of the router, although the group is down as well; after a restart too."""
    down = {name: [(200, FOREVER)] for name in ("a", "z", "shop", "router")}
    parents = {"shop": ["lines"], "a": ["router"], "z": ["router"]}
    site = Site(parents, down, {"router": 1, "a": 2, "z": 3, "shop": 30}, [GroupPlan("lines", AZ)])
    assert site.live(400) == [("+", "router")]
    assert site.targets["shop"].last.cause == "router"
    assert site.live(400, since=400) == [("+", "router")]
    assert site.targets["shop"].last.cause == "router"


def test_the_past_of_a_group_is_known_before_a_target_below_it_is_judged():
    """A target that is checked right after a restart is unreachable still."""
    down = {name: [(200, FOREVER)] for name in ("a", "z", "shop")}
    site = Site({"shop": ["lines"]}, down, {"a": 1, "z": 2, "shop": 30}, [GroupPlan("lines", AZ)])
    assert site.live(260) == [("+", "a"), ("+", "lines"), ("+", "z")]
    assert len(site.live(20, since=265)) == 3
    assert site.targets["a"].checks_now == 0
    assert site.targets["shop"].last.cause == "lines"


names = st.sampled_from("abcdefgh")


@given(st.dictionaries(names, st.lists(names, max_size=3)))
def test_a_circle_is_found_if_there_is_one(parents):
    """Each of its names has the next for a parent; without one, parents can be put in order."""
    found = circle(parents)
    if found is not None:
        assert all(after in parents[before] for before, after in pairwise((*found, found[0])))
        return
    left = {name: set(of) for name, of in parents.items()}
    while left:
        free = [name for name, of in left.items() if not of & left.keys()]
        assert free
        for name in free:
            del left[name]


def test_a_long_chain_costs_no_recursion():
    """Nobody has so many routers in a row; a configuration may."""
    chain = {str(number): [str(number + 1)] for number in range(5_000)}
    assert circle(chain) is None
    targets = {name: TargetStatus(name, "http://h", "http") for name in chain}
    Parents(targets).follow(chain)
    assert targets["4999"].below("4999") == 4_999


def chain_of(count):
    """Make so many targets of which each is reached through the next one."""
    return {str(number): [str(number + 1)] for number in range(count)}


def tree_of(count):
    """Make so many targets of which each is above ten others."""
    return {str(number): [str((number - 1) // 10)] for number in range(1, count)}


def star_of(count):
    """Make so many targets behind one router, through either of two lines."""
    return {str(number): ["line 1", "line 2"] for number in range(count)} | {
        "line 1": ["router"],
        "line 2": ["router"],
    }


@pytest.mark.parametrize("shape", [chain_of, tree_of, star_of])
def test_following_five_thousand_targets_costs_ten_times_as_much_as_five_hundred(shape):
    """However they hang together: how many are behind one is counted when it is told of, and not before."""

    def lines(count):
        parents = shape(count)
        names = parents.keys() | {each for of in parents.values() for each in of}
        followed = Parents({name: TargetStatus(name, "http://h", "http") for name in names})
        return lines_of(followed.follow, parents)

    assert lines(5_000) < 11 * lines(500)


def test_how_many_are_behind_a_target_is_counted_once_an_incident():
    """And not with every check of it."""
    asked = []
    target = TargetStatus("router", "http://h", "http", below=lambda name: asked.append(name) or 7)
    board = Board([target])
    opened = []
    board.subscribe(lambda news: opened.append(news) if isinstance(news, Opened) else None)
    for number, status in enumerate([Status.UP] * 3 + [Status.DOWN] * 4):
        report = report_of([CheckResult(status=status)], target)
        board.listen(
            RunEnded(
                "router", when(0.0), when(0.0), when(float(number)), 1, 0.0, 0.0, Outcome.SUCCEEDED, results=(report,)
            )
        )
    assert [news.incident.members for news in opened] == [7]
    assert asked == ["router"]


@pytest.mark.parametrize("parents", [{"a": ["a"]}, {"a": ["b"], "b": ["c"], "c": ["a"]}])
def test_a_circle_is_told_with_all_who_are_in_it(parents):
    """In their order."""
    assert circle(parents) == list(parents)


def test_under_a_young_parent_that_is_down_nobody_else_is_told_of():
    """Its state is a flapping, for it has been up too shortly; but it is the parent that is down."""
    site = Site({"shop": ["router"]}, {"router": [(70, FOREVER)], "shop": [(70, FOREVER)]}, after={"shop": 20})
    assert site.live(400) == [("+", "router")]

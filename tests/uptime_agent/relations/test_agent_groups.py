"""Groups: several targets as one thing, whose incident is its own and survives restarts."""

import io
import json

import anyio
import pytest
from hypothesis import example, given, strategies as st

from agent_kit import record_of
from kit import PATIENCE, lines_of, when
from scheduler import Outcome, RunEnded
from timerqueue import SystemClock
from uptime_agent.app import RunPlan, run
from uptime_agent.assembly import routes_of
from uptime_agent.checks.contract.result import CheckResult, Status
from uptime_agent.config.config import parse_config
from uptime_agent.relations import GroupPlan, Groups
from uptime_agent.show.lines import JsonLines
from uptime_agent.show.notices import describe_group
from uptime_agent.standing import Board, Checked, Closed, Opened, TargetStanding
from uptime_agent.standing.reading import restore
from uptime_agent.standing.report import report_of
from uptime_agent.standing.status import TargetStatus


class Site:
    """Targets a, b and c, and groups of them, through checks and restarts; what is told of groups."""

    def __init__(self, *plans, names="abc"):
        self.plans, self.names = plans, names
        self.now, self.told, self.records = 1000.0, [], {name: [] for name in names}
        self.start()

    def start(self):
        """Begin as a new process, which knows what history says."""
        self.board = Board([TargetStatus(name, "http://h", "http") for name in self.names])
        self.recalled = set()
        self.groups = Groups(self.board.targets, self.recalled.__contains__, self.board.tell)
        self.groups.follow(self.plans, self.now)
        self.board.subscribe(self.groups.hear)
        self.board.subscribe(self.hear)

    def hear(self, news):
        if isinstance(news, (Opened, Closed)) and news.incident.is_group:
            self.told.append(news)

    def recall(self, name):
        """Find out how a target stood, as it is done before its first check."""
        if name not in self.recalled:
            restore(self.board.targets[name], self.records[name])
            self.recalled.add(name)

    def check(self, name, *, is_up, cause=None):
        """Let a check of a target end. None: it is unknown whether it is up."""
        self.recall(name)
        self.now += 1.0
        status = Status.UNKNOWN if is_up is None else Status.UP if is_up else Status.DOWN
        result = CheckResult(status=status, error=None if is_up else "no")
        report = report_of([result], self.board.targets[name], cause=cause)
        run = RunEnded(
            name,
            when(self.now - 1),
            when(self.now - 1),
            when(self.now),
            1,
            0.0,
            1.0,
            Outcome.SUCCEEDED,
            results=(report,),
        )
        self.records[name].insert(0, record_of(run, report))
        self.board.listen(run)

    def live(self, letters):
        """A small letter: that target is up; a capital: it is down. A bar is a restart, and all are recalled. After a
        slash, which is one too, each target is recalled before its first check alone.
        """
        for letter in letters:
            if letter in "|/":
                self.start()
                for name in self.names if letter == "|" else ():
                    self.recall(name)
            else:
                self.check(letter.lower(), is_up=letter.islower())
        return self


def told(*plans, letters):
    """Say what is told of such a life: + opened, - closed."""
    return "".join("+" if isinstance(each, Opened) else "-" for each in Site(*plans).live(letters).told)


ABC = ("a", "b", "c")
WELL = "abcabcabc"


@pytest.mark.parametrize(
    ("at_least", "letters", "news"),
    [
        (1, WELL + "A", "+"),
        (2, WELL + "A", ""),
        (2, WELL + "AB", "+"),
        (2, WELL + "ABC", "+"),
        (None, WELL + "AB", ""),
        (None, WELL + "ABC", "+"),
        (2, WELL + "AAABBBCCCaaa", "+"),  # c has taken its place
        (2, WELL + "AAABBBaaa", "+-"),
        (2, WELL + "AAABBBaaabbbabcabcAAABBB", "+-+"),
    ],
)
def test_a_group_is_down_when_so_many_of_its_members_are(at_least, letters, news):
    """Any, k of n, or all: it opens once, and closes when there are fewer."""
    assert told(GroupPlan("site", ABC, at_least), letters=letters) == news


def test_an_incident_of_a_group_names_its_members_that_are_down():
    """It is its own: those of the members are told as ever."""
    site = Site(GroupPlan("site", ABC, 2)).live(WELL + "ACaaa")
    opened, closed = site.told
    found = opened.incident
    assert (found.target, found.began, found.members, found.error) == ("site", 1011.0, 2, "2 of 3 are down: a, c")
    assert (closed.incident, found.id) == (found, "site-1011000-1")


def test_a_group_whose_members_are_unreachable_opens_nothing():
    """The alarm is that of the one above them."""
    site = Site(GroupPlan("site", ABC, 2)).live(WELL)
    site.check("a", is_up=False, cause="router")
    site.check("b", is_up=False, cause="router")
    assert site.told == []
    site.check("c", is_up=False)
    assert len(site.told) == 1


@pytest.mark.parametrize("restart", ["", "|", "/"])
def test_members_that_are_unreachable_open_and_close_nothing_over_a_restart(restart):
    """That they are excused stands in their reports: the next process does not take the group for one that is down."""
    site = Site(GroupPlan("site", ABC, 2)).live(WELL)
    site.check("a", is_up=False, cause="router")
    site.check("b", is_up=False, cause="router")
    site.live(restart + "caaabbb")
    assert site.told == []


def test_a_member_that_is_unreachable_and_then_unknown_opens_nothing():
    """What is unknown says nothing, and so nothing new: it is unreachable still, after a restart too."""
    site = Site(GroupPlan("site", ABC, 2)).live(WELL)
    for name in "ab":
        site.check(name, is_up=False, cause="router")
        site.check(name, is_up=None)
    site.live("c|c")
    assert site.told == []


@pytest.mark.parametrize(
    ("letters", "news"),
    [
        (WELL + "A/B/c|c", "+"),  # the second process dies before it knows of c
        (WELL + "AB/aaa/ccc|c", "+-"),
        (WELL + "A/BBB/bbb|abc", ""),
        (WELL + "A/BBB/b/aaa/BBB|abc", ""),
        (WELL + "AB/aaa/AAA/c|c", "+"),
    ],
)
def test_what_changed_in_a_process_that_did_not_know_all_of_the_past_is_told_by_the_next(letters, news):
    """Once, and only what is left of it: nobody hears of what has come and gone meanwhile."""
    assert told(GroupPlan("site", ABC, 2), letters=letters) == news


@given(st.sampled_from([None, 1, 2]), st.lists(st.sampled_from("abcABC|/"), max_size=40).map("".join))
def test_whatever_a_process_knows_an_incident_of_a_group_opens_and_closes_once(at_least, letters):
    """And in the end those who are told know how the group stands."""
    site = Site(GroupPlan("site", ABC, at_least)).live("|abcABC" + letters + "|aaabbbABC|C")
    ids = [(type(each), each.incident.id) for each in site.told]
    assert len(ids) == len(set(ids))
    assert all(type(each) is (Opened if number % 2 == 0 else Closed) for number, each in enumerate(site.told))
    down = sum(target.state.status is TargetStanding.DOWN for target in site.board.targets.values())
    assert len(site.told) % 2 == (down >= (3 if at_least is None else at_least))


def test_nothing_is_told_of_a_group_before_the_past_of_all_its_members_is_known():
    """Or one that is down would seem to be up again."""
    site = Site(GroupPlan("site", ABC, 2)).live(WELL + "AB")
    site.start()
    site.check("c", is_up=True)
    assert len(site.told) == 1
    for name in ABC:
        site.recall(name)
    site.check("c", is_up=True)
    assert len(site.told) == 1


def test_a_group_that_the_configuration_has_no_more_is_down_no_more():
    """Whoever heard of it hears that it is not watched."""
    site = Site(GroupPlan("site", ABC, 1)).live("|A")
    site.groups.follow((), 2000.0)
    opened, closed = site.told
    assert closed == Closed(opened.incident, 2000.0, is_gone=True)
    assert describe_group(closed) == "the group site is not watched any more, and was down for 16m39s"


@pytest.mark.parametrize("meanwhile", ["", "A", "A|b", "A/b"])
def test_a_group_that_comes_back_begins_anew(meanwhile):
    """Its last incident has ended with it. Older reports said that it was down, and nobody was told that it is."""
    plan = GroupPlan("site", ABC, 1)
    site = Site(plan).live("|A|b")
    site.plans = ()
    site.groups.follow((), site.now)
    site.live(meanwhile)
    site.plans = (plan,)
    if "|" in meanwhile:
        site.live("|")
    else:
        site.groups.follow(site.plans, site.now)
    site.live("cAa")
    first, gone, second, ended = site.told
    assert gone == Closed(first.incident, gone.ended, is_gone=True)
    assert isinstance(second, Opened)
    assert second.incident.id != first.incident.id
    assert ended == Closed(second.incident, site.now)


def test_a_new_group_whose_members_are_down_is_told_at_the_next_check():
    """Nobody has been told of it so far."""
    site = Site().live("AB")
    site.plans = (GroupPlan("site", ABC, 2),)
    site.live("|A")
    assert len(site.told) == 1


plans = st.lists(
    st.builds(
        GroupPlan, st.sampled_from(["x", "y"]), st.sampled_from([ABC, ("a", "b")]), st.sampled_from([None, 1, 2])
    ),
    max_size=2,
    unique_by=lambda plan: plan.name,
)


@given(plans, st.lists(st.sampled_from("abcABC|"), max_size=40).map("".join))
@example([GroupPlan("x", ABC, 1)], "B|B|b")  # the first check after a restart opens it
def test_restarts_change_nothing_of_what_is_told_of_groups(found, letters):
    """The same incidents with the same ids, none opened twice, and each closed once."""
    begin = "|abcABC"  # all groups are known to history before the first restart
    whole = Site(*found).live(begin + letters.replace("|", ""))
    broken = Site(*found).live(begin + letters)
    said = [[(type(each), each.incident.id, each.incident.began) for each in site.told] for site in (whole, broken)]
    assert said[0] == said[1]


def test_a_check_costs_the_same_in_a_group_of_five_thousand_as_in_one_of_fifty():
    """As long as it finds what the one before it has found."""

    def lines(count):
        names = [f"t{number}" for number in range(count)]
        site = Site(GroupPlan("all", tuple(names), 2), names=names)
        for name in names:
            site.recall(name)
            site.check(name, is_up=name != "t0")
        target = site.board.targets["t1"]
        return lines_of(site.groups.hear, Checked(target, is_change=False))

    assert lines(5_000) == lines(50)


def agent_of(port):
    """Write a configuration of a group of two targets at which nobody listens."""
    return f"""
        store = "memory"
        [[check]]
        name = "a"
        url = "tcp://127.0.0.1:{port}"
        [[check]]
        name = "b"
        url = "tcp://127.0.0.2:{port}"
        [[group]]
        name = "site"
        members = ["a", "b"]
        down_if = "2 of 2"
    """


async def test_the_agent_says_that_a_group_is_down(free_port):
    """The whole agent: its members are found down, and the group with them."""
    stream, clock = io.StringIO(), SystemClock()
    with anyio.fail_after(PATIENCE):
        await run(
            parse_config(agent_of(free_port), "f.toml", {}), JsonLines(stream, clock.wall), RunPlan(once=True), clock
        )
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    (text,) = [line["text"] for line in lines if line["event"] == "notice"]
    assert text.startswith("the group site is down: 2 of 2 are down: ")


def test_all_channels_are_told_of_a_group_that_names_none_and_of_no_member():
    """There were eleven messages of an outage of ten members and their group. One that was down when the agent stopped
    is no target that is gone.
    """
    routes = routes_of(parse_config(agent_of(1), "f.toml", {}))
    assert {name: routes[name] for name in ("site", "a", "b")} == {"site": None, "a": (), "b": ()}


CHANNEL = '[[channel]]\nname = "ops"\nkind = "command"\ncommand = ["/bin/true"]\n'


@pytest.mark.parametrize(
    ("defaults", "of_group", "route", "is_warned"),
    [
        ("", "", (), True),
        ('[defaults]\nnotify = ["ops"]\n', "", ("ops",), False),
        ("", "notify = []\n", None, False),
        ("", 'notify = ["ops"]\n', (), True),
    ],
)
def test_a_member_tells_by_itself_if_it_names_channels_or_its_group_tells_nobody(defaults, of_group, route, is_warned):
    """Which do not is said at each start, and by `check`."""
    config = parse_config(f"{agent_of(1)}{of_group}{CHANNEL}{defaults}", "f.toml", {})
    assert {routes_of(config)[name] for name in ("a", "b")} == {route}
    warning = "a, b tell nobody by themselves, for a group of theirs does"
    assert any(warning in each for each in config.all_warnings) is is_warned


def test_a_group_may_name_its_channels():
    """Those of its members are told of the members; an empty list: nobody is told of the group."""
    for notify in ('["ops"]', "[]"):
        config = parse_config(f"{agent_of(1)}notify = {notify}\n{CHANNEL}", "f.toml", {})
        assert routes_of(config)["site"] == (("ops",) if "ops" in notify else ())
        assert routes_of(config)["a"] == (() if "ops" in notify else None)

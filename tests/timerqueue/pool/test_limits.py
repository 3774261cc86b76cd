"""The accounts of a pool: never too much, never for nothing, never for ever."""

import itertools
import math
from unittest import mock

import pytest
from hypothesis import given, settings, strategies as st

from kit import examples
from timerqueue import UnknownLimit, needs_of
from timerqueue._limits.limits import Limits


class Claim:
    """Work as the limits see it."""

    def __init__(self, needs, rank):
        self.needs = needs_of(needs)
        self.rank = rank
        self.is_waiting = True
        self.size = 1

    def __repr__(self):
        return f"<{self.rank} {dict(self.needs)}>"


class Accounts:
    """What a pool does with its limits, with a check of every start. The only place here that calls Limits."""

    def __init__(self, capacity=math.inf, **sizes):
        self.limits = Limits(capacity, sizes)
        self.order = itertools.count()
        self.running = []
        self.waiting = []

    def submit(self, *needs, rank=0, **units):
        """Let work begin or wait; needs without units are for one."""
        claim = Claim({**dict.fromkeys(needs, 1), **units}, (rank, next(self.order)))
        self.limits.check(claim.needs)
        self.waiting.append(claim)
        if self.limits.take(claim):
            self.start(claim)
        else:
            self.limits.wait(claim, claim.rank)
            self.admit()
        return claim

    def finish(self, claim):
        self.running.remove(claim)
        self.limits.give_back(claim)
        self.admit()

    def cancel(self, claim):
        self.waiting.remove(claim)
        claim.is_waiting = False
        self.limits.forget(claim)
        self.admit()

    def resize(self, capacity=None, **sizes):
        self.limits.resize(capacity, sizes)
        self.admit()

    def admit(self):
        for claim in self.limits.admit():
            self.start(claim)

    def start(self, claim):
        equals = [each for each in self.waiting if each.needs == claim.needs]
        assert claim.rank == min(each.rank for each in equals), "a better one with the same needs was passed over"
        self.waiting.remove(claim)
        self.running.append(claim)
        claim.is_waiting = False
        assert len(self.running) <= self.limits.capacity
        for name, _ in claim.needs:
            assert self.used(name) <= self.size(name)

    def used(self, name):
        return sum(dict(claim.needs).get(name, 0) for claim in self.running)

    def size(self, name):
        return self.limits.statistics()[name].size

    def could_start(self, claim):
        """Whether the sums alone leave room for it."""
        sizes = self.limits.statistics()
        return len(self.running) < self.limits.capacity and all(
            name not in sizes or self.used(name) + units <= sizes[name].size for name, units in claim.needs
        )

    def check_sums(self):
        assert self.limits.used == len(self.running)
        assert self.limits.waiting == len(self.waiting)
        for name, limit in self.limits.statistics().items():
            assert limit.used == self.used(name)

    def finish_everything(self):
        """End what runs, oldest first, for as long as something does."""
        while self.running:
            self.finish(self.running[0])


UNIT_NEEDS = [{}, {"m": 1}, {"n": 1}, {"c:1": 1}, {"c:2": 1}]
MIXED_NEEDS = [*UNIT_NEEDS, {"m": 2}, {"n": 2}, {"m": 1, "n": 1}, {"m": 2, "c:1": 1}, {"m": 1, "n": 2, "c:2": 1}]


def operations(needs, sizes):
    """Lists of things to do to a pool, the sizes of whose limits stay within `sizes`."""
    return st.lists(
        st.one_of(
            st.tuples(st.just("submit"), st.sampled_from(needs), st.integers(0, 3)),
            st.tuples(st.just("submit"), st.sampled_from(needs), st.integers(0, 3)),
            st.tuples(st.just("finish"), st.integers(0, 9)),
            st.tuples(st.just("finish"), st.integers(0, 9)),
            st.tuples(st.just("cancel"), st.integers(0, 9)),
            st.tuples(st.just("resize"), st.integers(1, 6), st.sampled_from(["m", "n", "c:*"]), sizes),
        ),
        min_size=10,
        max_size=80,
    )


def perform(accounts, operation, *arguments):
    """Do one thing of the list, if there is somebody to do it to."""
    match operation, arguments:
        case "submit", (needs, rank):
            accounts.submit(rank=rank, **needs)
        case "finish", (index,) if accounts.running:
            accounts.finish(accounts.running[index % len(accounts.running)])
        case "cancel", (index,) if accounts.waiting:
            accounts.cancel(accounts.waiting[index % len(accounts.waiting)])
        case "resize", (capacity, name, size):
            accounts.resize(capacity, **{name: size})


@settings(max_examples=examples(300))
@given(operations(UNIT_NEEDS, st.integers(1, 4)))
def test_nothing_of_one_unit_waits_while_it_could_run(todo):
    """With single needs of one unit every wait has a full limit as its reason, and everybody's turn comes."""
    accounts = Accounts(4, m=2, n=1, **{"c:*": 1})
    for each in todo:
        perform(accounts, *each)
        accounts.check_sums()
        assert [claim for claim in accounts.waiting if accounts.could_start(claim)] == []
    accounts.finish_everything()
    assert accounts.waiting == []


@pytest.mark.parametrize("patience", [1, 8])
@settings(max_examples=examples(250))
@given(todo=operations(MIXED_NEEDS, st.integers(2, 4)))
def test_who_could_run_waits_only_for_one_who_cannot(patience, todo):
    """With weights and several needs, work that has room waits only to let another at one of its limits go first."""
    with mock.patch("timerqueue._limits.limits.PATIENCE", patience):
        check_that_who_could_run_waits_only_for_one_who_cannot(todo)


def check_that_who_could_run_waits_only_for_one_who_cannot(todo):
    """Do it all, and look at who waits after each step."""
    accounts = Accounts(4, m=2, n=2, **{"c:*": 2})
    for each in todo:
        perform(accounts, *each)
        accounts.check_sums()
        blocked = [set(dict(claim.needs)) for claim in accounts.waiting if not accounts.could_start(claim)]
        for claim in filter(accounts.could_start, accounts.waiting):
            assert any(needs & set(dict(claim.needs)) for needs in blocked), f"{claim} waits for nobody"
    accounts.finish_everything()
    assert accounts.waiting == []


@settings(max_examples=examples(200))
@given(operations([{"m": 1}, {"m": 2}, {"m": 3}, {"n": 1}, {"n": 2}], st.integers(3, 5)))
def test_order_within_a_limit_is_strict(todo):
    """Whoever starts has the best rank of all that wait for the same limit, whatever the weights."""
    accounts = Accounts(5, m=3, n=3)
    for each in todo:
        waiting_before = list(accounts.waiting)
        perform(accounts, *each)
        for started in set(waiting_before) & set(accounts.running):
            passed_over = [each for each in waiting_before if each in accounts.waiting]
            rivals = [each.rank for each in passed_over if each.needs[0][0] == started.needs[0][0]]
            assert all(started.rank < rank for rank in rivals)


@settings(max_examples=examples(150))
@given(operations(MIXED_NEEDS, st.integers(2, 4)))
def test_members_of_families_are_gone_when_idle(todo):
    """However their work ended, nothing is left of them."""
    accounts = Accounts(4, m=2, n=2, **{"c:*": 2})
    for each in todo:
        perform(accounts, *each)
    while accounts.waiting:
        accounts.cancel(accounts.waiting[-1])
    accounts.finish_everything()
    assert set(accounts.limits.statistics()) == {"m", "n"}
    assert accounts.limits.used == accounts.limits.waiting == 0


def test_work_without_needs_is_not_held_up_by_a_full_limit():
    """A full target costs the others nothing."""
    accounts = Accounts(3, a=1)
    accounts.submit("a")
    stuck = accounts.submit("a")
    free = accounts.submit()
    assert accounts.waiting == [stuck]
    assert free in accounts.running


def test_all_or_nothing():
    """Work that waits for one limit holds no unit of another."""
    accounts = Accounts(a=1, b=1)
    accounts.submit("a")
    both = accounts.submit("a", "b")
    assert both in accounts.waiting
    assert accounts.used("b") == 0
    assert accounts.limits.statistics()["b"].used == 0


def test_better_ranks_go_first_also_across_limits():
    """When the capacity alone is full, rank decides and not the limit that was needed."""
    accounts = Accounts(1, a=1, b=1)
    running = accounts.submit()
    later, first, second = accounts.submit("a", rank=3), accounts.submit("b", rank=1), accounts.submit(rank=2)
    order = []
    while accounts.running:
        accounts.finish(running)
        running = accounts.running[0] if accounts.running else None
        order.append(running)
    assert order == [first, second, later, None]


def test_equal_ranks_keep_their_order():
    """Among equals whoever came first goes first, also in different lines."""
    accounts = Accounts(1, a=9, b=9)
    accounts.submit()
    claims = [accounts.submit(name) for name in "abab"]
    for claim in claims:
        accounts.finish(accounts.running[0])
        assert accounts.running == [claim]


@pytest.mark.parametrize("comes_when_full", [False, True])
def test_heavy_work_is_not_starved_by_light_work(comes_when_full):
    """Light work with a worse rank does not slip past it into the room that it waits for."""
    accounts = Accounts(a=3)
    for _ in range(3):
        accounts.submit("a", rank=0)
    heavy = accounts.submit(a=3, rank=1)
    if comes_when_full:
        accounts.submit("a", rank=2)
    for _ in range(3):
        accounts.finish(accounts.running[0])
        accounts.submit("a", rank=2)
    assert accounts.running == [heavy]


def test_light_work_with_a_better_rank_goes_before_heavy_work():
    """Order within a limit is by rank and not by weight."""
    accounts = Accounts(a=3)
    first = accounts.submit("a")
    accounts.submit("a")
    accounts.submit("a")
    accounts.submit(a=3, rank=1)
    light = accounts.submit("a", rank=0)
    accounts.finish(first)
    assert light in accounts.running


def alternate(accounts, names, steps, watched):
    """Keep each limit busy with work of its own, never free together with another; return the `watched` that began."""
    started = set()
    for step in range(steps):
        name = names[step % len(names)]
        accounts.submit(name, rank=step / 10)  # whoever comes later is due later
        started |= watched & set(accounts.running)
        holder = next((claim for claim in accounts.running if name in dict(claim.needs)), None)
        if holder is not None:
            accounts.finish(holder)
    return started


@pytest.mark.parametrize("rank", [-1, 0, 5])
@pytest.mark.parametrize("names", [["a", "b"], ["a", "b", "c:1"]])
def test_work_with_several_needs_is_not_starved_by_work_with_one(names, rank):
    """Its limits are never free together, yet its turn comes: after some refusals they are kept for it."""
    accounts = Accounts(a=1, b=1, **{"c:*": 1})
    for name in names:
        accounts.submit(name, rank=-1)
    several = accounts.submit(*names, rank=rank)
    assert alternate(accounts, names, 300, {several}) == {several}


def test_many_with_several_needs_are_not_starved_one_after_the_other():
    """One reservation at a time is enough for all of them to come through."""
    accounts = Accounts(a=1, b=1, c=1)
    for name in "abc":
        accounts.submit(name)
    needs = [{"a": 1, "b": 1}, {"a": 1, "b": 1}, {"b": 1, "c": 1}, {"a": 1, "b": 1, "c": 1}, {"a": 1, "c": 1}]
    several = {accounts.submit(rank=2, **each) for each in needs}
    assert alternate(accounts, "abc", 1_000, several) == several


@pytest.mark.parametrize("steps", range(0, 60, 3))
def test_cancelling_the_one_with_the_reservation_lets_the_others_go(steps):
    """What was kept for it is free again at once, whenever that is."""
    accounts = Accounts(a=1, b=1)
    accounts.submit("a", rank=-1)
    accounts.submit("b", rank=-1)
    several = accounts.submit("a", "b", rank=-1)
    alternate(accounts, "ab", steps, set())
    if several in accounts.waiting:
        accounts.cancel(several)
    assert [claim for claim in accounts.waiting if accounts.could_start(claim)] == []
    accounts.finish_everything()
    assert accounts.waiting == []


def test_a_smaller_capacity_drains():
    """Three run, one may: the fourth starts when all three have ended."""
    accounts = Accounts(3)
    three = [accounts.submit() for _ in range(3)]
    fourth = accounts.submit()
    accounts.resize(1)
    for claim in three:
        assert accounts.waiting == [fourth]
        accounts.finish(claim)
    assert accounts.running == [fourth]


def test_a_smaller_limit_drains():
    """Heartbeat's row "3 running, cut to 1", for a named limit."""
    accounts = Accounts(a=3)
    three = [accounts.submit("a") for _ in range(3)]
    fourth = accounts.submit("a")
    accounts.resize(a=1)
    for claim in three:
        assert accounts.waiting == [fourth]
        accounts.finish(claim)
    assert accounts.running == [fourth]


@pytest.mark.parametrize(
    ("sizes", "larger"),
    [({"a": 1}, {"a": 3}), ({"a": 1}, {"a": math.inf}), ({"capacity": 1}, {"capacity": 3}), ({"c:*": 1}, {"c:*": 3})],
)
def test_a_larger_limit_starts_what_waits(sizes, larger):
    """Without anybody having to end first."""
    accounts = Accounts(**sizes)
    need = {"a": ["a"], "capacity": [], "c:*": ["c:1"]}[next(iter(sizes))]
    for _ in range(3):
        accounts.submit(*need)
    assert len(accounts.running) == 1
    accounts.resize(**larger)
    assert len(accounts.running) == 3


def test_work_that_a_smaller_limit_can_never_hold_does_not_block_the_others():
    """Heavy work that waits when its limit shrinks below its weight is no reason for all the rest to stand still."""
    accounts = Accounts(a=3)
    accounts.submit(a=3)
    accounts.submit(a=3)
    light = accounts.submit("a")
    accounts.resize(a=2)
    accounts.finish_everything()
    assert light not in accounts.waiting


def test_a_limit_added_later_is_known():
    """`resize` adds what was not there."""
    accounts = Accounts(a=1)
    with pytest.raises(UnknownLimit):
        accounts.submit("b")
    accounts.resize(b=1)
    assert accounts.submit("b") in accounts.running


def test_each_member_of_a_family_has_a_limit_of_its_own():
    """One full server holds up no other; each is there as long as it is in use."""
    accounts = Accounts(**{"server:*": 1})
    one, two = accounts.submit("server:1"), accounts.submit("server:2")
    assert accounts.running == [one, two]
    assert accounts.submit("server:1") in accounts.waiting
    assert {name: (limit.used, limit.waiting) for name, limit in accounts.limits.statistics().items()} == {
        "server:1": (1, 1),
        "server:2": (1, 0),
    }
    accounts.finish_everything()
    assert accounts.limits.statistics() == {}


def test_a_name_of_its_own_goes_before_its_family():
    """`server:big` may have more room than the other servers."""
    accounts = Accounts(**{"server:*": 1, "server:big": 2})
    for _ in range(2):
        accounts.submit("server:big")
        accounts.submit("server:small")
    assert [dict(claim.needs) for claim in accounts.waiting] == [{"server:small": 1}]
    accounts.finish_everything()
    assert set(accounts.limits.statistics()) == {"server:big"}


def test_a_member_that_nobody_got_is_gone_when_nobody_waits_for_it():
    """Work that waited for something else and was cancelled leaves no empty member behind."""
    accounts = Accounts(target=1, **{"server:*": 1})
    accounts.submit("target")
    accounts.cancel(accounts.submit("server:1", "target"))
    assert set(accounts.limits.statistics()) == {"target"}


def test_cancelled_work_is_not_counted_as_waiting():
    """Neither at the front nor in the middle of its line."""
    accounts = Accounts(a=1)
    accounts.submit("a")
    waiting = [accounts.submit("a") for _ in range(4)]
    for claim in (waiting[2], waiting[0]):
        accounts.cancel(claim)
    assert accounts.limits.statistics()["a"].waiting == accounts.limits.waiting == 2


@pytest.mark.parametrize(
    ("needs", "form"),
    [
        ((), ()),
        ({}, ()),
        ("http", (("http", 1),)),
        (["http"], (("http", 1),)),
        (("http", "dns"), (("dns", 1), ("http", 1))),
        ({"http", "dns"}, (("dns", 1), ("http", 1))),
        ((name for name in ("http", "http")), (("http", 1),)),
        ({"http": 3, "dns": 1}, (("dns", 1), ("http", 3))),
    ],
)
def test_equal_needs_have_one_form(needs, form):
    """However they were written."""
    assert needs_of(needs) == form


@pytest.mark.parametrize("needs", [{"a": 0}, {"a": -1}, {"a": 1.5}, {"a": True}, {"a": "1"}, [1], [None]])
def test_needs_that_mean_nothing_are_refused(needs):
    """A need is a name with a whole number of units."""
    with pytest.raises(ValueError, match="whole units from 1"):
        needs_of(needs)


@pytest.mark.parametrize(
    ("needs", "error", "words"),
    [
        ({"dsn": 1}, UnknownLimit, "no limit 'dsn'; known: a, server:[*]"),
        ({"serve:1": 1}, UnknownLimit, "no limit 'serve:1'"),
        ({"a": 3}, ValueError, "'a' has 2 units and never room for 3"),
        ({"server:1": 2}, ValueError, "'server:1' has 1 units and never room for 2"),
    ],
)
def test_needs_that_can_never_be_met_are_refused(needs, error, words):
    """At once and with the name, not by waiting for ever."""
    with pytest.raises(error, match=words):
        Limits(9, {"a": 2, "server:*": 1}).check(needs_of(needs))


def test_a_refused_need_leaves_no_trace():
    """Asking whether something would be possible makes no member of a family."""
    limits = Limits(9, {"server:*": 1})
    with pytest.raises(ValueError, match="never room"):
        limits.check(needs_of({"server:1": 2}))
    assert limits.statistics() == {}

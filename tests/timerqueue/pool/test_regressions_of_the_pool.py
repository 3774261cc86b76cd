"""Defects of heap, limits and pool that a hostile review found: each stays fixed."""

import gc

import pytest
from anyio.lowlevel import checkpoint

from timerqueue import Entry, TaskPool, TimerHeap, Work
from timerqueue._limits.limits import Limits


class Claim:
    """What stands in line for limits."""

    def __init__(self, *names):
        self.needs = tuple((name, 1) for name in names)
        self.is_waiting = True
        self.size = 1


class Pairs(Limits):
    """Limits at each of which two claims find room, and the claims that hold or want some of it."""

    def __init__(self):
        super().__init__(100, {"a": 2, "b": 2})
        self.order = 0

    def want(self, *names, rank):
        """Stand in line and answer who gets in by that."""
        claim = Claim(*names)
        self.order += 1
        self.wait(claim, (rank, self.order))
        return claim, self.let_in()

    def let_in(self):
        """Give out what can be given out."""
        admitted = list(self.admit())
        for claim in admitted:
            claim.is_waiting = False
        return admitted


def passed_over(limits):
    """Let work that needs all of both limits be passed over until it is about to be given a reservation."""
    holders = {}
    for name in "ab":
        holders[name] = Claim(name)
        assert limits.take(holders[name])
        holders[name].is_waiting = False
    big = Claim()
    big.needs = (("a", 2), ("b", 2))
    limits.wait(big, (0.0, 0))
    assert limits.let_in() == []
    line = limits._lines[big.needs]
    for _ in range(100):
        if line.refusals >= 7:
            return line, holders
        for name in "ab":
            limits.give_back(holders[name])
            limits.let_in()
            holders[name], _ = limits.want(name, rank=-1.0)
    msg = "it was never passed over"
    raise AssertionError(msg)


def test_an_entry_that_waits_cannot_be_pushed_a_second_time():
    """Two references to one entry once brought the whole heap to a standstill."""
    heap, entry = TimerHeap(), Entry()
    heap.push(entry, 10.0)
    with pytest.raises(ValueError, match="waiting already: reschedule it"):
        heap.push(entry, 20.0)
    assert entry.due == 10.0
    assert len(heap) == 1


def test_an_entry_that_was_cancelled_or_popped_can_be_pushed_again():
    """Only what waits is refused."""
    heap, entry = TimerHeap(), Entry()
    heap.push(entry, 10.0)
    heap.cancel(entry)
    heap.push(entry, 5.0)
    assert heap.pop_due(5.0) == [entry]
    heap.push(entry, 7.0)
    assert len(heap) == 1


def test_work_that_can_never_start_any_more_holds_no_reservation():
    """After a limit was made smaller than its needs, nobody at all could start at either of its limits."""
    limits = Pairs()
    line, holders = passed_over(limits)
    limits.resize(None, {"a": 1})
    assert limits.let_in() == []
    assert line in limits._limits["a"].stranded
    for name in "ab":
        limits.give_back(holders[name])
    limits.let_in()
    for name in "ab":
        claim, admitted = limits.want(name, rank=10.0)
        assert admitted == [claim]


def test_work_that_was_stranded_starts_when_the_limit_has_grown_again():
    """Nothing of its place in line is lost meanwhile."""
    limits = Pairs()
    line, holders = passed_over(limits)
    (_, big), *_ = line.queue
    limits.resize(None, {"a": 1})
    limits.let_in()
    for name in "ab":
        limits.give_back(holders[name])
    assert limits.let_in() == []
    limits.resize(None, {"a": 2})
    assert limits.let_in() == [big]


async def test_work_that_fails_leaves_no_cycles_behind():
    """An outage lets every piece of work fail: that must not bring full collections."""

    async def fail():
        await checkpoint()
        raise ValueError("boom")

    async with TaskPool(10) as pool:
        for _ in range(20):
            pool.start_soon(fail)
        await pool.drained()
        gc.collect()
        gc.disable()
        try:
            for _ in range(200):
                pool.start_soon(fail)
            await pool.drained()
            assert gc.collect() < 200
        finally:
            gc.enable()


async def test_work_that_cannot_be_told_of_its_end_gives_back_its_units(caplog):
    """Its units once leaked, and the pool never drained."""

    class Rude(Work):
        def open(self, now):
            return checkpoint()

        def close(self, value, error, now):
            raise ValueError("rude")

    async with TaskPool(1) as pool:
        for _ in range(3):
            pool.submit(Rude())
        await pool.drained()
        assert pool.active == 0
    assert caplog.text.count("work raised when it was told of its end") == 3

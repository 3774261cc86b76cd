"""The writer: nothing that was taken is lost or stored out of order, whatever the store does."""

import pytest
from hypothesis import given, settings, strategies as st

from kit import examples
from metric_kit import SETTINGS, T0, outcome, sample, times
from uptime_agent.postgres.contract import Failure, OutcomeKind, StoreUnavailable
from uptime_agent.postgres.storage import (
    Counts,
    MemoryMetrics,
    MetricWriter,
    Replayed,
    SampleRefused,
    SamplesLost,
    Spool,
    StoreBack,
    StoreLost,
    Unstorable,
)


class Faulty(MemoryMetrics):
    """A store that does not take what it is given, so many times, or whose answers are lost."""

    def __init__(self):
        super().__init__()
        self.faults = 0
        self.is_carried_out = False
        self.opened = 0
        self.order = []
        self.batches = 0
        self.fails_at = 0
        self.is_defect = lambda _: False

    def open(self):
        self.opened += 1
        if self.faults:
            self.faults -= 1
            raise StoreUnavailable("connection refused")

    def write(self, samples, outcomes):
        if self.faults and not self.is_carried_out:
            self.faults -= 1
            raise StoreUnavailable("connection refused")
        self.fails_at -= 1
        if not self.fails_at:
            raise StoreUnavailable("gone in between")
        if self.is_defect(samples):
            raise RuntimeError("a defect")
        super().write(samples, outcomes)
        self.batches += 1
        self.order += [each.at - sample().at for each in samples]
        if self.faults:
            self.faults -= 1
            raise StoreUnavailable("the answer was lost")


class World:
    """A writer over a store and a spool, and what it tells."""

    def __init__(self, folder=None, store=None, **options):
        self.store = store or Faulty()
        self.spool = Spool(folder, most_bytes=100_000) if folder else None
        self.news = []
        self.writer = MetricWriter(self.store, self.spool, tell=self.news.append, **options)
        self.writer.open(0.0)

    def put(self, at, now=0.0):
        return self.writer.put([sample(at, ("a", at))], [outcome(at)], now)

    def settle(self, now):
        while self.writer.turn(now):
            pass


def test_what_was_put_is_written_in_one_transaction():
    """Over targets and probes."""
    world = World()
    for at in range(50):
        assert world.put(at)
    world.settle(0.0)
    assert times(world.store) == list(range(50))
    assert world.store.batches == 1
    assert world.writer.waiting == 0


def test_an_outcome_says_how_long_its_sample_waited_to_be_stored():
    """From `put` until it is written."""
    world = World()
    world.put(0, now=10.0)
    world.settle(12.5)
    assert world.store.outcomes()[0].stored == 2.5


def test_a_full_queue_says_no_and_counts_it():
    """Whoever probes can leave it before it costs the server anything."""
    world = World(most_waiting=30)
    taken = [world.put(at) for at in range(15)]
    assert taken == [True] * 10 + [False] * 5
    assert not world.writer.has_room
    world.settle(0.0)
    assert world.writer.has_room
    assert world.news == [SamplesLost(Counts(5, 5, 0), "the queue is full")]
    assert times(world.store) == list(range(10))
    told = {each.due - outcome().due: each.reason for each in world.store.outcomes() if each.failure is Failure.STORE}
    assert told == dict.fromkeys(range(10, 15), "dropped: the queue to the store was full")
    assert len(world.store.outcomes()) == 15


def test_records_alone_fill_a_queue_twice_over():
    """Then they are lost as well, counted: a store that stands still costs no more memory than that."""
    world = World(most_waiting=30)
    for at in range(1_000):
        world.put(at)
    assert world.writer.waiting == 60
    world.settle(0.0)
    assert world.news == [SamplesLost(Counts(990, 990, 960), "the queue is full")]
    assert len(world.store.outcomes()) == 40


def test_while_the_store_is_away_everything_waits_in_the_spool(tmp_path):
    """Then it is stored in its order, the new behind the old, and told once each."""
    world = World(tmp_path)
    world.store.faults = 3
    for at in range(6):
        world.put(at)
        world.settle(float(at) / 10)
    assert times(world.store) == []
    assert world.writer.is_down
    assert world.spool.waiting.samples == 6
    for now in (1.0, 3.0, 7.0):
        world.put(10 + now)
        world.settle(now)
    assert world.store.order == [0, 1, 2, 3, 4, 5, 11, 13, 17]
    assert [type(each) for each in world.news] == [StoreLost, StoreBack, Replayed]
    assert world.news[-1].counts == Counts(9, 9, 9)
    world.put(20)
    world.settle(8.0)
    assert world.spool.size == 0
    assert times(world.store)[-1] == 20


def test_a_store_that_is_away_is_tried_less_and_less_often(tmp_path):
    """After a second, two, four, at most a minute; a thousand failures overflow nothing."""
    world = World(tmp_path)
    world.store.faults = 5_000
    world.put(0)
    tries = []
    for now in range(100_000):
        before = world.store.faults
        world.settle(float(now))
        if world.store.faults != before:
            tries.append(now)
    assert tries[:8] == [0, 1, 3, 7, 15, 31, 63, 123]
    assert tries[-1] - tries[-2] == 60
    assert len(tries) > 1_500


def test_a_store_that_is_away_at_the_start_is_no_error(tmp_path):
    """What is found meanwhile waits."""
    store = Faulty()
    store.faults = 2
    world = World(tmp_path, store)
    world.put(0)
    world.settle(0.5)
    world.settle(1.0)
    assert times(store) == []
    world.settle(3.0)
    assert times(store) == [0]


def test_a_batch_whose_answer_was_lost_is_stored_once(tmp_path):
    """It is sent again, and the store knows its samples."""
    world = World(tmp_path)
    world.store.is_carried_out, world.store.faults = True, 1
    world.put(0)
    world.settle(0.0)
    world.settle(1.0)
    assert world.store.order == [0, 0]
    assert times(world.store) == [0]
    assert len(world.store.outcomes()) == 1


def test_a_sample_that_no_store_can_hold_costs_itself_alone(tmp_path):
    """Directly, and on the way through the spool."""
    world = World(tmp_path)
    for now in (0.0, 1.0):
        bad = sample(now, ("a", "many"))
        world.writer.put([sample(now, ("a", 1)), bad, sample(now, ("b", "x"), probe=SETTINGS)], [outcome(now)], now)
        world.store.faults = int(not now)
        world.settle(now)
    world.settle(5.0)
    assert times(world.store, probe="wal") == [0, 1]
    assert times(world.store, probe="settings") == [0]
    assert [each.probe for each in world.news if isinstance(each, SampleRefused)] == ["wal", "wal"]
    assert len(world.store.outcomes()) == 2


@pytest.mark.parametrize("wrong", [set(), {0}, {3}, {1, 2, 6}, {7}, set(range(8))])
def test_no_record_tells_of_rows_that_are_not_there(wrong):
    """A sample and its record are in one transaction; what cannot be stored is parted from neither, and says why."""
    world = World()
    samples = [sample(at, ("a", "many" if at in wrong else at)) for at in range(8)]
    world.writer.put(samples, [outcome(at) for at in (*range(8), 99)], 0.0)
    world.settle(0.0)
    assert times(world.store) == [at for at in range(8) if at not in wrong]
    kinds = {round(each.due - T0): (each.kind, each.failure) for each in world.store.outcomes()}
    refused = (OutcomeKind.FAILED, Failure.STORE)
    assert kinds == {at: refused if at in wrong else (OutcomeKind.STORED, None) for at in (*range(8), 99)}
    told = [each.reason for each in world.store.outcomes() if each.failure]
    assert all("not stored" in each and "no whole number" not in each and "count" in each for each in told)
    assert world.writer.finish(lambda: 0.0, 0.0).dropped == Counts()


@pytest.mark.parametrize("wrong", [0, 5, 7])
def test_a_store_that_goes_away_while_a_sample_is_looked_for_costs_nothing(tmp_path, wrong):
    """At each of the transactions; what was stored by then is stored once."""
    for fault in range(1, 9):
        world = World(tmp_path / str(fault))
        world.store.fails_at = fault
        samples = [sample(at, ("a", "many" if at == wrong else at)) for at in range(8)]
        world.writer.put(samples, [outcome(at) for at in range(8)], 0.0)
        world.settle(0.0)
        world.settle(90.0)
        assert times(world.store) == [at for at in range(8) if at != wrong]
        assert [each.due - T0 for each in world.store.outcomes() if each.failure] == [wrong]
        assert len(world.store.outcomes()) == 8


def test_a_defect_of_a_store_costs_the_sample_that_it_is_about(caplog):
    """A third party's store that raises what it should not; the thread goes on."""
    world = World()
    world.store.is_defect = lambda samples: any(each.at == sample(2).at for each in samples)
    for at in range(5):
        world.put(at)
    world.settle(0.0)
    assert times(world.store) == [0, 1, 3, 4]
    assert [each.reason for each in world.store.outcomes() if each.failure] == ["not stored: a defect"]
    assert "the metric store has a defect" in caplog.text


def test_without_a_spool_the_queue_keeps_what_it_can():
    """The oldest first."""
    world = World(most_waiting=9)
    world.store.faults = 1
    for at in range(4):
        world.put(at)
    world.settle(0.0)
    world.settle(5.0)
    assert times(world.store) == [0, 1, 2]


def test_the_end_stores_what_it_can_and_reports(tmp_path):
    """All of it while there is time."""
    world = World(tmp_path)
    for at in range(3):
        world.put(at)
    report = world.writer.finish(lambda: 0.0, 1.0)
    assert (report.stored, report.spooled, report.dropped) == (Counts(3, 3, 3), Counts(), Counts())
    assert times(world.store) == [0, 1, 2]


def test_past_the_deadline_the_rest_goes_to_the_spool(tmp_path):
    """The next start stores it."""
    world = World(tmp_path)
    world.put(0)
    report = world.writer.finish(lambda: 2.0, 1.0)
    assert (report.stored, report.spooled, report.dropped) == (Counts(), Counts(1, 1, 1), Counts())
    later = World(tmp_path)
    later.settle(0.0)
    assert times(later.store) == [0]


def test_what_neither_store_nor_spool_takes_at_the_end_is_told():
    """With how much it was."""
    world = World()
    world.store.faults = 9
    world.put(0)
    report = world.writer.finish(iter([0.0, 0.0, 5.0, 5.0, 5.0]).__next__, 1.0)
    assert report.dropped == Counts(1, 1, 1)
    assert isinstance(world.news[-1], SamplesLost)
    assert "1 samples with 1 rows, 1 outcomes" in str(report)


def test_a_full_spool_is_told(tmp_path):
    """What was dropped was the oldest."""
    world = World()
    world.spool = Spool(tmp_path, most_bytes=3_000)
    world.writer = MetricWriter(world.store, world.spool, tell=world.news.append)
    world.writer.open(0.0)
    world.store.faults = 1
    for at in range(40):
        world.put(at)
        world.settle(0.0)
    world.settle(9.0)
    kept = times(world.store)
    assert kept[-1] == 39
    assert kept == list(range(40 - len(kept), 40))
    lost = [each for each in world.news if isinstance(each, SamplesLost)]
    assert sum((each.counts for each in lost), Counts()).samples == 40 - len(kept) > 0


@pytest.mark.parametrize("others", [0, 1])
def test_a_batch_that_is_larger_than_the_spool_is_dropped_and_not_spooled(tmp_path, others):
    """Whether others wait there or not."""
    world = World()
    world.spool = Spool(tmp_path, most_bytes=3_000)
    world.writer = MetricWriter(world.store, world.spool, tell=world.news.append)
    world.writer.open(0.0)
    world.store.faults = 9
    for at in range(others):
        world.put(at)
    world.settle(0.0)
    world.writer.put([sample(9, ("a" * 3_000, 9))], [], 0.0)
    world.settle(0.0)
    world.writer.finish(lambda: 0.0, 0.0)
    report = world.writer.so_far
    assert (report.stored, report.spooled.samples, report.dropped) == (Counts(), others, Counts(1, 1, 0))


STEPS = st.lists(st.one_of(st.just("put"), st.just("restart"), st.integers(0, 3), st.floats(0.1, 90.0)), max_size=40)


@settings(max_examples=examples(60), deadline=None)
@given(STEPS)
def test_whatever_happens_all_is_stored_once_and_in_order(tmp_path_factory, steps):
    """Faults before and after the commit, restarts, and any spacing of turns."""
    folder, store = tmp_path_factory.mktemp("spool"), Faulty()
    world, now, put = World(folder, store), 0.0, 0
    for step in steps:
        if step == "put":
            world.put(put)
            put += 1
        elif step == "restart":
            world.writer.finish(lambda now=now: now, now - 1)
            world = World(folder, store)
        elif isinstance(step, int):
            store.faults, store.is_carried_out = step, step % 2 == 1
        else:
            now += step
        world.settle(now)
    store.faults = 0
    world.settle(now + 1000)
    assert times(store) == list(range(put))
    firsts = list(dict.fromkeys(store.order))
    assert firsts == sorted(firsts)
    world.writer.finish(lambda: 0.0, 0.0)


def test_unstorable_is_not_unavailable():
    """Or it would be tried for ever."""
    assert not issubclass(Unstorable, StoreUnavailable)

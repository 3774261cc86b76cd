"""The recorder: one thread, one queue, and an end under a deadline that says what became of everything."""

import threading

import pytest

from kit import PATIENCE, wait_until
from metric_kit import outcome, sample, times
from timerqueue.testing import ManualClock
from uptime_agent.postgres.contract import StoreUnavailable
from uptime_agent.postgres.recorder import HOUSEKEEPING, Recorder
from uptime_agent.postgres.storage import Counts, MemoryMetrics, Replayed, Spool, SqliteMetrics


class Slow(MemoryMetrics):
    """A store whose first write stands still until somebody ends it, and is in vain if it `is_away` then."""

    def __init__(self):
        super().__init__()
        self.is_away = True
        self.stands_still = threading.Event()
        self.goes_on = threading.Event()

    def write(self, samples, outcomes):
        if not self.goes_on.is_set():
            self.stands_still.set()
            assert self.goes_on.wait(PATIENCE)
            if self.is_away:
                raise StoreUnavailable("it is being closed")
        super().write(samples, outcomes)

    def interrupt(self):
        self.goes_on.set()


@pytest.fixture
def clock():
    return ManualClock()


def begun(store, clock, spool=None, news=None):
    """Start a recorder."""
    recorder = Recorder(store, spool, clock, (lambda _: None) if news is None else news.append)
    recorder.start()
    return recorder


def test_what_was_handed_over_is_stored_before_the_end(clock):
    """Also what was under way when the end began; the report says how much that was."""
    recorder = begun(store := Slow(), clock)
    store.is_away = False
    recorder.add(sample(0, ("a", 0)), outcome(0))
    assert store.stands_still.wait(PATIENCE)
    for at in range(1, 50):
        recorder.add(sample(at, ("a", at)), outcome(at))
    recorder.add(None, outcome(99))
    report = recorder.close(0.01)
    assert times(store) == list(range(50))
    assert len(store.outcomes()) == 51
    assert (report.stored, report.spooled, report.dropped) == (Counts(50, 50, 51), Counts(), Counts())


def test_the_report_counts_what_was_stored_long_before_the_end(clock):
    """It said "stored: 0 samples" of a run that had stored all it found."""
    recorder = begun(store := Slow(), clock)
    store.is_away = False
    store.goes_on.set()
    recorder.add(sample(0, ("a", 0)), outcome(0))
    wait_until(lambda: len(store.outcomes()) == 1)
    assert recorder.close(PATIENCE).stored == Counts(1, 1, 1)


def test_a_record_wakes_the_thread_only_while_it_has_nothing_to_do(clock):
    """What is handed over while it gathers or writes is found then: a wake for each would cost more than the rest."""
    recorder = begun(store := Slow(), clock)
    store.is_away = False
    recorder.add(sample(0, ("a", 0)), outcome(0))
    assert store.stands_still.wait(PATIENCE)
    notify, woken = recorder._changed.notify, []
    recorder._changed.notify = lambda: woken.append(notify())
    for at in range(1, 50):
        recorder.add(sample(at, ("a", at)), outcome(at))
    store.goes_on.set()
    wait_until(lambda: len(store.outcomes()) == 50)
    assert not woken
    wait_until(lambda: recorder._is_idle)
    recorder.add(sample(50, ("a", 50)), outcome(50))
    assert len(woken) == 1
    recorder.close(PATIENCE)
    assert times(store) == list(range(51))


def test_past_the_deadline_a_store_that_stands_still_is_left_and_the_spool_has_the_rest(clock, tmp_path):
    """Nothing is lost, none is stored twice, and the report is there soon after the deadline."""
    recorder = begun(store := Slow(), clock, Spool(tmp_path))
    recorder.add(sample(0, ("a", 0)), outcome(0))
    assert store.stands_still.wait(PATIENCE)
    for at in range(1, 4):
        recorder.add(sample(at, ("a", at)), outcome(at))
    report = recorder.close(0.01)
    assert (report.stored, report.spooled, report.dropped) == (Counts(), Counts(4, 4, 4), Counts())
    assert times(store) == []
    later = begun(store, clock, Spool(tmp_path))
    wait_until(lambda: len(times(store)) == 4)
    later.close(PATIENCE)
    assert times(store) == [0, 1, 2, 3]


def test_without_a_spool_the_end_says_what_was_dropped(clock):
    """In numbers, in the report and in the news."""
    news = []
    recorder = begun(store := Slow(), clock, news=news)
    recorder.add(sample(0, ("a", 0), ("b", 1)), outcome(0))
    assert store.stands_still.wait(PATIENCE)
    report = recorder.close(0.01)
    assert report.dropped == Counts(1, 2, 1)
    assert str(report).endswith("dropped: 1 samples with 2 rows, 1 outcomes")
    assert [str(each) for each in news][-1].endswith("1 samples with 2 rows, 1 outcomes")


def test_a_store_is_asked_on_the_thread_on_which_it_is_written(clock):
    """Whoever asks one that cannot answer is told so, and nothing else changes."""
    threads, answers = [], []
    recorder = begun(MemoryMetrics(), clock)
    recorder.call(lambda store: threads.append(threading.get_ident()) or store.last("db1", "wal"), answers.append)
    recorder.call(lambda _: 1 / 0, answers.append)
    recorder.call(lambda _: threads.append(threading.get_ident()) or 7, answers.append)
    wait_until(lambda: len(answers) == 3)
    recorder.close(PATIENCE)
    assert answers == [None, None, 7]
    assert len(set(threads)) == 1
    assert threads[0] != threading.get_ident()


def test_a_store_that_is_away_at_the_start_is_asked_in_vain_and_filled_later(clock, tmp_path):
    """Its probes begin all the same."""
    store, answers, news = SqliteMetrics(tmp_path / "absent" / "metrics.db"), [], []
    recorder = begun(store, clock, Spool(tmp_path / "spool"), news)
    recorder.call(lambda each: each.last("db1", "wal"), answers.append)
    recorder.add(sample(0, ("a", 0)), outcome(0))
    wait_until(lambda: answers and not recorder.waiting)
    (tmp_path / "absent").mkdir()
    clock.advance(5)
    recorder.add(sample(1, ("a", 1)), outcome(1))
    wait_until(lambda: any(isinstance(each, Replayed) for each in news))
    recorder.close(PATIENCE)
    assert times(store) == [0, 1]
    assert answers == [None]


def test_house_is_kept_once_an_hour(clock):
    """Or a disk would fill. A round that fails costs nothing but itself."""
    rounds, store = [], MemoryMetrics()

    def maintain(now):
        rounds.append(now)
        if len(rounds) == 2:
            raise StoreUnavailable("away")

    store.maintain = maintain
    recorder = begun(store, clock)
    for number in range(8):
        recorder.add(None, outcome(number))
        wait_until(lambda number=number: len(store.outcomes()) == number + 1 and len(rounds) == number // 2 + 1)
        clock.advance(HOUSEKEEPING / 2)
    recorder.close(PATIENCE)
    assert [each - rounds[0] for each in rounds[:4]] == [number * HOUSEKEEPING for number in range(4)]

"""The public suite notices what is wrong with a store: each of these is broken in one place."""

import inspect

import pytest
from attrs import evolve
from hypothesis import Phase, settings

from scheduler.stores import RUNNING, Batch, Changes, Opened, Receipt
from scheduler.stores.memory import MemoryStore
from scheduler.testing.stores import StoreConformance

pytestmark = pytest.mark.slow


class Broken(MemoryStore):
    """Another object on the same data is broken in the same way."""

    def another(self):
        other = type(self)()
        other._data = self._data
        return other


class CountsNoEpochs(Broken):
    def open(self, now_us, hint):
        return Opened(1, super().open(now_us, hint).instance)


class LetsTwoCommit(Broken):
    def commit(self, batch):
        self._data.owner = self
        return super().commit(batch)


class LosesStatesOfReplacedJobs(Broken):
    def commit(self, batch):
        super().commit(Batch(jobs=dict.fromkeys(batch.jobs)))
        return super().commit(batch)


class RemovesTicksWithTheirJob(Broken):
    def commit(self, batch):
        gone = {job_id for job_id, job in batch.jobs.items() if job is None}
        self._data.ticks = {key: tick for key, tick in self._data.ticks.items() if tick.job_id not in gone}
        return super().commit(batch)


class MarksBeforeItEnds(Broken):
    def commit(self, batch):
        refused = super().commit(Batch(marks=batch.marks)).refused
        return evolve(super().commit(evolve(batch, marks=[])), refused=refused)


class TellsOfNothingRefused(Broken):
    def commit(self, batch):
        super().commit(batch)
        return Receipt()


class StopsAtWhatIsRefused(Broken):
    def commit(self, batch):
        before = dict(self._data.ticks)
        receipt = super().commit(batch)
        if receipt.refused:
            self._data.ticks = before
        return receipt


class TellsOfItsOwnWrites(Broken):
    def changes(self):
        return Changes(jobs=dict(self._data.jobs))


class ReadsTheOldestFirst(Broken):
    def history(self, job_id=None, *, limit=100, before_us=None):
        return super().history(job_id, limit=10**9, before_us=before_us)[::-1][:limit]


class ForgetsWhatRuns(Broken):
    def prune(self, retention, now_us):
        before = len(self._data.ticks)
        self._data.ticks = {key: tick for key, tick in self._data.ticks.items() if tick.outcome != RUNNING}
        return before - len(self._data.ticks) + super().prune(retention, now_us)


class FoldsCase(Broken):
    def commit(self, batch):
        return super().commit(evolve(batch, jobs={job_id.lower(): job for job_id, job in batch.jobs.items()}))


class TakesEmptyTextsForNone(Broken):
    def commit(self, batch):
        states = {job_id: state._replace(last_error=state.last_error or None) for job_id, state in batch.states.items()}
        return super().commit(evolve(batch, states=states))


class Hurried(StoreConformance):
    """The suite, without the time that it takes to find the smallest example."""

    random_batches = settings(StoreConformance.random_batches, phases=[Phase.generate], derandomize=True, database=None)


def follow(rule, make_store):
    """Carry out one test of the suite as pytest would."""
    store = make_store()
    store.open(0, lambda: None)
    given = {"store": store, "make_store": make_store}
    test = getattr(Hurried(), rule)
    test(**{name: given[name] for name in inspect.signature(test).parameters})


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (CountsNoEpochs, "test_an_epoch_is_larger_with_each_opening"),
        (LetsTwoCommit, "test_of_two_that_have_it_open_one_can_commit"),
        (LosesStatesOfReplacedJobs, "test_a_job_is_replaced_as_a_whole_and_keeps_its_state"),
        (RemovesTicksWithTheirJob, "test_a_removed_job_takes_its_state_with_it_and_leaves_its_ticks"),
        (MarksBeforeItEnds, "test_an_end_comes_before_the_mark_of_the_next_attempt"),
        (TellsOfNothingRefused, "test_a_missed_tick_comes_before_its_mark"),
        (StopsAtWhatIsRefused, "test_what_is_refused_or_stale_keeps_nothing_else_from_being_done"),
        (TellsOfItsOwnWrites, "test_what_was_written_through_this_store_is_no_change"),
        (ReadsTheOldestFirst, "test_at_most_so_many"),
        (ForgetsWhatRuns, "test_running_ticks_stay"),
        (FoldsCase, "test_ids_that_look_alike_are_different_jobs"),
        (MarksBeforeItEnds, "test_it_does_what_the_reference_does"),
        (TakesEmptyTextsForNone, "test_an_empty_text_is_one"),
    ],
)
def test_the_suite_tells_a_broken_store_from_a_store(broken, rule):
    """The rule that it breaks fails for it, and holds for the reference."""
    follow(rule, MemoryStore().another)
    with pytest.raises((AssertionError, ExceptionGroup, pytest.fail.Exception)):
        follow(rule, broken().another)

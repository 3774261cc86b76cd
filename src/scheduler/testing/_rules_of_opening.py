from __future__ import annotations

import threading

import pytest

from ..stores import Batch, Store, StoreUnavailable, StoreUnusable
from ._store_fixtures import StoreFixtures
from ._store_rows import START_US, MakeStore, end, everything_in, job, jobs_of, mark, no_hint


class RulesOfOpening(StoreFixtures):
    def test_an_epoch_is_larger_with_each_opening(self, make_store: MakeStore) -> None:
        epochs = []
        for _ in range(3):
            store = make_store()
            epochs.append(store.open(START_US, no_hint).epoch)
            store.close()
        first = epochs[0]
        assert epochs == [first, first + 1, first + 2]

    def test_the_instance_stays_what_it_is(self, make_store: MakeStore) -> None:
        instances = set()
        for _ in range(3):
            store = make_store()
            instances.add(store.open(START_US, no_hint).instance)
            store.close()
        assert len(instances) == 1
        assert all(instances)

    def test_a_store_that_was_closed_can_be_opened_again(self, make_store: MakeStore) -> None:
        store = make_store()
        first = store.open(START_US, no_hint)
        store.commit(Batch(jobs={"a": job()}))
        store.close()
        again = store.open(START_US, no_hint)
        assert again.epoch == first.epoch + 1
        assert jobs_of(store) == {"a": (job(), None)}
        store.close()

    def test_closing_twice_is_harmless(self, make_store: MakeStore) -> None:
        store = make_store()
        store.close()
        store.open(START_US, no_hint)
        store.close()
        store.close()

    def test_whether_it_is_immediate_is_known_before_it_is_open(self, make_store: MakeStore) -> None:
        assert make_store().is_immediate in {True, False}

    def test_an_empty_store_holds_nothing(self, store: Store) -> None:
        assert everything_in(store) == ({}, {}, [], [], [])
        assert list(store.load()) == []

    def test_of_two_that_have_it_open_one_can_commit(self, make_store: MakeStore) -> None:
        """The second cannot open it, or the first fails at its next commit."""
        first, second = make_store(), make_store()
        first.open(START_US, no_hint)
        try:
            second.open(START_US, no_hint)
        except (StoreUnavailable, StoreUnusable):
            first.commit(Batch(jobs={"a": job()}))
            assert list(jobs_of(first)) == ["a"]
        else:
            with pytest.raises(StoreUnusable):
                first.commit(Batch(jobs={"a": job()}))
            second.commit(Batch(jobs={"b": job("b")}))
            assert list(jobs_of(second)) == ["b"]
        finally:
            first.close()
            second.close()

    def test_what_was_committed_is_there_without_a_close(self, make_store: MakeStore) -> None:
        dead = make_store()
        dead.open(START_US, no_hint)
        dead.commit(Batch(jobs={"a": job()}, marks=[mark(fence=1)]))
        store = make_store()
        try:
            store.open(START_US, no_hint)
        except (StoreUnavailable, StoreUnusable):  # it sees that the other lives
            dead.close()
            store.open(START_US, no_hint)
        assert store.running() == [mark(fence=1)]
        assert jobs_of(store) == {"a": (job(), None)}
        store.close()
        dead.close()

    def test_history_may_be_read_from_another_thread_at_any_time(self, store: Store) -> None:
        lengths: list[int] = []
        troubles: list[BaseException] = []
        is_over, has_read = threading.Event(), threading.Event()

        def read() -> None:
            try:
                while not is_over.is_set():
                    lengths.append(len(store.history(limit=1_000)))
                    has_read.set()
            except BaseException as exc:  # noqa: BLE001 - a thread's error would be lost
                troubles.append(exc)
                has_read.set()

        reader = threading.Thread(target=read)
        reader.start()
        has_read.wait()
        for number in range(50):
            marks = [mark(job_id, number, fence=1) for job_id in ("a", "b")]
            store.commit(Batch(ended=[end(tick) for tick in marks]))
        is_over.set()
        reader.join()
        assert troubles == []
        assert {length % 2 for length in lengths} == {0}
        assert lengths == sorted(lengths)

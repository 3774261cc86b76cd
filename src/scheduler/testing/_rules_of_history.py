from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest
from attrs import evolve

from .._values import EVERYTHING, Outcome, scope_of_job
from ..stores import Batch, MadeChanges, Retention, Store, StoredChange, StoredPause, StoredTick, capabilities
from ._store_fixtures import StoreFixtures
from ._store_rows import ALL_RECORDS, due_at, end, history_of, mark, missed, prune_all

NO_BOUND = Retention(per_job=None, age=None, total_bytes=None, changes=None)


def ends(job_id: str, *seconds: int, **others: str) -> list[StoredTick]:
    return [end(mark(job_id, second, fence=1), Outcome.FAILED, **others) for second in seconds]


class RulesOfHistory(StoreFixtures):
    def test_the_latest_come_first(self, store: Store) -> None:
        done = ends("a", 3, 1, 5)
        store.commit(Batch(ended=done, missed=[missed("a", 4)], marks=[mark("b", 6, fence=2)]))
        assert [(tick.job_id, tick.due_us) for tick in store.history()] == [
            ("b", due_at(6)),
            ("a", due_at(5)),
            ("a", due_at(4)),
            ("a", due_at(3)),
            ("a", due_at(1)),
        ]

    def test_of_one_job(self, store: Store) -> None:
        store.commit(Batch(ended=[*ends("a", 1, 2), *ends("b", 1, 3)]))
        assert store.history("b") == ends("b", 3, 1)
        assert store.history("c") == []

    def test_at_most_so_many(self, store: Store) -> None:
        store.commit(Batch(ended=ends("a", *range(150))))
        assert store.history("a", limit=2) == store.history(limit=2) == ends("a", 149, 148)
        assert store.history("a") == store.history() == ends("a", *range(149, 49, -1))
        assert store.history("a", limit=ALL_RECORDS) == ends("a", *range(149, -1, -1))

    @pytest.mark.parametrize("job_id", ["a", None])
    def test_those_due_before_an_instant(self, store: Store, job_id: str | None) -> None:
        store.commit(Batch(ended=ends("a", *range(5))))
        page = store.history(job_id, limit=2)
        assert page == ends("a", 4, 3)
        page = store.history(job_id, limit=2, before_us=page[-1].due_us)
        assert page == ends("a", 2, 1)
        assert store.history(job_id, limit=2, before_us=page[-1].due_us) == ends("a", 0)
        assert store.history(job_id, before_us=due_at(0)) == []


class RulesOfPruning(StoreFixtures):
    def test_without_bounds_nothing_is_forgotten(self, store: Store) -> None:
        store.commit(Batch(ended=ends("a", *range(10))))
        assert store.prune(NO_BOUND, due_at(10**9)) == 0
        assert history_of(store) == ends("a", *range(10))

    def test_by_count(self, store: Store) -> None:
        store.commit(Batch(ended=[*ends("a", 5, 1, 4, 2, 3), *ends("b", 1, 2), *ends("c", 9)]))
        retention = Retention(per_job=2, age=None, total_bytes=None)
        assert sum(prune_all(store, retention, due_at(10))) == len((1, 2, 3))
        assert store.history("a") == ends("a", 5, 4)
        assert store.history("b") == ends("b", 2, 1)
        assert store.history("c") == ends("c", 9)

    def test_by_age(self, store: Store) -> None:
        store.commit(Batch(ended=[*ends("a", 1, 2, 3), *ends("b", 2, 10)], missed=[missed("c", 1), missed("c", 9)]))
        retention = Retention(per_job=None, age=6.0, total_bytes=None)
        assert sum(prune_all(store, retention, due_at(9))) == len(("a1", "a2", "b2", "c1"))
        assert history_of(store) == [*ends("a", 3), missed("c", 9), *ends("b", 10)]

    def test_age_begins_at_the_end_and_without_one_at_the_due_instant(self, store: Store) -> None:
        long = ends("a", 0)[0]._replace(ended_us=due_at(100))
        store.commit(Batch(ended=[long, *ends("a", 1)], missed=[missed("b", 2)._replace(ended_us=None)]))
        assert sum(prune_all(store, Retention(per_job=None, age=50.0, total_bytes=None), due_at(120))) == len(
            ("a1", "b2")
        )
        assert history_of(store) == [long]

    @pytest.mark.parametrize("column", ["trace", "waited"])
    def test_by_bytes(self, store: Store, column: str) -> None:
        texts = ["".join(sha256(f"{tick} {part}".encode()).hexdigest() for part in range(200)) for tick in range(100)]
        total = sum(map(len, texts))
        for number, text in enumerate(texts):
            store.commit(Batch(ended=ends("ab"[number % 2], number, **{column: text})))
        assert store.prune(Retention(per_job=None, age=None, total_bytes=total * 20), due_at(100)) == 0
        gone = sum(prune_all(store, Retention(per_job=None, age=None, total_bytes=total // 2), due_at(100)))
        left = history_of(store)
        assert [tick.due_us for tick in left] == [due_at(number) for number in range(gone, len(texts))]
        assert 0 < sum(len(tick.trace or tick.waited or "") for tick in left) < total

    def test_running_ticks_stay(self, store: Store) -> None:
        """They count for no bound."""
        running = [mark("a", second, fence=second) for second in range(5)]
        store.commit(Batch(marks=running, ended=ends("a", 5, 6)))
        prune_all(store, Retention(per_job=1, age=None, total_bytes=None), due_at(7))
        assert history_of(store) == [*running, *ends("a", 6)]
        prune_all(store, Retention(per_job=1, age=1.0, total_bytes=1), due_at(10**9))
        assert history_of(store) == running

    def test_what_is_owed_stays(self, store: Store) -> None:
        """No other row knows of it."""
        owed = [tick._replace(owed=True) for tick in ends("a", *range(5))]
        store.commit(Batch(ended=[*owed, *ends("a", 5, 6)]))
        prune_all(store, Retention(per_job=1, age=None, total_bytes=None), due_at(7))
        assert history_of(store) == [*owed, *ends("a", 6)]
        prune_all(store, Retention(per_job=1, age=1.0, total_bytes=1), due_at(10**9))
        assert history_of(store) == owed

    def test_some_of_it_at_a_time(self, store: Store) -> None:
        for part in range(3):
            store.commit(Batch(ended=ends("a", *range(part * 10_000, part * 10_000 + 10_000))))
        retention = Retention(per_job=10, age=None, total_bytes=None)
        counts = prune_all(store, retention, due_at(0))
        assert sum(counts) == 3 * 10_000 - 10
        assert len(counts) > 1
        assert store.history("a", limit=ALL_RECORDS) == ends("a", *range(29_999, 29_989, -1))

    def test_a_tick_whose_record_was_pruned_may_be_marked_and_may_end(self, store: Store) -> None:
        store.commit(Batch(ended=ends("a", 1, 2)))
        prune_all(store, Retention(age=1.0), due_at(10))
        assert history_of(store) == []
        again = mark("a", 1, fence=9)
        assert store.commit(Batch(marks=[again], ended=ends("a", 2))).refused == ()
        assert history_of(store) == [again, *ends("a", 2)]


def change(number: int, scope: str = EVERYTHING, **others: Any) -> StoredChange:
    return StoredChange(number, due_at(number), "pause", scope)._replace(**others)


class RulesOfMadeChanges(StoreFixtures):
    """For stores that keep who changed what."""

    @pytest.fixture
    def made(self, store: Store) -> MadeChanges:
        """The store's changes."""
        found = capabilities(store).made_changes
        if found is None:
            pytest.skip("this store keeps no changes")
        return found

    def test_changes_come_back_latest_first(self, store: Store, made: MadeChanges) -> None:
        whole = change(3, "tag:\u00e4", actor="ann", reason="new disks", before="{}", after='{"reason": "x"}')
        store.commit(Batch(pauses={EVERYTHING: StoredPause(EVERYTHING, "x", 0)}, made=[change(1), whole, change(2)]))
        assert made.read() == [whole, change(2), change(1)]
        assert made.read(limit=1) == [whole]
        assert made.read(before_us=due_at(3)) == [change(2), change(1)]

    def test_changes_of_one_job_or_by_one_actor(self, store: Store, made: MadeChanges) -> None:
        first, second = change(1, scope_of_job("a")), change(2, scope_of_job("b"), actor="ann")
        store.commit(Batch(made=[first, second, change(3)]))
        assert made.read(scope=scope_of_job("a")) == [first]
        assert made.read(actor="ann") == [second]
        assert made.read(scope=scope_of_job("a"), actor="ann") == []

    def test_a_repeated_change_is_there_once(self, store: Store, made: MadeChanges) -> None:
        for _ in range(2):
            store.commit(Batch(made=[change(1)]))
        assert made.read() == [change(1)]

    def test_changes_are_forgotten_by_number_and_age(self, store: Store, made: MadeChanges) -> None:
        changes = [change(number) for number in range(1, 11)]
        store.commit(Batch(made=changes))
        assert prune_all(store, NO_BOUND, due_at(10**9)) == []
        assert sum(prune_all(store, evolve(NO_BOUND, changes=4), due_at(10))) == len(changes) - 4
        assert made.read() == changes[:5:-1]
        assert sum(prune_all(store, evolve(NO_BOUND, age=1.5), due_at(10))) == len((7, 8))
        assert made.read() == changes[:7:-1]

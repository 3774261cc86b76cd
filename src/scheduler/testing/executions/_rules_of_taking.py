from __future__ import annotations

import pytest

from ...stores import (
    DONE,
    PENDING,
    SCHEDULED,
    SKIPPED,
    SUPERSEDED,
    TAKEN,
    Batch,
    Fetched,
    NotTaken,
    StoredState,
    StoreTakenOver,
    Taken,
)
from .._store_rows import MakeStore, due_at, end, job, mark
from ._rows import ExecutingStore, ExecutionFixtures, another, by_job, plan, planned, put, statuses

A = ("a", due_at(60))


class RulesOfTaking(ExecutionFixtures):
    def test_what_is_taken_comes_with_its_job(self, store: ExecutingStore) -> None:
        plan(store, planned("a"), planned("b"))
        store.commit(Batch(placed=[put("a")]))
        answers = store.executions.take([("b", due_at(60)), A])
        assert answers == [Taken(job(id), StoredState(id, next_us=due_at(60))) for id in "ba"]
        assert statuses(store, "a") == statuses(store, "b") == [(60, TAKEN)]

    def test_what_is_pending_may_be_taken(self, store: ExecutingStore) -> None:
        """The queue was quicker than the commit with its position."""
        plan(store, planned())
        store.executions.take([A])
        store.commit(Batch(placed=[put(number=7)]))
        (row,) = store.executions.of_job("a")
        assert (row.status, row.number) == (TAKEN, 7)

    def test_taking_again_is_answered_again(self, store: ExecutingStore) -> None:
        plan(store, planned())
        assert store.executions.take([A]) == store.executions.take([A])

    def test_what_we_have_is_known(self, store: ExecutingStore) -> None:
        plan(store, planned("a"), planned("b"), planned("c"))
        store.executions.take([A])
        store.executions.fetch(["b"], due_at(7))
        assert {(row.job_id, row.due_us) for row in store.executions.taken()} == {A, ("b", due_at(7))}
        store.commit(Batch(released={"a": due_at(60)}))
        assert [row.job_id for row in store.executions.taken()] == ["b"]

    def test_a_job_is_fetched_out_of_its_turn(self, store: ExecutingStore) -> None:
        plan(store, planned("a"), planned("b"))
        store.commit(Batch(placed=[put("a")]))
        now_us = due_at(7)
        one, two, gone = store.executions.fetch(["a", "b", "nobody"], now_us)
        assert isinstance(one, Fetched)
        assert isinstance(two, Fetched)
        assert gone is NotTaken.UNKNOWN
        assert (one.taken, one.due_us) == (Taken(job("a"), StoredState("a", next_us=due_at(60))), now_us)
        assert one.live is not None
        assert (one.live.due_us, one.live.status, one.live.number) == (due_at(60), SCHEDULED, 1)
        assert store.executions.fetch(["b", "a"], due_at(8)) == [two, one]
        assert store.executions.take([A]) == [NotTaken.RUNNING]
        store.commit(Batch(released={"a": now_us}, planned=by_job(planned("a", 90))))
        assert statuses(store) == [(7, DONE), (60, SUPERSEDED), (90, PENDING)]

    def test_a_job_that_has_nothing_live_is_fetched_too(self, store: ExecutingStore) -> None:
        plan(store, planned(seconds=None))
        (found,) = store.executions.fetch(["a"], due_at(7))
        assert isinstance(found, Fetched)
        assert found.live is None

    def test_a_job_that_an_agent_has_is_not_fetched(self, store: ExecutingStore, make_store: MakeStore) -> None:
        """After that node's death it comes with its cut-off ticks."""
        plan(store, planned())
        store.executions.take([A])
        store.commit(Batch(marks=[mark("a", 60, fence=1)], planned=by_job(planned(seconds=120))))
        with another(make_store) as other:
            (found,) = other.executions.fetch(["a"], due_at(70))
            assert isinstance(found, Fetched)
            assert [tick.due_us for tick in found.taken.running] == [due_at(60)]
            assert statuses(other) == [(60, DONE), (70, TAKEN), (120, PENDING)]

    def test_what_is_not_live_is_not_taken(self, store: ExecutingStore) -> None:
        plan(store, planned())
        store.commit(Batch(planned=by_job(planned(seconds=90))))
        store.commit(Batch(planned=by_job(planned(seconds=120, skips=True))))
        ticks = [("a", due_at(seconds)) for seconds in (60, 90, 7)]
        assert store.executions.take([*ticks, ("nobody", due_at(60))]) == [
            NotTaken.SUPERSEDED,
            NotTaken.SKIPPED,
            NotTaken.UNKNOWN,
            NotTaken.UNKNOWN,
        ]
        assert statuses(store)[1:] == [(90, SKIPPED), (120, PENDING)]

    def test_a_job_that_is_gone_is_not_taken(self, store: ExecutingStore) -> None:
        plan(store, planned())
        store.commit(Batch(jobs={"a": None}))
        assert store.executions.take([A]) == [NotTaken.UNKNOWN]

    def test_a_job_is_taken_once(self, store: ExecutingStore) -> None:
        plan(store, planned(seconds=60))
        store.executions.take([A])
        store.commit(Batch(planned=by_job(planned(seconds=120))))
        assert store.executions.take([("a", due_at(120))]) == [NotTaken.RUNNING]
        assert statuses(store) == [(60, TAKEN), (120, PENDING)]

    def test_of_two_ticks_of_a_job_one_is_taken(self, store: ExecutingStore) -> None:
        plan(store, planned(seconds=60))
        store.executions.take([A])
        store.commit(Batch(planned=by_job(planned(seconds=120))))
        assert isinstance(store.executions.take([A, ("a", due_at(120))])[0], Taken)

    def test_what_is_released_is_done(self, store: ExecutingStore) -> None:
        """Only the last done execution is known."""
        plan(store, planned(seconds=60))
        store.executions.take([A])
        store.commit(Batch(released={"a": due_at(60)}, planned=by_job(planned(seconds=120))))
        assert store.executions.take([A]) == [NotTaken.DONE]
        store.executions.take([("a", due_at(120))])
        batch = Batch(released={"a": due_at(120)}, planned=by_job(planned(seconds=180)))
        store.commit(batch)
        store.commit(batch)
        assert statuses(store) == [(120, DONE), (180, PENDING)]

    def test_a_release_that_is_repeated_leaves_what_was_taken_since(self, store: ExecutingStore) -> None:
        plan(store, planned(seconds=60))
        store.executions.take([A])
        batch = Batch(released={"a": due_at(60)}, planned=by_job(planned(seconds=120)))
        store.commit(batch)
        store.executions.take([("a", due_at(120))])
        store.commit(batch)
        store.commit(Batch(released={"a": None}))
        assert statuses(store) == [(60, DONE), (120, TAKEN)]

    def test_what_is_planned_again_with_its_release_is_live(self, store: ExecutingStore) -> None:
        """Its node stops before it began."""
        plan(store, planned(seconds=60))
        store.commit(Batch(placed=[put()]))
        store.executions.take([A])
        store.commit(Batch(released={"a": due_at(60)}, planned=by_job(planned(seconds=60))))
        assert statuses(store) == [(60, PENDING)]

    def test_a_job_of_an_agent_that_has_died_is_taken(self, store: ExecutingStore, make_store: MakeStore) -> None:
        plan(store, planned(seconds=60))
        store.executions.take([A])
        first, second = mark(seconds=60, fence=1), mark(seconds=120, fence=2)
        store.commit(Batch(marks=[first, second]))
        store.commit(Batch(ended=[end(second, owed=True)]))
        with another(make_store) as other:
            (answer,) = other.executions.take([A])
            assert isinstance(answer, Taken)
            assert [tick.due_us for tick in answer.running] == [due_at(60)]
            assert [tick.due_us for tick in answer.owed] == [due_at(120)]

    def test_the_next_execution_ends_one_that_was_cut_off(self, store: ExecutingStore, make_store: MakeStore) -> None:
        plan(store, planned(seconds=60))
        store.executions.take([A])
        store.commit(Batch(marks=[mark(seconds=60, fence=1)], planned=by_job(planned(seconds=120))))
        with another(make_store) as other:
            (answer,) = other.executions.take([("a", due_at(120))])
            assert isinstance(answer, Taken)
            assert [tick.due_us for tick in answer.running] == [due_at(60)]
            assert statuses(other) == [(60, DONE), (120, TAKEN)]
            assert other.executions.take([A]) == [NotTaken.DONE]

    def test_who_has_been_taken_over_takes_nothing(self, store: ExecutingStore, make_store: MakeStore) -> None:
        plan(store, planned(seconds=60))
        store.commit(Batch(placed=[put()]))
        with another(make_store) as other:
            with pytest.raises(StoreTakenOver):
                store.executions.take([A])
            assert statuses(other) == [(60, SCHEDULED)]

    def test_what_others_have_taken_is_not_ours_to_release(self, store: ExecutingStore, make_store: MakeStore) -> None:
        plan(store, planned(seconds=60))
        store.executions.take([A])
        with another(make_store) as other:
            other.commit(Batch(released={"a": due_at(60)}))
            assert statuses(other) == [(60, TAKEN)]

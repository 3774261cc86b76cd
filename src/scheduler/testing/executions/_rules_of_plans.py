from __future__ import annotations

from ...stores import DONE, PENDING, SCHEDULED, SKIPPED, SUPERSEDED, Batch
from .._store_rows import START_US, due_at, end, job, mark
from ._rows import EVER, ExecutingStore, ExecutionFixtures, by_job, in_line, keys, plan, planned, put, statuses


class RulesOfPlans(ExecutionFixtures):
    def test_what_is_planned_is_pending(self, store: ExecutingStore) -> None:
        plan(store, planned(next_due_us=due_at(120)))
        (row,) = store.executions.of_job("a")
        assert row == store.executions.waiting(PENDING, before_us=EVER)[0]
        assert row[:6] == ("a", due_at(60), PENDING, job().schedule, START_US, due_at(120))
        assert row[6:] == (None, None, None, None)

    def test_the_labels_that_jobs_ask_for_are_told(self, store: ExecutingStore) -> None:
        texts = {"a": '{"where": "region=eu"}', "b": '{"needs": {"where": 1}}', "c": "{}", "d": '{"where"'}
        store.commit(Batch(jobs={id: job(id)._replace(options=text) for id, text in texts.items()}))
        assert store.executions.wheres([*texts, "gone"]) == {"a": "region=eu"}
        assert store.executions.wheres([]) == {}

    def test_what_is_placed_is_scheduled(self, store: ExecutingStore) -> None:
        plan(store, planned())
        store.commit(Batch(placed=[put(number=7)]))
        (row,) = store.executions.of_job("a")
        assert (row.status, row.instance, row.number, row.put_us) == (SCHEDULED, "server-1", 7, START_US + 5)
        assert in_line(store, PENDING) == []

    def test_there_is_one_live_execution_of_a_job(self, store: ExecutingStore) -> None:
        plan(store, planned(seconds=60))
        store.commit(Batch(placed=[put(number=7)]))
        receipt = plan(store, planned(seconds=90))
        assert [(row.due_us, row.instance, row.number) for row in receipt.gone] == [(due_at(60), "server-1", 7)]
        assert statuses(store) == [(60, SUPERSEDED), (90, PENDING)]

    def test_what_is_planned_again_stays_where_it_stands(self, store: ExecutingStore) -> None:
        plan(store, planned())
        store.commit(Batch(placed=[put(number=7)]))
        receipt = store.commit(Batch(planned=by_job(planned(schedule="@every 7d", next_due_us=due_at(70)))))
        (row,) = store.executions.of_job("a")
        assert receipt.gone == ()
        assert (row.status, row.number, row.schedule, row.next_due_us) == (SCHEDULED, 7, "@every 7d", due_at(70))

    def test_a_plan_for_none_leaves_none(self, store: ExecutingStore) -> None:
        plan(store, planned())
        receipt = store.commit(Batch(planned=by_job(planned(seconds=None))))
        assert keys(receipt.gone) == [("a", 60)]
        assert statuses(store) == [(60, SUPERSEDED)]

    def test_what_is_skipped_says_so(self, store: ExecutingStore) -> None:
        plan(store, planned())
        store.commit(Batch(planned=by_job(planned(seconds=120, skips=True))))
        assert statuses(store) == [(60, SKIPPED), (120, PENDING)]

    def test_what_has_a_record_is_done(self, store: ExecutingStore) -> None:
        """Its node began it before it came out of the queue."""
        plan(store, planned())
        store.commit(Batch(marks=[mark(seconds=60, fence=1)], planned=by_job(planned(seconds=120))))
        assert statuses(store) == [(60, DONE), (120, PENDING)]

    def test_one_that_gave_way_may_come_back(self, store: ExecutingStore) -> None:
        plan(store, planned(seconds=60))
        store.commit(Batch(placed=[put(number=7)]))
        store.commit(Batch(planned=by_job(planned(seconds=90))))
        store.commit(Batch(planned=by_job(planned(seconds=60))))
        assert statuses(store) == [(60, PENDING), (90, SUPERSEDED)]
        assert store.executions.waiting(PENDING, before_us=EVER)[0].number is None

    def test_nothing_is_planned_for_a_job_that_is_not_there(self, store: ExecutingStore) -> None:
        store.commit(Batch(planned=by_job(planned("gone"))))
        assert store.executions.of_job("gone") == []

    def test_what_gave_way_cannot_be_placed(self, store: ExecutingStore) -> None:
        plan(store, planned(seconds=60))
        store.commit(Batch(planned=by_job(planned(seconds=90))))
        store.commit(Batch(placed=[put(seconds=60, number=7)]))
        assert statuses(store) == [(60, SUPERSEDED), (90, PENDING)]

    def test_what_is_lost_is_pending_again(self, store: ExecutingStore) -> None:
        """Unless it has another position since."""
        plan(store, planned("a"), planned("b"))
        store.commit(Batch(placed=[put("a", number=7), put("b", number=8)]))
        store.commit(Batch(lost=[put("a", number=7), put("b", number=7)]))
        assert in_line(store, PENDING) == ["a"]
        assert in_line(store, SCHEDULED) == ["b"]

    def test_those_that_wait_come_in_pages(self, store: ExecutingStore) -> None:
        plan(store, *(planned(id, seconds) for id, seconds in (("c", 1), ("b", 2), ("a", 2), ("d", 3), ("e", 4))))
        first = store.executions.waiting(PENDING, before_us=due_at(4), limit=2)
        rest = store.executions.waiting(PENDING, before_us=due_at(4), after=(first[-1].due_us, first[-1].job_id))
        assert [row.job_id for row in (*first, *rest)] == ["c", "a", "b", "d"]

    def test_a_repeated_batch_changes_nothing(self, store: ExecutingStore) -> None:
        plan(store, planned("a", 60), planned("b", 60))
        marks = [mark("b", 60, fence=1)]
        batch = Batch(placed=[put("a", number=7)], marks=marks, planned=by_job(planned("a", 60), planned("b", 120)))
        store.commit(batch)
        before = [store.executions.of_job(id) for id in "ab"]
        again = store.commit(batch)
        assert (again.refused, again.stale) == ((), ())
        assert [store.executions.of_job(id) for id in "ab"] == before
        store.commit(Batch(ended=[end(marks[0])]))
        assert [store.executions.of_job(id) for id in "ab"] == before

from __future__ import annotations

import pytest

from .._values import MissedReason, Outcome
from ..stores import RUNNING, Batch, Receipt, Store, StoredJob, StoredState, StoredTick
from ._store_fixtures import StoreFixtures
from ._store_rows import (
    START_US,
    MakeStore,
    due_at,
    end,
    everything_in,
    history_of,
    job,
    jobs_of,
    mark,
    missed,
    no_hint,
)

OUTCOMES = [outcome for outcome in Outcome if outcome is not Outcome.MISSED]
ROWS_IN_A_LARGE_BATCH = 10_000

_RUN = mark(fence=5, attempt=2)
_ENDED = end(_RUN, Outcome.FAILED)
_MISSED = missed()

RECORDS = {
    "none": None,
    "running": _RUN,
    "failed": _ENDED,
    "succeeded": end(_RUN),
    "crashed": end(_RUN, Outcome.CRASHED),
    "missed": _MISSED,
}
"""Records that a tick may have. The runs are second attempts with fence 5."""

ACCEPTED_MARKS = {
    ("none", 1, 6),
    ("none", 3, 4),
    ("running", 1, 5),
    ("running", 2, 5),
    ("running", 3, 5),
    *((outcome, attempt, 5) for outcome in ("failed", "succeeded", "crashed") for attempt in (1, 2, 3)),
    *((outcome, 3, fence) for outcome in ("failed", "succeeded", "crashed") for fence in (4, 6)),
    ("none", 1, 4),
    ("none", 2, 4),
    ("none", 2, 6),
    ("none", 3, 6),
    *(("none", attempt, 5) for attempt in (1, 2, 3)),
}
"""(record, attempt, fence): a mark with this attempt and fence replaces this record."""


def put(store: Store, record: StoredTick | None) -> None:
    if record is None:
        return
    if record.outcome == RUNNING:
        store.commit(Batch(marks=[record]))
    elif record.outcome == Outcome.MISSED.value:
        store.commit(Batch(missed=[record]))
    else:
        store.commit(Batch(ended=[record]))
    assert history_of(store) == [record]


class RulesOfTicks(StoreFixtures):
    @pytest.mark.parametrize("fence", [4, 5, 6])
    @pytest.mark.parametrize("attempt", [1, 2, 3])
    @pytest.mark.parametrize("before", RECORDS)
    def test_a_mark_takes_the_place_of_nothing_of_an_earlier_attempt_or_of_itself(
        self, store: Store, before: str, attempt: int, fence: int
    ) -> None:
        """Any other mark is refused: another run has or had the tick."""
        put(store, RECORDS[before])
        new = mark(attempt=attempt, fence=fence)._replace(started_us=due_at(99))
        receipt = store.commit(Batch(marks=[new]))
        if (before, attempt, fence) in ACCEPTED_MARKS:
            assert receipt == Receipt()
            assert store.running() == history_of(store) == [new]
        else:
            assert receipt == Receipt(refused=(new,))
            assert history_of(store) == [RECORDS[before]]

    @pytest.mark.parametrize("fence", [4, 5, 6])
    @pytest.mark.parametrize("before", RECORDS)
    def test_an_end_takes_the_place_of_its_own_mark_or_of_nothing(self, store: Store, before: str, fence: int) -> None:
        """An end with another fence is stale. A record may have been pruned."""
        put(store, RECORDS[before])
        new = end(mark(attempt=2, fence=fence), Outcome.TIMED_OUT, error="new")
        receipt = store.commit(Batch(ended=[new]))
        if before == "none" or (fence == 5 and before != "missed"):  # noqa: PLR2004 - the fence of RECORDS
            assert receipt == Receipt()
            assert history_of(store) == [new]
            assert store.running() == []
        else:
            assert receipt == Receipt(stale=(new,))
            assert history_of(store) == [RECORDS[before]]

    @pytest.mark.parametrize("before", RECORDS)
    def test_a_missed_tick_is_recorded_unless_it_has_a_record(self, store: Store, before: str) -> None:
        put(store, RECORDS[before])
        new = missed()._replace(reason=MissedReason.OVERLAP.value)
        assert store.commit(Batch(missed=[new])) == Receipt()
        assert history_of(store) == [RECORDS[before] or new]

    def test_a_tick_is_one_of_a_job_and_an_instant(self, store: Store) -> None:
        first = mark("a", fence=1)
        others = [mark("b", fence=1), mark("a", 1, fence=1)]
        store.commit(Batch(marks=[first]))
        assert store.commit(Batch(marks=others)) == Receipt()
        assert sorted(store.running()) == sorted([first, *others])

    def test_a_tick_needs_no_job(self, store: Store) -> None:
        done = end(mark("gone", fence=1))
        store.commit(Batch(ended=[done]))
        assert store.history("gone") == [done]
        assert jobs_of(store) == {}

    @pytest.mark.parametrize("outcome", OUTCOMES)
    def test_a_record_comes_back_as_it_was_put(self, store: Store, outcome: Outcome) -> None:
        tick = StoredTick(
            "a",
            due_at(0),
            3,
            2**40,
            outcome.value,
            due_at(1),
            due_at(2),
            -1 / 3,
            "E: 'x'",
            "line\n  line\n",
            "why",
            7,
            due_at(9),
            '{"b": 1, "a": ["\u00fc", 1.0]}',
            owed=True,
            waited='{"at":0,"limit":"db","size":1,"held":[]}',
        )
        store.commit(Batch(ended=[tick]))
        found = history_of(store)
        assert found == [tick]
        assert list(map(type, found[0])) == list(map(type, tick))

    def test_missed_ticks_in_a_row_are_one_record(self, store: Store) -> None:
        late = Outcome.MISSED.value
        tick = StoredTick(
            "a", due_at(0), 1, 0, late, None, due_at(9), 9.0, None, None, MissedReason.LATE.value, 10, due_at(9)
        )
        store.commit(Batch(missed=[tick]))
        assert history_of(store) == [tick]

    @pytest.mark.parametrize(
        "odd", ["\0", "\ud800", "\udcff\udc80", "\U0001f600", "'; --", "\r\n\x1b[31m", "\ufffe\uffff"]
    )
    def test_an_error_may_hold_any_text(self, store: Store, odd: str) -> None:
        """A store may replace characters that it cannot keep."""
        text = f"before {odd} after"
        tick = end(mark(fence=1), Outcome.FAILED, error=text, trace=text)
        state = StoredState("a", last_error=text)
        store.commit(Batch(jobs={"a": job()}, states={"a": state}, ended=[tick]))
        found = history_of(store)[0]
        (_, found_state) = jobs_of(store)["a"]
        assert found_state is not None
        for kept in (found.error, found.trace, found_state.last_error):
            assert kept is not None
            assert kept.startswith("before ")
            assert kept.endswith(" after")

    def test_a_long_trace_is_kept(self, store: Store) -> None:
        tick = end(mark(fence=1), Outcome.FAILED, trace="x\u00fc" * 50_000)
        store.commit(Batch(ended=[tick]))
        assert history_of(store) == [tick]

    def test_running_ticks_are_found_after_a_restart(self, make_store: MakeStore, store: Store) -> None:
        crashed = [mark("a", fence=1), mark("b", 5, fence=2, attempt=3)]
        store.commit(Batch(marks=[*crashed, mark("c", fence=3)]))
        store.commit(Batch(ended=[end(mark("c", fence=3))], missed=[missed("d")]))
        store.close()
        reopened = make_store()
        reopened.open(START_US, no_hint)
        assert sorted(reopened.running()) == sorted(crashed)
        reopened.commit(Batch(ended=[end(tick, Outcome.CRASHED) for tick in crashed]))
        assert reopened.running() == []
        reopened.close()

    def test_what_is_owed_is_found_until_it_is_tried_again(self, make_store: MakeStore, store: Store) -> None:
        owed = [end(mark("a", seconds, fence=seconds), Outcome.CRASHED, owed=True) for seconds in (1, 2)]
        store.commit(Batch(ended=[*owed, end(mark("b", fence=3))]))
        store.close()
        reopened = make_store()
        reopened.open(START_US, no_hint)
        assert sorted(reopened.owed()) == owed
        again = mark("a", 1, fence=4, attempt=2)
        assert reopened.commit(Batch(marks=[again])) == Receipt()
        assert reopened.owed() == owed[1:]
        assert reopened.running() == [again]
        reopened.close()

    def test_what_is_owed_is_given_up_by_an_end_with_its_fence(self, store: Store) -> None:
        owed = end(mark(fence=1), Outcome.CANCELLED, owed=True)
        store.commit(Batch(ended=[owed]))
        given_up = owed._replace(owed=False, error="given up")
        assert store.commit(Batch(ended=[given_up])) == Receipt()
        assert store.owed() == []
        assert history_of(store) == [given_up]


class RulesOfBatches(StoreFixtures):
    def test_an_empty_batch_does_nothing(self, store: Store) -> None:
        assert store.commit(Batch()) == Receipt()

    def test_an_end_comes_before_the_mark_of_the_next_attempt(self, store: Store) -> None:
        """Otherwise the mark would find the tick RUNNING and be refused."""
        first, second = mark(fence=1), mark(fence=2, attempt=2)
        store.commit(Batch(marks=[first]))
        assert store.commit(Batch(marks=[second], ended=[end(first, Outcome.FAILED)])) == Receipt()
        assert history_of(store) == store.running() == [second]

    def test_a_missed_tick_comes_before_its_mark(self, store: Store) -> None:
        """In one batch, the mark is refused."""
        start = mark(fence=1)
        assert store.commit(Batch(marks=[start], missed=[missed()])) == Receipt(refused=(start,))
        assert history_of(store) == [missed()]

    def test_an_end_comes_before_a_missed_tick(self, store: Store) -> None:
        done = end(mark(fence=1))
        store.commit(Batch(missed=[missed()], ended=[done]))
        assert history_of(store) == [done]

    def test_changes_of_one_kind_are_carried_out_in_their_order(self, store: Store) -> None:
        """The second mark of a tick is refused, the second end stale."""
        first, second = mark("a", fence=1), mark("a", fence=2, attempt=2)
        ends = [end(mark("b", fence=3)), end(mark("b", fence=4))]
        missed_twice = [missed("c"), missed("c")._replace(reason=MissedReason.OVERLAP.value)]
        batch = Batch(marks=[first, second], ended=ends, missed=missed_twice)
        assert store.commit(batch) == Receipt(refused=(second,), stale=(ends[1],))
        assert history_of(store) == [first, ends[0], missed_twice[0]]

    def test_a_job_is_put_together_with_its_first_mark(self, store: Store) -> None:
        batch = Batch(jobs={"a": job()}, states={"a": StoredState("a", runs=1)}, marks=[mark(fence=1)])
        assert store.commit(batch) == Receipt()
        assert jobs_of(store) == {"a": (job(), StoredState("a", runs=1))}
        assert store.running() == [mark(fence=1)]

    def test_a_job_is_removed_together_with_the_end_of_its_run(self, store: Store) -> None:
        store.commit(Batch(jobs={"a": job()}, marks=[mark(fence=1)]))
        done = end(mark(fence=1), Outcome.CANCELLED)
        store.commit(Batch(jobs={"a": None}, states={"a": StoredState("a", runs=1)}, ended=[done]))
        assert jobs_of(store) == {}
        assert history_of(store) == [done]

    def test_what_is_refused_or_stale_keeps_nothing_else_from_being_done(self, store: Store) -> None:
        store.commit(Batch(marks=[mark("a", fence=1), mark("b", fence=2)]))
        taken, stale = mark("a", fence=3), end(mark("b", fence=0))
        free, done = mark("c", fence=4), end(mark("d", fence=5))
        batch = Batch(jobs={"a": job()}, ended=[stale, done], missed=[missed("e")], marks=[taken, free])
        assert store.commit(batch) == Receipt(refused=(taken,), stale=(stale,))
        assert history_of(store) == [mark("a", fence=1), mark("b", fence=2), free, done, missed("e")]
        assert jobs_of(store) == {"a": (job(), None)}

    def test_the_same_batch_again_changes_nothing_and_has_the_same_answer(self, store: Store) -> None:
        store.commit(Batch(jobs={"b": job("b")}, marks=[mark("a", fence=1), mark("b", fence=2), mark("d", fence=3)]))
        batch = Batch(
            jobs={"a": job(), "b": None},
            states={"a": StoredState("a", runs=1), "b": StoredState("b", runs=1)},
            ended=[end(mark("a", fence=1)), end(mark("d", fence=0))],
            missed=[missed("e"), missed("d")],
            marks=[mark("b", fence=4), mark("c", fence=5)],
        )
        answer = store.commit(batch)
        assert answer == Receipt(refused=(mark("b", fence=4),), stale=(end(mark("d", fence=0)),))
        after = everything_in(store)
        assert store.commit(batch) == answer
        assert everything_in(store) == after

    def test_a_batch_with_an_end_and_the_next_mark_has_the_same_answer_when_repeated(self, store: Store) -> None:
        first, second = mark(fence=1), mark(fence=2, attempt=2)
        store.commit(Batch(marks=[first]))
        batch = Batch(ended=[end(first, Outcome.FAILED)], marks=[second])
        assert [store.commit(batch), store.commit(batch)] == [Receipt(), Receipt()]
        assert history_of(store) == [second]

    def test_a_batch_may_be_large(self, store: Store) -> None:
        ids = [f"job {number}" for number in range(ROWS_IN_A_LARGE_BATCH)]
        jobs: dict[str, StoredJob | None] = {job_id: job(job_id) for job_id in ids}
        marks = [mark(job_id, fence=number) for number, job_id in enumerate(ids)]
        states = {job_id: StoredState(job_id, runs=1) for job_id in ids}
        assert store.commit(Batch(jobs=jobs, marks=marks)) == Receipt()
        assert len(store.running()) == ROWS_IN_A_LARGE_BATCH
        ended = [end(tick) for tick in marks]
        assert store.commit(Batch(states=states, ended=ended)) == Receipt()
        assert store.running() == []
        assert {job_id: state for job_id, (_, state) in jobs_of(store).items()} == states
        assert sorted(history_of(store)) == sorted(ended)
        assert store.commit(Batch(jobs=dict.fromkeys(ids))) == Receipt()
        assert jobs_of(store) == {}

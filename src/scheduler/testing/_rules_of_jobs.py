from __future__ import annotations

import pytest

from .._values import EVERYTHING, Outcome
from ..stores import Batch, JobPause, Receipt, Store, StoredJob, StoredPause, StoredState
from ._store_fixtures import StoreFixtures
from ._store_rows import START_US, MakeStore, due_at, end, history_of, job, jobs_of, mark, no_hint, pauses_of

FULL_JOB = StoredJob(
    id="nightly/backup",
    task="shop.tasks:backup",
    schedule="cron 0 3 * * * Europe/Berlin",
    args='["disk", 1, 1.5, null, {"a": []}]',
    kwargs='{"b": 1, "a": "\\u00fc", "to": "sch\u00f6n \U0001f600"}',
    options='{"timeout": 30.0, "retry": {"attempts": 3}}',
    tags='["b", "a"]',
    name='Backup of "Bob\'s" 100 %',
    paused="by hand; --",
    paused_until_us=due_at(3_600),
)
FULL_STATE = StoredState(
    job_id=FULL_JOB.id,
    next_us=due_at(7),
    next_by_hand=True,
    retry_due_us=due_at(5),
    retry_attempt=2,
    retry_at_us=due_at(6),
    not_before_us=due_at(4),
    runs=2**40,
    successes=2**40 - 3,
    failures=2,
    timeouts=1,
    cancellations=1,
    missed=5,
    consecutive_failures=2,
    consecutive_crashes=1,
    total_duration=0.1 + 0.2,
    total_duration_failures=1e-9,
    lateness_sum=1e15 + 0.125,
    lateness_max=1 / 3,
    last_start_us=due_at(1),
    last_finish_us=due_at(2),
    last_success_us=due_at(-100),
    last_outcome=Outcome.TIMED_OUT.value,
    last_error="ValueError: 'x'\n\tand more",
    next_of="@every 10s",
    missed_is_exact=False,
)
MIDNIGHT = StoredPause("tag:Night shift", "an unplanned one", due_at(1), due_at(9))

SIMILAR_IDS = (
    "a",
    "A",
    "a ",
    " a",
    "a\t",
    "\u00e9",
    "e\u0301",
    "\u00df",
    "ss",
    "%",
    "_",
    "'",
    '"',
    "\\",
    "0",
    "00",
    "\U0001f600",
)
LARGEST_LIST = 2_000


class RulesOfJobs(StoreFixtures):
    def test_a_job_comes_back_as_it_was_put(self, make_store: MakeStore, store: Store) -> None:
        plain = job("plain")
        store.commit(Batch(jobs={FULL_JOB.id: FULL_JOB, "plain": plain}))
        assert jobs_of(store) == {FULL_JOB.id: (FULL_JOB, None), "plain": (plain, None)}
        store.close()
        reopened = make_store()
        reopened.open(START_US, no_hint)
        assert jobs_of(reopened) == {FULL_JOB.id: (FULL_JOB, None), "plain": (plain, None)}
        reopened.close()

    def test_a_state_comes_back_as_it_was_put(self, store: Store) -> None:
        plain = StoredState("plain")
        states = {FULL_JOB.id: FULL_STATE, "plain": plain}
        store.commit(Batch(jobs={FULL_JOB.id: FULL_JOB, "plain": job("plain")}, states=states))
        found = {job_id: state for job_id, (_, state) in jobs_of(store).items()}
        assert found == states
        for job_id, state in found.items():
            assert state is not None
            assert list(map(type, state)) == list(map(type, states[job_id]))

    def test_instants_of_ten_thousand_years_fit(self, store: Store) -> None:
        """Instants before 1970 fit too: clocks of tests begin anywhere."""
        ids = {"old": -62_135_596_800_000_000, "zero": 0, "far": 253_402_300_799_999_999}
        states = {job_id: StoredState(job_id, next_us=next_us) for job_id, next_us in ids.items()}
        store.commit(Batch(jobs={job_id: job(job_id) for job_id in ids}, states=states))
        assert [row[0].id for rows in store.load() for row in rows] == ["old", "zero", "far"]
        assert {job_id: row[1] for job_id, row in jobs_of(store).items()} == states

    def test_a_job_is_replaced_as_a_whole_and_keeps_its_state(self, store: Store) -> None:
        store.commit(Batch(jobs={FULL_JOB.id: FULL_JOB}, states={FULL_JOB.id: FULL_STATE}))
        store.commit(Batch(jobs={FULL_JOB.id: job(FULL_JOB.id)}))
        assert jobs_of(store) == {FULL_JOB.id: (job(FULL_JOB.id), FULL_STATE)}

    def test_a_pause_of_a_job_changes_its_two_columns_alone(self, store: Store) -> None:
        store.commit(Batch(jobs={"a": job("a", paused="before"), FULL_JOB.id: FULL_JOB}))
        store.commit(Batch(paused={"a": JobPause(), FULL_JOB.id: JobPause("a week's\nrest", due_at(7))}))
        later = FULL_JOB._replace(paused="a week's\nrest", paused_until_us=due_at(7))
        assert jobs_of(store) == {"a": (job("a"), None), FULL_JOB.id: (later, None)}
        assert not store.changes()

    def test_a_pause_of_a_job_that_is_gone_brings_it_not_back(self, store: Store) -> None:
        """It was removed before, or in this batch. A job put in this batch is paused."""
        store.commit(Batch(jobs={"a": job("a")}))
        pause = JobPause("a reason")
        store.commit(Batch(jobs={"a": None, "b": job("b")}, paused=dict.fromkeys(["a", "b", "c"], pause)))
        assert jobs_of(store) == {"b": (job("b", paused="a reason"), None)}

    def test_a_change_of_a_job_that_is_gone_brings_it_not_back(self, store: Store) -> None:
        """Another has removed it. A job that is there is replaced as a whole. A whole row is put in any case."""
        store.commit(Batch(jobs={"a": job("a"), FULL_JOB.id: FULL_JOB}, states={FULL_JOB.id: FULL_STATE}))
        store.commit(Batch(jobs={"a": None}))
        rows: dict[str, StoredJob | None] = {id: job(id, schedule="@every 5m") for id in ("a", "b", FULL_JOB.id)}
        batch = Batch(jobs=rows, changed={"a", FULL_JOB.id}, states={"a": StoredState("a", runs=1)})
        for _ in range(2):
            assert store.commit(batch) == Receipt()
        assert jobs_of(store) == {"b": (rows["b"], None), FULL_JOB.id: (rows[FULL_JOB.id], FULL_STATE)}
        store.commit(Batch(jobs={"b": None}, changed={"b"}))
        assert set(jobs_of(store)) == {FULL_JOB.id}
        assert not store.changes()

    def test_a_job_that_is_finished_goes_with_its_state_if_it_has_still_that_schedule(self, store: Store) -> None:
        states = {job_id: StoredState(job_id, runs=1) for job_id in ("a", "b")}
        store.commit(Batch(jobs={"a": job("a"), "b": job("b", schedule="@every 5m")}, states=states))
        over = {job_id: job().schedule for job_id in ("a", "b", "c")}
        assert store.commit(Batch(finished=over, states={"a": states["a"]})) == Receipt()
        assert jobs_of(store) == {"b": (job("b", schedule="@every 5m"), states["b"])}
        assert not store.changes()

    def test_a_state_is_replaced_as_a_whole(self, store: Store) -> None:
        store.commit(Batch(jobs={FULL_JOB.id: FULL_JOB}, states={FULL_JOB.id: FULL_STATE}))
        store.commit(Batch(states={FULL_JOB.id: StoredState(FULL_JOB.id)}))
        assert jobs_of(store) == {FULL_JOB.id: (FULL_JOB, StoredState(FULL_JOB.id))}

    def test_a_removed_job_takes_its_state_with_it_and_leaves_its_ticks(self, store: Store) -> None:
        done = end(mark(fence=1))
        running = mark(seconds=60, fence=2)
        store.commit(Batch(jobs={"a": job()}, states={"a": StoredState("a", runs=3)}, ended=[done], marks=[running]))
        store.commit(Batch(jobs={"a": None}))
        assert jobs_of(store) == {}
        assert history_of(store) == [done, running]
        assert store.running() == [running]
        store.commit(Batch(jobs={"a": job()}))
        assert jobs_of(store) == {"a": (job(), None)}

    def test_removing_what_is_not_there_does_nothing(self, store: Store) -> None:
        assert store.commit(Batch(jobs={"a": None}, pauses={EVERYTHING: None})) == Receipt()
        assert jobs_of(store) == {}

    def test_a_state_of_no_job_is_not_kept(self, store: Store) -> None:
        store.commit(Batch(jobs={"b": job("b")}, states={"a": StoredState("a", runs=1)}))
        store.commit(Batch(jobs={"b": None}, states={"b": StoredState("b", runs=1)}))
        store.commit(Batch(jobs={"a": job(), "b": job("b")}))
        assert jobs_of(store) == {"a": (job(), None), "b": (job("b"), None)}

    def test_a_job_and_its_state_may_come_in_one_batch(self, store: Store) -> None:
        state = StoredState("a", next_us=START_US)
        store.commit(Batch(states={"a": state}, jobs={"a": job()}))
        assert jobs_of(store) == {"a": (job(), state)}

    def test_ids_that_look_alike_are_different_jobs(self, store: Store) -> None:
        """Case, blanks and accents count."""
        states = {job_id: StoredState(job_id, runs=number) for number, job_id in enumerate(SIMILAR_IDS)}
        marks = [mark(job_id, fence=number) for number, job_id in enumerate(SIMILAR_IDS)]
        store.commit(Batch(jobs={job_id: job(job_id) for job_id in SIMILAR_IDS}, states=states, marks=marks))
        assert jobs_of(store) == {job_id: (job(job_id), states[job_id]) for job_id in SIMILAR_IDS}
        assert [store.history(tick.job_id) for tick in marks] == [[tick] for tick in marks]
        store.commit(Batch(jobs={"A": None}))
        assert set(jobs_of(store)) == set(SIMILAR_IDS) - {"A"}

    def test_an_empty_text_is_one(self, store: Store) -> None:
        empty = job("a", args="", kwargs="", options="", tags="", paused="")
        state = StoredState("a", last_error="")
        store.commit(Batch(jobs={"a": empty}, states={"a": state}))
        assert jobs_of(store) == {"a": (empty, state)}

    def test_long_texts_are_kept(self, store: Store) -> None:
        long = job("\u00fc" * 500, kwargs='{"text": "' + "x\u00fc" * 500_000 + '"}')
        store.commit(Batch(jobs={long.id: long}))
        assert jobs_of(store) == {long.id: (long, None)}

    def test_jobs_come_in_lists_the_soonest_first_and_those_without_a_state_last(self, store: Store) -> None:
        """A list has about a thousand jobs at most."""
        ids = [f"{number * 7919 % 2_500:04}" for number in range(2_500)]
        bare = set(ids[:10])
        states = {job_id: StoredState(job_id, next_us=due_at(-int(job_id))) for job_id in ids if job_id not in bare}
        store.commit(Batch(jobs={job_id: job(job_id) for job_id in ids}, states=states))
        lists = list(store.load())
        assert min(map(len, lists)) > 0
        assert max(map(len, lists)) <= LARGEST_LIST
        rows = [row for rows in lists for row in rows]
        assert [row[0].id for row in rows[:-10]] == sorted(states, reverse=True)
        assert {row[0].id for row in rows[-10:] if row[1] is None} == bare

    def test_all_can_be_read_again(self, store: Store) -> None:
        store.commit(Batch(jobs={"a": job(), "b": job("b")}))
        next(store.load())
        assert jobs_of(store) == jobs_of(store) == {"a": (job(), None), "b": (job("b"), None)}
        store.commit(Batch(jobs={"a": None}))
        assert jobs_of(store) == {"b": (job("b"), None)}


class RulesOfPauses(StoreFixtures):
    def test_a_pause_comes_back_as_it_was_put(self, make_store: MakeStore, store: Store) -> None:
        everything = StoredPause(EVERYTHING, "", due_at(0))
        store.commit(Batch(pauses={EVERYTHING: everything, MIDNIGHT.scope: MIDNIGHT}))
        assert pauses_of(store) == {EVERYTHING: everything, MIDNIGHT.scope: MIDNIGHT}
        store.close()
        reopened = make_store()
        reopened.open(START_US, no_hint)
        assert pauses_of(reopened) == {EVERYTHING: everything, MIDNIGHT.scope: MIDNIGHT}
        reopened.close()

    @pytest.mark.parametrize("later", [None, MIDNIGHT._replace(reason="another", until_us=None)])
    def test_a_pause_is_replaced_or_removed(self, store: Store, later: StoredPause | None) -> None:
        other = StoredPause("tag:night shift", "in small letters", due_at(2))
        store.commit(Batch(pauses={MIDNIGHT.scope: MIDNIGHT, other.scope: other}))
        store.commit(Batch(pauses={MIDNIGHT.scope: later}))
        expected = {other.scope: other} | ({} if later is None else {later.scope: later})
        assert pauses_of(store) == expected


class RulesOfChanges(StoreFixtures):
    def test_nothing_has_changed_at_first(self, make_store: MakeStore, store: Store) -> None:
        store.commit(Batch(jobs={"a": job()}, pauses={MIDNIGHT.scope: MIDNIGHT}))
        store.close()
        reopened = make_store()
        reopened.open(START_US, no_hint)
        assert not reopened.changes()
        jobs_of(reopened)
        assert not reopened.changes()
        reopened.close()

    def test_what_was_written_through_this_store_is_no_change(self, store: Store) -> None:
        jobs_of(store)
        for batch in (
            Batch(jobs={"a": job(), "b": job("b")}, states={"a": StoredState("a")}, pauses={MIDNIGHT.scope: MIDNIGHT}),
            Batch(jobs={"a": job(name="new"), "b": None}, pauses={MIDNIGHT.scope: None}),
            Batch(marks=[mark(fence=1)], missed=[]),
        ):
            store.commit(batch)
            assert not store.changes()

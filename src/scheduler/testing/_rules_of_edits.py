from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from .._values import EVERYTHING, JobAdded, JobParked, JobState
from ..stores import Batch, Changes, JobPause, Store, StoredJob, StoredPause, StoredState
from ._rules_of_schedulers import Life
from ._store_fixtures import StoreFixtures
from ._store_rows import MakeStore, due_at, job, jobs_of, pauses_of

Edit = Callable[[Mapping[str, StoredJob | None], Mapping[str, StoredPause | None]], None]
"""Puts or removes jobs and pauses while the store is open, as another program would."""

PAUSE = StoredPause(EVERYTHING, "holidays", due_at(0), due_at(100))


class EditFixtures(StoreFixtures):
    @pytest.fixture
    def edit(self) -> Edit:
        """A callable that puts or removes (None) jobs and pauses by id and scope."""
        msg = "a subclass says how others write into its store: see the docstring of scheduler.testing.stores"
        raise NotImplementedError(msg)


class RulesOfEdits(EditFixtures):
    def test_what_others_have_put_is_told_once(self, store: Store, edit: Edit) -> None:
        store.commit(Batch(jobs={"a": job(), "b": job("b")}))
        jobs_of(store)
        edit({"a": job(name="edited"), "c": job("c")}, {EVERYTHING: PAUSE})
        assert store.changes() == Changes({"a": job(name="edited"), "c": job("c")}, {EVERYTHING: PAUSE})
        assert not store.changes()
        assert set(jobs_of(store)) == {"a", "b", "c"}
        assert pauses_of(store) == {EVERYTHING: PAUSE}

    def test_what_others_have_removed_is_told_once(self, store: Store, edit: Edit) -> None:
        store.commit(Batch(jobs={"a": job()}, states={"a": StoredState("a", runs=1)}, pauses={EVERYTHING: PAUSE}))
        jobs_of(store)
        edit({"a": None}, {EVERYTHING: None})
        assert store.changes() == Changes({"a": None}, {EVERYTHING: None})
        assert not store.changes()
        store.commit(Batch(jobs={"a": job()}))
        assert jobs_of(store) == {"a": (job(), None)}

    def test_several_changes_of_one_job_are_told_as_one(self, store: Store, edit: Edit) -> None:
        jobs_of(store)
        edit({"a": job(name="first"), "b": job("b")}, {})
        edit({"a": job(name="second"), "b": None}, {})
        told = store.changes().jobs
        assert told["a"] == job(name="second")
        assert told.get("b") is None

    def test_what_was_changed_before_it_was_loaded_is_not_told(self, store: Store, edit: Edit) -> None:
        edit({"a": job()}, {})
        assert jobs_of(store) == {"a": (job(), None)}
        assert not store.changes()

    def test_what_is_changed_while_it_is_loaded_is_not_lost(self, store: Store, edit: Edit) -> None:
        ids = [f"{number:04}" for number in range(2_500)]
        store.commit(Batch(jobs={job_id: job(job_id) for job_id in ids}))
        lists = store.load()
        loaded = {row[0].id: row[0] for row in next(lists)}
        edited = {job_id: job(job_id, name="edited") for job_id in (ids[0], ids[-1])}
        edit(edited, {})
        loaded |= {row[0].id: row[0] for rows in lists for row in rows}
        loaded |= {job_id: row for job_id, row in store.changes().jobs.items() if row is not None}
        assert {job_id: loaded[job_id] for job_id in edited} == edited

    def test_a_job_that_others_replace_keeps_its_state(self, store: Store, edit: Edit) -> None:
        state = StoredState("a", runs=3)
        store.commit(Batch(jobs={"a": job()}, states={"a": state}))
        edit({"a": job(schedule="@every 5m")}, {})
        assert jobs_of(store) == {"a": (job(schedule="@every 5m"), state)}

    def test_what_others_have_written_stays_when_the_job_is_paused(self, store: Store, edit: Edit) -> None:
        store.commit(Batch(jobs={"a": job(), "b": job("b")}))
        jobs_of(store)
        edit({"a": job(schedule="@every 5m"), "b": None}, {})
        store.commit(Batch(paused={"a": JobPause("resting"), "b": JobPause("resting")}))
        assert store.changes() == Changes({"a": job(schedule="@every 5m", paused="resting"), "b": None}, {})
        assert jobs_of(store) == {"a": (job(schedule="@every 5m", paused="resting"), None)}

    def test_a_job_to_which_others_give_another_schedule_is_not_finished(self, store: Store, edit: Edit) -> None:
        store.commit(Batch(jobs={"a": job(), "b": job("b")}))
        jobs_of(store)
        edit({"a": job(schedule="@every 5m")}, {})
        store.commit(Batch(finished={"a": job().schedule, "b": job().schedule}))
        assert store.changes() == Changes({"a": job(schedule="@every 5m")}, {})
        assert jobs_of(store) == {"a": (job(schedule="@every 5m"), None)}

    def test_what_others_change_is_told_beside_what_is_written_here(self, store: Store, edit: Edit) -> None:
        jobs_of(store)
        store.commit(Batch(jobs={"mine": job("mine")}))
        edit({"theirs": job("theirs")}, {})
        store.commit(Batch(jobs={"mine too": job("mine too")}))
        assert store.changes() == Changes({"theirs": job("theirs")}, {})


@pytest.mark.anyio
class RulesOfEditsOfAScheduler(EditFixtures):
    async def test_a_row_becomes_a_job_that_runs(self, make_store: MakeStore, edit: Edit) -> None:
        async with Life(make_store()) as first:
            edit({"a": job(task="greet", args='["you"]')}, {})
            await first.wait_until(lambda: any(isinstance(event, JobAdded) for event in first.told))
            await first.run_now(first.get("a"))
        async with Life(make_store()) as second:
            assert second.get("a").statistics().successes == 1

    async def test_a_changed_row_changes_its_job(self, make_store: MakeStore, edit: Edit) -> None:
        async with Life(make_store()) as life:
            handle = life.add("greet", "@every 100d", id="a")
            await life.run_now(handle)
            await life.flush()
            edit({"a": job(task="greet", schedule="@every 200d", args='["you"]', name="new", paused="by hand")}, {})
            await life.wait_until(lambda: handle.state is JobState.DISABLED)
            assert life.get("a") is handle
            assert (str(handle.schedule), tuple(handle.args), handle.name) == ("@every 200d", ("you",), "new")
            assert "by hand" in (handle.error or "")
            assert handle.statistics().successes == 1

    async def test_a_removed_row_removes_its_job(self, make_store: MakeStore, edit: Edit) -> None:
        async with Life(make_store()) as life:
            life.add("greet", "@every 100d", id="a")
            await life.flush()
            edit({"a": None}, {})
            await life.wait_until(lambda: life.jobs() == [])

    async def test_a_change_of_a_job_brings_no_removed_row_back(self, make_store: MakeStore, edit: Edit) -> None:
        """Its job is told afterwards that it is gone, though notes of ours were on their way."""
        async with Life(make_store()) as life:
            handle = life.add("greet", "@every 100d", id="a")
            await life.flush()
            edit({"a": None}, {})
            handle.update(schedule="@every 200d")
            handle.update(name="new")
            await life.flush()
            await life.wait_until(lambda: life.jobs() == [])
        async with Life(make_store()) as life:
            assert life.jobs() == []

    async def test_a_pause_holds_jobs_until_it_is_removed(self, make_store: MakeStore, edit: Edit) -> None:
        async with Life(make_store()) as life:
            handle = life.add("greet", "@every 100d", id="a")
            await life.flush()
            edit({}, {EVERYTHING: PAUSE._replace(until_us=None)})
            await life.wait_until(lambda: handle.state is JobState.DISABLED)
            assert [pause.reason for pause in life.pauses()] == [PAUSE.reason]
            edit({}, {EVERYTHING: None})
            await life.wait_until(lambda: handle.state is JobState.SCHEDULED)

    async def test_a_row_that_cannot_be_read_is_parked_until_it_is_put_right(
        self, make_store: MakeStore, edit: Edit
    ) -> None:
        async with Life(make_store()) as life:
            good = life.add("greet", "@every 100d", id="good")
            await life.flush()
            edit({"bad": job("bad", task="greet", schedule="every now and then", kwargs="{")}, {})
            await life.wait_until(lambda: any(isinstance(event, JobParked) for event in life.told))
            bad = life.get("bad")
            assert (bad.state, bad.next_start) == (JobState.DISABLED, None)
            assert bad.error
            await life.run_now(good)
            edit({"bad": job("bad", task="greet")}, {})
            await life.wait_until(lambda: bad.state is JobState.SCHEDULED)
            await life.run_now(bad)

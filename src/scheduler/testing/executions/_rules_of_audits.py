from __future__ import annotations

from collections.abc import Callable, Iterable

from ..._values import EVERYTHING
from ...stores import (
    PARTS,
    PENDING,
    SCHEDULED,
    SUPERSEDED,
    TAKEN,
    Audited,
    Batch,
    Execution,
    Planned,
    Standing,
    StoredPause,
)
from .._store_rows import START_US, MakeStore, due_at, end, job, mark
from ._rows import (
    SERVER,
    ExecutingStore,
    ExecutionFixtures,
    another,
    by_job,
    in_line,
    keys,
    nothing,
    plan,
    planned,
    put,
    statuses,
)

NOW_US = due_at(30)
A = ("a", due_at(60))


class RulesOfAudits(ExecutionFixtures):
    def test_a_job_without_a_live_execution_gets_one(self, store: ExecutingStore) -> None:
        plan(store, planned("a"), planned("b", None), planned("c", None))
        found = audit(store, _next_minute)
        assert keys(_planned(found)) == [("b", 90), ("c", 90)]
        assert in_line(store, PENDING) == ["a", "b", "c"]
        assert audit(store, nothing) == audit(store, _next_minute)

    def test_what_is_well_is_left_alone(self, store: ExecutingStore) -> None:
        plan(store, planned("a"), planned("b"))
        store.commit(Batch(placed=[put("a")]))
        asked: list[Standing] = []
        found = audit(store, asked.append)
        assert asked == []
        assert sum(part.jobs for part in found) == len("ab")
        assert sum(part.orphans for part in found) == 0
        assert (statuses(store, "a"), statuses(store, "b")) == ([(60, SCHEDULED)], [(60, PENDING)])

    def test_who_decides_sees_all_of_a_job(self, store: ExecutingStore) -> None:
        plan(store, planned("a"))
        (live,) = store.executions.of_job("a")
        edited = job("a", schedule="@every 7d")
        store.commit(Batch(jobs={"a": edited}))
        asked: list[Standing] = []
        audit(store, asked.append)
        assert [(at.id, at.job, at.live) for at in asked] == [("a", edited, live)]
        assert asked[0].state is not None

    def test_who_decides_is_told_of_a_tick_that_is_owed(self, store: ExecutingStore) -> None:
        plan(store, planned("a"))
        begun = mark(seconds=60, fence=1)
        store.commit(Batch(marks=[begun]))
        store.commit(Batch(ended=[end(begun, owed=True)], jobs={"a": job("a", schedule="@every 7d")}))
        asked: list[Standing] = []
        store.executions.reconcile(["a"], asked.append)
        audit(store, asked.append)
        assert [at.owes for at in asked] == [True, True]

    def test_an_edit_supersedes(self, store: ExecutingStore) -> None:
        plan(store, planned("a"))
        store.commit(Batch(placed=[put("a", number=7)], jobs={"a": job("a", schedule="@every 7d")}))
        found = audit(store, lambda at: planned(at.id, 90, schedule="@every 7d"))
        assert [row.number for part in found for row in part.gone] == [7]
        assert statuses(store) == [(60, SUPERSEDED), (90, PENDING)]
        assert not any(part.planned or part.gone for part in audit(store, _next_minute))

    def test_a_paused_job_has_none(self, store: ExecutingStore) -> None:
        """Except at the end of the pause."""
        until = due_at(600)
        plan(store, planned("a"), planned("b"), planned("c", 600))
        for id, until_us in (("a", None), ("b", until), ("c", until)):
            store.commit(Batch(jobs={id: job(id, paused="by hand", paused_until_us=until_us)}))
        asked: list[Standing] = []
        found = audit(store, asked.append)
        assert sorted(at.id for at in asked) == ["a", "b"]
        assert sum(part.jobs for part in found) == 0

    def test_while_everything_is_paused_none_is_made(self, store: ExecutingStore) -> None:
        plan(store, planned("a", None))
        store.commit(Batch(pauses={EVERYTHING: StoredPause(EVERYTHING, "by hand", START_US)}))
        asked: list[Standing] = []
        audit(store, asked.append)
        assert asked == []

    def test_without_a_server_s_name_nothing_is_lost_with_a_server(self, store: ExecutingStore) -> None:
        """A server with a log has another name after a restart, and the same ticks."""
        plan(store, planned("b"))
        store.commit(Batch(placed=[put("b", instance="server-0")]))
        found = [store.executions.audit(part, now_us=NOW_US, instance=None, decide=nothing) for part in range(PARTS)]
        assert [part.orphans for part in found if part is not None] == [0] * PARTS
        assert in_line(store, SCHEDULED) == ["b"]

    def test_what_another_server_had_is_pending_again(self, store: ExecutingStore) -> None:
        """The server restarted without its log."""
        plan(store, planned("a"), planned("b"))
        store.commit(Batch(placed=[put("a"), put("b", instance="server-0")]))
        assert sum(part.orphans for part in audit(store, nothing)) == 1
        assert (in_line(store, PENDING), in_line(store, SCHEDULED)) == (["b"], ["a"])

    def test_what_a_dead_agent_had_is_pending_again(self, store: ExecutingStore, make_store: MakeStore) -> None:
        """What it planned further gives way."""
        plan(store, planned("a"), planned("b"))
        store.executions.take([A, ("b", due_at(60))])
        store.commit(Batch(planned=by_job(planned("b", 120))))
        assert sum(part.orphans for part in audit(store, nothing)) == 0
        assert statuses(store) == [(60, TAKEN)]
        with another(make_store) as other:
            found = audit(other, nothing)
            assert sum(part.orphans for part in found) == len("ab")
            assert [row[:2] for part in found for row in part.gone] == [("b", due_at(120))]
            assert statuses(other) == [(60, PENDING)]
            assert statuses(other, "b") == [(60, PENDING), (120, SUPERSEDED)]

    def test_a_job_that_is_with_an_agent_is_not_asked_about(self, store: ExecutingStore) -> None:
        plan(store, planned("a"))
        store.executions.take([A])
        asked: list[Standing] = []
        audit(store, asked.append)
        store.executions.reconcile(["a"], asked.append)
        assert asked == []

    def test_executions_of_jobs_that_are_gone_are_superseded(self, store: ExecutingStore) -> None:
        plan(store, planned("a"))
        store.commit(Batch(jobs={"a": None}))
        assert keys(row for part in audit(store, nothing) for row in part.gone) == [("a", 60)]
        assert statuses(store) == [(60, SUPERSEDED)]

    def test_an_audit_says_when_it_was(self, store: ExecutingStore) -> None:
        plan(store, planned("a"), planned("b"))
        store.commit(Batch(jobs={"c": job("c", paused="by hand")}))
        assert store.executions.last_audit("a") is None
        assert store.executions.unaudited(NOW_US) == [("a", None), ("b", None)]
        audit(store, nothing)
        assert store.executions.last_audit("a") == NOW_US
        assert store.executions.last_audit("c") is None
        assert store.executions.unaudited(NOW_US) == []
        assert store.executions.unaudited(NOW_US + 1, limit=1) == [("a", NOW_US)]

    def test_many_jobs_are_whole_after_one_audit(self, store: ExecutingStore) -> None:
        ids = [f"job-{number:05}" for number in range(1_500)]
        plan(store, *(planned(id, None) for id in ids))
        found = [store.executions.audit(part, now_us=NOW_US, instance=SERVER, decide=_next_minute) for part in _PARTS]
        assert len(_planned(part for part in found if part is not None)) == len(ids)
        assert len(store.executions.waiting(PENDING, before_us=due_at(91), limit=2_000)) == len(ids)

    def test_a_job_that_nobody_has_is_reconciled(self, store: ExecutingStore) -> None:
        plan(store, planned("a"), planned("b"))
        mended = store.executions.reconcile(["a", "nobody"], lambda at: planned(at.id, 90))
        assert (keys(mended.planned), keys(mended.gone)) == ([("a", 90)], [("a", 60)])
        assert statuses(store, "b") == [(60, PENDING)]
        assert store.executions.reconcile(["a"], lambda at: planned(at.id, 90)).planned == ()

    def test_a_job_that_is_gone_is_reconciled(self, store: ExecutingStore) -> None:
        plan(store, planned("a"))
        store.commit(Batch(jobs={"a": None}))
        mended = store.executions.reconcile(["a"], lambda at: planned(at.id, 60 if at.job else None))
        assert (mended.planned, keys(mended.gone)) == ((), [("a", 60)])


_PARTS = range(PARTS)


def audit(store: ExecutingStore, decide: Callable[[Standing], Planned | None]) -> list[Audited]:
    found = [store.executions.audit(part, now_us=NOW_US, instance=SERVER, decide=decide) for part in _PARTS]
    done = [part for part in found if part is not None]
    assert len(done) == PARTS
    return done


def _planned(found: Iterable[Audited]) -> list[Execution]:
    return [row for part in found for row in part.planned]


def _next_minute(at: Standing) -> Planned:
    return planned(at.id, 90, schedule="" if at.job is None else at.job.schedule)

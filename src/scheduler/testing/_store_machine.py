from __future__ import annotations

from typing import Any, Final

from hypothesis import HealthCheck, Phase, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from .._values import EVERYTHING, Outcome
from ..stores import Batch, JobPause, Receipt, Retention, Store, StoredJob, StoredPause, StoredState, StoredTick
from ..stores.memory import MemoryStore
from ._store_rows import (
    START_US,
    MakeStore,
    due_at,
    end,
    everything_in,
    jobs_of,
    mark,
    missed,
    no_hint,
    prune_all,
    wipe,
)

SETTINGS: Final = settings(
    max_examples=15,
    stateful_step_count=20,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],  # explaining a failure slows every example
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

IDS: Final = ("a", "A", "a ", "\u00e4")
SECONDS: Final = (0, 1, 2)
SCOPES: Final = (EVERYTHING, "tag:x", "tag:X")

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
instants = st.none() | st.integers(START_US, due_at(10**6))
counts = st.integers(0, 2**40)
seconds = st.floats(0, 1e9)

maybe = st.none() | texts
jobs = st.builds(
    StoredJob,
    id=st.just(""),
    task=texts,
    schedule=texts,
    args=st.sampled_from(["[]", '["\u00e4", 1.0,1 ]']),
    kwargs=st.sampled_from(["{}", '{"b":1,  "a": [1.0]}']),
    options=st.just("{}"),
    tags=st.just("[]"),
    name=maybe,
    paused=maybe,
    paused_until_us=instants,
)
states = st.builds(
    StoredState,
    job_id=st.just(""),
    next_us=instants,
    next_by_hand=st.booleans(),
    retry_due_us=instants,
    retry_attempt=st.none() | counts,
    retry_at_us=instants,
    not_before_us=instants,
    last_outcome=maybe,
    last_error=maybe,
    next_of=maybe,
    missed_is_exact=st.booleans(),
    **dict.fromkeys(("last_start_us", "last_finish_us", "last_success_us"), instants),
    **dict.fromkeys(("total_duration", "total_duration_failures", "lateness_sum", "lateness_max"), seconds),
    **dict.fromkeys(("runs", "successes", "failures", "timeouts", "cancellations", "missed"), counts),
    **dict.fromkeys(("consecutive_failures", "consecutive_crashes"), counts),
)
job_pauses = st.builds(JobPause, maybe, instants)
pauses = st.builds(StoredPause, scope=st.just(""), reason=texts, since_us=counts, until_us=instants)
ticks = st.tuples(st.sampled_from(IDS), st.sampled_from(SECONDS))
retentions = st.builds(
    Retention,
    per_job=st.none() | st.integers(1, 2),
    age=st.none() | st.sampled_from([0.5, 1.0, 2.0]),
    total_bytes=st.none(),
)


class StoreMachine(RuleBasedStateMachine):
    """Random batches, restarts and prunes: after each step a store equals the reference."""

    def __init__(self, make_store: MakeStore) -> None:
        super().__init__()
        self.make_store = make_store
        self.reference = MemoryStore()
        self.reference.open(START_US, no_hint)
        self.store: Store = make_store()
        self.epoch = self.store.open(START_US, no_hint).epoch
        wipe(self.store)
        self.fence = 0
        self.last: tuple[Batch, Receipt] | None = None

    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        batch = Batch(
            jobs=data.draw(_rows(IDS, st.none() | jobs, "id")),
            states=data.draw(_rows(IDS, states, "job_id")),
            pauses=data.draw(_rows(SCOPES, st.none() | pauses, "scope")),
            ended=self._ends(data),
            missed=[missed(*tick) for tick in data.draw(st.lists(ticks, unique=True, max_size=2))],
        )
        batch.marks = self._marks(data, batch.ended)
        batch.paused = data.draw(st.dictionaries(st.sampled_from(IDS), job_pauses, max_size=3))
        batch.changed = data.draw(st.sets(st.sampled_from(sorted(batch.jobs)))) if batch.jobs else set()
        batch.finished = data.draw(st.dictionaries(st.sampled_from(IDS), texts, max_size=2))
        for job_id, (row, _) in jobs_of(self.reference).items():
            if data.draw(st.booleans()):
                batch.finished[job_id] = row.schedule
        self.last = batch, self._commit(batch)

    @precondition(lambda self: self.last is not None)
    @rule()
    def repeat(self) -> None:
        assert self.last is not None
        batch, answer = self.last
        before = everything_in(self.reference)
        assert _sorted(self._commit(batch)) == _sorted(answer)
        assert everything_in(self.reference) == before

    @rule(is_same=st.booleans())
    def reopen(self, *, is_same: bool) -> None:
        self.store.close()
        self.store = self.store if is_same else self.make_store()
        opened = self.store.open(START_US, no_hint)
        assert opened.epoch == self.epoch + 1
        self.epoch = opened.epoch

    @rule(retention=retentions, second=st.sampled_from(SECONDS))
    def prune(self, retention: Retention, second: int) -> None:
        self.last = None
        gone = [sum(prune_all(store, retention, due_at(second + 1))) for store in (self.store, self.reference)]
        assert gone[0] == gone[1]

    @invariant()
    def they_hold_the_same(self) -> None:
        assert everything_in(self.store) == everything_in(self.reference)
        for job_id in IDS:
            asked: dict[str, Any] = {"limit": 1, "before_us": due_at(SECONDS[-1])}
            assert self.store.history(job_id, **asked) == self.reference.history(job_id, **asked)
        assert not self.store.changes()

    def teardown(self) -> None:
        self.store.close()

    def _commit(self, batch: Batch) -> Receipt:
        receipt = self.store.commit(batch)
        assert _sorted(receipt) == _sorted(self.reference.commit(batch))
        return receipt

    def _ends(self, data: st.DataObject) -> list[StoredTick]:
        """Draw ends of earlier marks, even of ticks marked again since."""
        ended = []
        for job_id, second in data.draw(st.lists(ticks, unique=True, max_size=3)):
            record = self._record(job_id, due_at(second))
            fences = (
                st.integers(0, self.fence) if record is None else st.just(record.fence) | st.integers(0, self.fence)
            )
            attempt = 1 if record is None else record.attempt
            started = mark(job_id, second, fence=data.draw(fences), attempt=attempt)
            ended.append(
                end(
                    started,
                    data.draw(st.sampled_from(Outcome)),
                    error=data.draw(maybe),
                    result=data.draw(maybe),
                    owed=data.draw(st.booleans()),
                    waited=data.draw(maybe),
                )
            )
        return ended

    def _marks(self, data: st.DataObject, ended: list[StoredTick]) -> list[StoredTick]:
        """Draw marks with new fences, but not for stale ends in the batch, which no scheduler produces."""
        marks = []
        stale = {(tick.job_id, tick.due_us) for tick in ended if self._is_stale(tick)}
        for job_id, second in data.draw(st.lists(ticks, unique=True, max_size=3)):
            if (job_id, due_at(second)) not in stale:
                self.fence += 1
                marks.append(mark(job_id, second, fence=self.fence, attempt=data.draw(st.integers(1, 3))))
        return marks

    def _is_stale(self, tick: StoredTick) -> bool:
        record = self._record(tick.job_id, tick.due_us)
        return record is not None and record.fence != tick.fence

    def _record(self, job_id: str, due_us: int) -> StoredTick | None:
        records = self.reference.history(job_id, limit=1, before_us=due_us + 1)
        return records[0] if records and records[0].due_us == due_us else None


def _rows(keys: tuple[str, ...], values: st.SearchStrategy[Any], field: str) -> st.SearchStrategy[dict[str, Any]]:
    drawn = st.dictionaries(st.sampled_from(keys), values, max_size=3)
    return drawn.map(lambda rows: {key: row and row._replace(**{field: key}) for key, row in rows.items()})


def _sorted(receipt: Receipt) -> tuple[list[StoredTick], list[StoredTick]]:
    return sorted(receipt.refused), sorted(receipt.stale)

"""The suite that every store must pass, ours and your own.

    from scheduler.testing.stores import SchedulerStoreConformance, StoreConformance

    class TestMyStore(StoreConformance, SchedulerStoreConformance):
        @pytest.fixture
        def make_store(self, tmp_path):
            return lambda: MyStore(tmp_path / "jobs")

Each call of `make_store` makes a new, closed store object, all on the same data, empty when a test begins. Failures say
more with `pytest.register_assert_rewrite("scheduler.testing")` in a conftest.py. Async tests need anyio's pytest
plugin, which comes with anyio.

If others can write into the store, test also what it tells of that:

    class TestEditsOfMyStore(EditConformance):
        @pytest.fixture
        def make_store(self, tmp_path): ...

        @pytest.fixture
        def edit(self, tmp_path):
            def edit(jobs, pauses): ...  # put each that is not None, remove the others

            return edit

Needs pytest and hypothesis.
"""

from __future__ import annotations

from typing import ClassVar

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from ._rules_of_edits import Edit, RulesOfEdits, RulesOfEditsOfAScheduler
from ._rules_of_history import RulesOfHistory, RulesOfMadeChanges, RulesOfPruning
from ._rules_of_jobs import RulesOfChanges, RulesOfJobs, RulesOfPauses
from ._rules_of_opening import RulesOfOpening
from ._rules_of_schedulers import RulesOfSchedulers
from ._rules_of_ticks import RulesOfBatches, RulesOfTicks
from ._store_machine import SETTINGS, StoreMachine
from ._store_rows import MakeStore

__all__ = ["Edit", "EditConformance", "MakeStore", "SchedulerStoreConformance", "StoreConformance"]


class StoreConformance(
    RulesOfOpening,
    RulesOfJobs,
    RulesOfPauses,
    RulesOfChanges,
    RulesOfTicks,
    RulesOfBatches,
    RulesOfHistory,
    RulesOfPruning,
    RulesOfMadeChanges,
):
    """Tests of the protocol `Store`. A subclass brings the fixture `make_store`.

    `random_batches`: Hypothesis' settings for the comparison with the reference.
    """

    random_batches: ClassVar[settings] = SETTINGS

    def test_it_does_what_the_reference_does(self, make_store: MakeStore) -> None:
        """After each random batch, restart or prune it holds what a MemoryStore holds."""

        class Machine(StoreMachine):
            def __init__(self) -> None:
                super().__init__(make_store)

        run_state_machine_as_test(Machine, settings=self.random_batches)


class SchedulerStoreConformance(RulesOfSchedulers):
    """Rules for a restart, a crash and a failure of a scheduler. A subclass brings `make_store`.

    Its tests are async: they run on each backend that anyio's pytest plugin is told of.
    """


class EditConformance(RulesOfEdits, RulesOfEditsOfAScheduler):
    """Rules for changes that others make to a store, and for a scheduler that follows them.

    A subclass brings the fixtures `make_store` and `edit`.
    """

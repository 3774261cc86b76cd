"""Is it a store? The suite that every store has to pass, those of this package and your own.

    from scheduler.testing.stores import SchedulerStoreConformance, StoreConformance

    class TestMyStore(StoreConformance, SchedulerStoreConformance):
        @pytest.fixture
        def make_store(self, tmp_path):
            return lambda: MyStore(tmp_path / "jobs")

`make_store` is a callable: each call makes a new, closed store object. All of them are on the same data, which are
empty when the test begins. A failure says more with `pytest.register_assert_rewrite("scheduler.testing")` in a
conftest.py. Async tests of the second class and the last need anyio's pytest plugin, which comes with anyio.

A store that others can write into is tested for what it tells about it, too:

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
from ._rules_of_history import RulesOfHistory, RulesOfPruning
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
):
    """Every sentence of the protocol `Store` as a test. A subclass brings the fixture `make_store`.

    `random_batches`: Hypothesis' settings for the test that compares with the reference.
    """

    random_batches: ClassVar[settings] = SETTINGS

    def test_it_does_what_the_reference_does(self, make_store: MakeStore) -> None:
        """Random batches, repeated ones, restarts and prunes: after each step it holds what a MemoryStore holds."""

        class Machine(StoreMachine):
            def __init__(self) -> None:
                super().__init__(make_store)

        run_state_machine_as_test(Machine, settings=self.random_batches)


class SchedulerStoreConformance(RulesOfSchedulers):
    """The suite for what a scheduler finds again after a restart, a crash and a failure.

    A subclass brings the fixture `make_store`. Its tests are async: they run on each backend of anyio that its pytest
    plugin is told of.
    """


class EditConformance(RulesOfEdits, RulesOfEditsOfAScheduler):
    """The suite for what a store tells of changes made by others, and what a scheduler makes of it.

    A subclass brings the fixtures `make_store` and `edit`.
    """

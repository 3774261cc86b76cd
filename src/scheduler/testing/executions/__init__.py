"""The suite for every store with `executions`, besides that of stores.

    from scheduler.testing.executions import ExecutionConformance

    class TestExecutionsOfMyStore(ExecutionConformance):
        @pytest.fixture
        def make_store(self, tmp_path):
            return lambda: MyStore(tmp_path / "jobs")

`make_store` is as in `scheduler.testing.stores`. Opening another store object stands for another node, after the
previous one has died. Needs pytest.
"""

from ._rules_of_audits import RulesOfAudits
from ._rules_of_plans import RulesOfPlans
from ._rules_of_taking import RulesOfTaking

__all__ = ["ExecutionConformance"]


class ExecutionConformance(RulesOfPlans, RulesOfTaking, RulesOfAudits):
    """Tests of the protocol `Executions`. A subclass brings the fixture `make_store`."""

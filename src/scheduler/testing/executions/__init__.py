"""Does a store keep executions? The suite for every store with `executions`, besides that of stores.

    from scheduler.testing.executions import ExecutionConformance

    class TestExecutionsOfMyStore(ExecutionConformance):
        @pytest.fixture
        def make_store(self, tmp_path):
            return lambda: MyStore(tmp_path / "jobs")

`make_store` is as in `scheduler.testing.stores`: each call makes a store object, all on the same empty data. Opening
such an object takes the data over: it stands for another node, and the node before has died. Needs pytest.
"""

from ._rules_of_audits import RulesOfAudits
from ._rules_of_plans import RulesOfPlans
from ._rules_of_taking import RulesOfTaking

__all__ = ["ExecutionConformance"]


class ExecutionConformance(RulesOfPlans, RulesOfTaking, RulesOfAudits):
    """Every sentence of the protocol `Executions` as a test. A subclass brings the fixture `make_store`."""

"""Jobs whose next starts stand in a queue outside of every node.

Dispatch takes executions with their jobs, and puts the next ones. QueueAudit and QueueVisit compare queue and store. Of
the store the package knows only executions.
"""

from .audit import QueueAudit
from .claims import Claims
from .dispatch import Dispatch
from .next_execution import next_execution
from .visit import QueueVisit

__all__ = ["Claims", "Dispatch", "QueueAudit", "QueueVisit", "next_execution"]

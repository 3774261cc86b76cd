"""Jobs whose next starts stand in a queue outside of every node: how they come here, and how they go.

Dispatch takes executions out of the queue, with their jobs, and puts the next ones. QueueAudit checks that each job has
its execution there, as QueueVisit does from outside. Held knows which jobs are here.

The package knows no store but its executions. It calls the store and the queue through lines that it is given. In each
line one call follows another, in a thread of its own. Everything else lives on the loop's thread.
"""

from .audit import QueueAudit
from .claims import Claims
from .dispatch import Dispatch
from .next_execution import next_execution
from .visit import QueueVisit

__all__ = ["Claims", "Dispatch", "QueueAudit", "QueueVisit", "next_execution"]

"""Jobs whose next starts stand in a queue outside of every agent: how they come to us, and how they go again.

Dispatch takes what comes out of the queue, with its job, and puts what follows from it. QueueAudit sees that each job
has its execution there, as QueueVisit does from outside, and Held knows which jobs are with us.
It knows no store but its executions, and calls it, and the queue, through lines that it is given: in each, one call
after another, in a thread of its own. All else lives on the loop's thread.
"""

from .audit import QueueAudit
from .dispatch import Dispatch
from .held import Held
from .next_execution import next_execution
from .visit import QueueVisit

__all__ = ["Dispatch", "Held", "QueueAudit", "QueueVisit", "next_execution"]

"""Queues: the protocol `Queue`, and the values that pass through it.

A queue holds the next execution of each job until it is due, and gives it to a node that takes it.
`scheduler.queues.local` is in this process alone, `scheduler.queues.beanstalkd` in a server that many machines use.
Import only the module that you use: it brings its client.

A queue may give a tick too early, twice, or after it was replaced. So the node that takes a tick checks in its record
whether it must still run. `Queue` says which thread makes which call.
"""

from ._queue import (
    LEAD_US,
    Bounded,
    CallAt,
    Census,
    Deliver,
    Delivery,
    Kind,
    Place,
    Position,
    Queue,
    QueueError,
    QueueStatistics,
    QueueUnavailable,
    Reason,
    Standing,
    Tick,
    delay_of,
)

__all__ = [
    "LEAD_US",
    "Bounded",
    "CallAt",
    "Census",
    "Deliver",
    "Delivery",
    "Kind",
    "Place",
    "Position",
    "Queue",
    "QueueError",
    "QueueStatistics",
    "QueueUnavailable",
    "Reason",
    "Standing",
    "Tick",
    "delay_of",
]

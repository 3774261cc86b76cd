"""Queues: the protocol `Queue`, and the values that pass through it.

A queue holds each job's next execution until it is due: in this process (`scheduler.queues.local`), or in a server for
many machines (`scheduler.queues.beanstalkd`). Import only the module that you use: it brings its client.

A queue may give a tick too early, twice, or after it was replaced: its node checks in the record whether to run it.
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

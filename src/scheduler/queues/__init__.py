"""Queues: the protocol `Queue`, and the values that pass through it.

A queue holds the next execution of each job until it is due, for whoever takes it then: `scheduler.queues.local` in
this process alone, `scheduler.queues.beanstalkd` in a server, for every machine that asks it. Import the one that you
use: it brings its client, and nothing here imports one.
Nothing here knows a job, a run or a store: who takes a tick looks into its record whether it is still to be run, for a
queue may give one too early, twice, or after it was replaced. `Queue` says which thread calls whom.
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

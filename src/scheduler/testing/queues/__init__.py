"""The suite for every queue, ours and your own, and a beanstalkd for tests.

    from scheduler.testing.queues import QueueConformance, Turned

    class TestMyQueue(QueueConformance):
        @pytest.fixture
        def world(self):
            clock = ManualClock()
            return Turned(clock, clock.advance)

        @pytest.fixture
        def make_queue(self):
            return MyQueue

`make_queue` makes a closed queue object, all on one server that is empty when a test begins. `world` has the clock of
queues and server, and lets time pass. A queue that processes share must also pass `SharedQueueConformance`, a queue
with the method of `scheduler.queues.Bounded` `BoundedQueueConformance`, and a queue on a beanstalkd
`BeanstalkdConformance`.

`FakeBeanstalkd` speaks beanstalkd's protocol in this process. Needs pytest.
"""

from __future__ import annotations

from ._rules_of_beanstalkd import BeanstalkdConformance, BeanstalkdServer
from ._rules_of_bounds import BoundedQueueConformance
from ._rules_of_queues import MakeQueue, QueueConformance, SharedQueueConformance
from ._world import OpenQueue, Turned
from .fake import FakeBeanstalkd

Opened = OpenQueue
"""The former name, for programs that import it."""

__all__ = [
    "BeanstalkdConformance",
    "BeanstalkdServer",
    "BoundedQueueConformance",
    "FakeBeanstalkd",
    "MakeQueue",
    "OpenQueue",
    "Opened",
    "QueueConformance",
    "SharedQueueConformance",
    "Turned",
]

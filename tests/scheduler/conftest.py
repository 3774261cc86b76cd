"""What the tests of the scheduler share: a clock that stands still, and a listener that remembers."""

import pytest

from scheduler import RunEnded, RunMissed, RunStarted
from timerqueue.testing import ManualClock


class Recorder(list):
    """Every event that it was told, in that order."""

    __call__ = list.append

    def of(self, *kinds, job_id=None):
        """Return the events of these kinds, of one job if it is named."""
        return [e for e in self if isinstance(e, kinds) and job_id in (None, getattr(e, "job_id", None))]

    def starts(self, job_id=None):
        """Return when runs began, in UTC seconds."""
        return [event.started for event in self.of(RunStarted, job_id=job_id)]

    def outcomes(self, job_id=None):
        """Return how runs ended."""
        return [event.outcome for event in self.of(RunEnded, job_id=job_id)]

    def missed(self, job_id=None):
        """Return (count, reason) of each report of missed ticks."""
        return [(event.count, event.reason) for event in self.of(RunMissed, job_id=job_id)]


@pytest.fixture
def clock():
    """A clock that stands still until it is told to move."""
    return ManualClock()


@pytest.fixture
def events():
    """A listener that remembers what it is told."""
    return Recorder()

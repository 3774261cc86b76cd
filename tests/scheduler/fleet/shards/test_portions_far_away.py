"""Shards go wherever the store is: what an agent has begun is durable some commits later, and its jobs begin all the
time.
"""

from collections import defaultdict

import pytest
from hypothesis import example, given, strategies as st

from scheduler._fleet.shards.handoff_plan import HandoffPlan

LOOKS = 0.05
SOON = 60
"""Seconds within which all are to have gone. Most go in a tenth of that."""


class Job:
    """One of a stored job's parts that Portions looks at."""

    is_waiting = True

    def __init__(self, due):
        self.due = due
        self.runs = self.backlog = self.threads = self.asked = ()


class Run:
    """A run that waits for room, then for its mark, and then runs."""

    def __init__(self):
        self.started = None
        self.is_held = self.is_sent = False


class Agent:
    """A model of an agent that hands on all of its shards. Its ticks are marked, run and recorded, as are real ones:
    in batches, of which one at a time is on its way to the store, for `commit` seconds. It has room for so many at a
    time; what waits for that goes with its job.
    """

    def __init__(self, commit, *, every, takes, jobs, shards, room=10_000):
        self.commit, self.every, self.takes, self.room = commit, every, takes, room
        self.now = 0.0
        self.shards = defaultdict(list)
        for number in range(jobs):
            self.shards[number % shards].append(Job(every * number / jobs))
        self.line = []
        self.pending, self.sealed, self.answered_at = [], [], 0.0
        self.handoff_plan = HandoffPlan(self._is_durable, self._goes_along)

    def hands_on_all(self, within, *, since=0.0):
        """Whether all has gone by then. `since`: when it begins to do that."""
        while self.shards and self.now < within:
            self._commit()
            self._end_and_start()
            if self.now >= since:
                self._hand_on()
            self.now += LOOKS
        return not self.shards

    def _hand_on(self):
        commit_s = max(self.commit, LOOKS)  # as long as the model needs to see that a batch has been answered
        for shard in self.handoff_plan.next(self.shards, self.shards.get, self.now, commit_s=commit_s):
            for job in self.shards.pop(shard):
                assert self._is_durable(job)
                assert not job.runs or self._goes_along(job)
                if job in self.line:
                    self.line.remove(job)

    def _is_durable(self, job):
        return job not in self.pending and job not in self.sealed

    def _goes_along(self, job):
        return job in self.line

    def _commit(self):
        if self.now < self.answered_at:
            return
        for job in self.sealed:
            if job.runs and job.runs[0].is_sent and job.runs[0].started is None:
                job.runs[0].started = self.now
        self.sealed, self.pending = self.pending, []
        for job in self.sealed:
            if job.runs and job.runs[0].is_held:
                job.runs[0].is_sent = True
        self.answered_at = self.now + self.commit

    def _end_and_start(self):
        withheld = set(self.handoff_plan.withheld())
        mine = [job for jobs in self.shards.values() for job in jobs]
        for job in mine:
            if job.runs and job.runs[0].started is not None and job.runs[0].started + self.takes <= self.now:
                job.runs = ()
                self._note(job)
            if job.due <= self.now and job not in withheld:
                job.due += self.every
                if not job.runs:
                    job.runs = (Run(),)
                    self.line.append(job)
        has_room = self.room - sum(1 for job in mine if job.runs and job.runs[0].is_held)
        for job in [job for job in self.line if job not in withheld][:has_room]:
            self.line.remove(job)
            job.runs[0].is_held = True
            self._note(job)

    def _note(self, job):
        if job not in self.pending:
            self.pending.append(job)


@pytest.mark.parametrize("commit", [0.0, 0.03, 0.1, 0.2, 0.5, 1.0, 2.0])
def test_an_agent_hands_on_its_shards_however_long_a_commit_takes(commit):
    """From half a second on many never went. A job of each shard starts each second."""
    assert Agent(commit, every=1.0, takes=0.02, jobs=256, shards=256).hands_on_all(SOON)


@pytest.mark.parametrize("room", [10, 100, 400])
def test_an_agent_that_is_far_behind_hands_on_its_shards(room):
    """Some of the jobs of each shard always had room, and none went. Here 1,600 jobs start each ten seconds."""
    agent = Agent(0.5, every=10.0, takes=0.02, jobs=1_600, shards=80, room=room)
    assert agent.hands_on_all(30 + SOON, since=30)


@example(commit=0.0, every=1.0, takes=0.375, jobs=4, shards=1, room=2)
@given(
    commit=st.floats(0.0, 2.0),
    every=st.floats(0.1, 5.0),
    takes=st.floats(0.0, 0.4),
    jobs=st.integers(1, 60),
    shards=st.integers(1, 30),
    room=st.integers(1, 60),
)
def test_all_shards_go_whose_runs_are_short(commit, every, takes, jobs, shards, room):
    """However many jobs are in each, how often they start, and for how many there is room."""
    agent = Agent(commit, every=every, takes=takes, jobs=jobs, shards=min(jobs, shards), room=room)
    assert agent.hands_on_all(SOON, since=5 * commit)

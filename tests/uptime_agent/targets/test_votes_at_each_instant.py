"""The job by which an agent votes: at each instant at which its target is due, as all others do."""

from datetime import timedelta

import pytest

from kit import relative
from schedule import Every
from scheduler.testing import simulate
from timerqueue.testing import START
from uptime_agent.checks.tcp.tcp_check import TcpCheck
from uptime_agent.config import Target
from uptime_agent.quorum import Quorum
from uptime_agent.targets.jobs import VOTE, add_vote
from uptime_agent.text import parse_url


@pytest.mark.parametrize("begins", [0, 60])
def test_a_check_that_takes_longer_than_its_interval_costs_no_vote(begins):
    """Two agents left every other instant out, and never voted on the same if the second had come an instant later: the
    target was unknown for ever. How many run at a time is bounded by their timeouts.
    """
    check = TcpCheck(url=parse_url("tcp://127.0.0.1:1", {"tcp": None}))
    every = Every(60, anchor=START)
    target = Target(name="slow", kind="tcp", check=check, schedule=every, timeout=100.0, quorum=Quorum(agents=2))
    running, most = [], []

    def build(scheduler, clock):
        async def vote(_name):
            running.append(clock.wall())
            most.append(len(running))
            try:
                await clock.sleep(90 if clock.wall() < START.timestamp() + 600 else 1_000)
            finally:
                running.pop()

        add_vote(scheduler, vote, target, 0.0)

    found = simulate(build, 1_190, start=START + timedelta(seconds=begins), limits={"tcp": 9, "host:*": 9})
    began = relative(run.started for run in found.runs(f"{VOTE}slow"))
    assert began == list(range(begins + 60, begins + 1_200, 60))
    assert max(most) == 2

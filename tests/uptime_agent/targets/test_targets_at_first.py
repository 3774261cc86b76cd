"""Targets as a configuration names them at first."""

from types import SimpleNamespace

import pytest

from schedule import Every
from scheduler import Scheduler
from uptime_agent.checks import Holdups, Resolver
from uptime_agent.checks.tcp.tcp_check import TcpCheck
from uptime_agent.config import Target
from uptime_agent.standing import TASK, Board
from uptime_agent.targets import CheckDeps, Targets
from uptime_agent.text import Redactor, parse_url


def target_of(name, **options):
    check = TcpCheck(url=parse_url("tcp://127.0.0.1:1", {"tcp": None}))
    return Target(name=name, kind="tcp", check=check, schedule=Every(60), **options)


@pytest.mark.parametrize("form", [list, tuple, iter])
def test_all_targets_that_are_enabled_are_listed(clock, form):
    """However they are given."""
    scheduler = Scheduler(clock=clock, limits={"tcp": 9, "host:*": 9})

    async def check(_name): ...

    scheduler.register(TASK, check)
    deps = CheckDeps(Resolver(), clock, Redactor(), Holdups(clock))
    targets = Targets(scheduler, deps, Board([]), {}, SimpleNamespace(follow=lambda _: None))
    targets.begin(form([target_of("a"), target_of("off", is_enabled=False), target_of("b")]))
    assert [status.name for status in targets.listed] == ["a", "b"]
    assert [job.id for job in scheduler.jobs()] == ["a", "b"]

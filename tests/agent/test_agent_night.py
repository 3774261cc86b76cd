"""A short night in simulation (tests/night.py): no false alarm, no missed one, and the same log for the same seed."""

import errno

import anyio
import pytest

import night
from scheduler.agent.checks.contract.result import Finding

pytestmark = pytest.mark.slow

MONITORS, HOURS = 12, 2.0


def live(seed):
    return anyio.run(night.play, seed, MONITORS, HOURS)


def test_a_night_has_no_violation_and_the_same_log_again():
    """With kills, an hour offline, steps of the clock and reloads."""
    first, second = live(3), live(3)
    assert night.judge(first) == []
    assert first.lives > HOURS * night.HOUR / night.KILLED_EVERY - 1
    assert sum(map(len, first.log.told.values())) > 2
    assert first.log.lines == second.log.lines
    words = "\n".join(map(str, first.log.lines))
    for befallen in ("the clock of this machine was set", "configuration read again", "unknown"):
        assert befallen in words


async def never_down(check, at):
    """A defect: whatever is true, the target is up."""
    with at.watch.measure("connect"):
        await check.world.clock.sleep(night.ANSWERS_IN)
    return Finding()


async def blames_the_target(check, at):
    """A defect: when we are offline it is the target that refuses."""
    if check.world.offline.holds(check.world.now):
        raise OSError(errno.ECONNREFUSED, "refused")
    return await never_down(check, at)


@pytest.mark.parametrize(
    ("defect", "words"), [(never_down, "0 incidents for the outage"), (blames_the_target, "false alarm")]
)
def test_the_judge_finds_planted_defects(monkeypatch, defect, words):
    """Else it would prove nothing."""
    monkeypatch.setattr(night.Simulated, "attempt", defect)
    assert any(words in each for each in night.judge(live(3)))

"""A short night in simulation (night.py): no false alarm, no missed one, and the same log for the same seed."""

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import night
import night_life
from night_judge import judge
from night_world import Fate, Stretch, World
from uptime_agent.checks.contract.result import Finding
from uptime_agent.standing import task

pytestmark = pytest.mark.slow

MONITORS, HOURS, SEED = 24, 1.0, 3
"""So many that some are added, some changed, and some removed."""

SHORT = (SEED, 12, 0.5)
"""A night in which a defect shows, too."""

TAKEN_OUT = "site-0007"
"""The one that is gone between two reloads."""

FEW = 2
"""Places that do not do."""


@pytest.fixture(scope="module")
def lived():
    """A night, and the lines of its log."""
    lines = []
    return night.live(SEED, MONITORS, HOURS, keeps=lines), lines


def test_a_night_has_no_violation(lived):
    """With deaths, an hour offline, steps of the clock, a channel that is down, and reloads."""
    played, lines = lived
    counts, violations = judge(played)
    assert violations == []
    assert counts["lives of the agent"] == 1 + len(played.world.deaths) > 4
    assert counts["triggers at ops"] == counts["resolved at pager"] == counts["incidents expected"] > 5
    assert counts["attempts in vain"] > 0
    words = "\n".join(map(str, lines))
    for befallen in ("the clock of this machine was set", "added", "removed", "changed", "unknown", "dead"):
        assert befallen in words


def test_a_night_with_too_few_places_leaves_late_checks_unknown():
    """Targets that say nothing hold the places until their time-outs, and whoever waited too long says so."""
    counts, violations = judge(night.live(SEED, MONITORS, HOURS, places=FEW))
    assert violations == []
    assert counts["checks that began too late"] > 5
    assert counts["triggers at ops"] > 5


def test_a_check_is_cut_off_when_its_target_is_taken_out():
    """That is no violation, and no other end without a word would be none."""
    world = World(SEED, MONITORS, HOURS, 60.0)
    world.fates[TAKEN_OUT] = Fate(11.0, (Stretch(0.0, world.quiet, is_silent=True),))
    counts, violations = judge(night.live_in(world))
    assert violations == []
    assert counts["checks cancelled"] > 0


def test_another_process_has_the_same_log(lived):
    """With another seed for the hashes of texts too."""
    played, _ = lived
    script = Path(night.__file__)
    command = [sys.executable, script, "--monitors", str(MONITORS), "--hours", str(HOURS), "--seed", str(SEED)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": "271828"}
    )
    assert f"digest {played.log.digest.hexdigest()}" in done.stdout


def asked_now(check, *, is_up):
    return night_life.Asked(check.night.world.now, 0.0, is_up)


async def never_down(check, at):
    """A defect: whatever is true, the target is up."""
    check.night.life.asked[check.name] = asked_now(check, is_up=True)
    with at.watch.measure("connect"):
        await check.night.world.clock.sleep(night_life.ANSWERS_IN)
    return Finding()


async def blames_the_target(check, at):
    """A defect: when we are offline it is the target that refuses."""
    if check.night.world.offline.holds(check.night.world.now):
        check.night.life.asked[check.name] = asked_now(check, is_up=None)
        raise OSError(errno.ECONNREFUSED, "refused")
    return await never_down(check, at)


def deaf(log, channel, notification, life):
    """A defect: what a channel takes goes nowhere."""


@pytest.mark.parametrize(
    ("part", "name", "defect", "words"),
    [
        (night_life.Simulated, "attempt", never_down, "nobody heard of the outage"),
        (night_life.Simulated, "attempt", blames_the_target, "which was not so"),
        (night_life.Log, "take", deaf, "incidents were to be told, 0 were"),
    ],
)
def test_the_judge_finds_planted_defects(monkeypatch, part, name, defect, words):
    """Else it would prove nothing."""
    if defect is blames_the_target:  # and nobody asks whether we are offline
        monkeypatch.setattr(night_life.Gateway, "attempt", never_offline)
    monkeypatch.setattr(part, name, defect)
    _, violations = judge(night.live(*SHORT))
    assert any(words in each for each in violations), violations


async def never_offline(gateway, at):
    """The gateway answers whatever is true."""
    with at.watch.measure("connect"):
        await gateway.world.clock.sleep(night_life.ANSWERS_IN)
    return Finding()


def always_late(ending, target, about):
    """A defect: whenever a check begins, it is too late."""
    BEGINS(ending, target, about)
    ending._late = "began 0 ms late"


def never_late(ending, target, about):
    """A defect: however late a check begins, it says what it found."""
    BEGINS(ending, target, about)
    ending._late = None


def slow_to_begin(total, named):
    """A defect: fewer checks run at a time than may."""
    return LIMITS(total, {**named, "tcp": 1.0})


BEGINS, LIMITS = task._Ending.__init__, night.CheckLimits


@pytest.mark.parametrize(
    ("part", "name", "defect", "words"),
    [
        (task._Ending, "__init__", always_late, "unknown, though we were online"),
        (task._Ending, "__init__", never_late, "late at .*, and yet told down"),
        (night, "CheckLimits", slow_to_begin, "though there was room"),
    ],
)
def test_the_judge_finds_what_is_wrong_with_lateness(monkeypatch, part, name, defect, words):
    """Of an agent whose places do not do: that some checks begin late is no excuse for others."""
    monkeypatch.setattr(part, name, defect)
    _, violations = judge(night.live(SEED, MONITORS, HOURS, places=FEW))
    assert any(re.search(words, each) for each in violations), violations

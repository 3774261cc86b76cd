"""Hostile inputs over each boundary of an agent, next to fifty healthy targets. `dev.py beside` gives 10,000."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import beside_judge
from beside_boundaries import BOUNDARIES
from beside_judge import Check, Sample, own_lateness
from kit import PATIENCE
from lone_network import CANNOT

SCRIPT = Path(beside_judge.__file__).with_name("beside_healthy.py")
INPUTS = 200
QUICK = ("push", "ntp", "toml")
"""A boundary at which others ask, one at which the agent asks, and a file."""


def judged(boundary, *more):
    """Give an agent some inputs. Return the verdicts by name."""
    command = [sys.executable, str(SCRIPT), boundary, "--inputs", str(INPUTS), "--json", *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10 * PATIENCE, check=False)
    if done.returncode == CANNOT:
        pytest.skip(done.stderr.strip())
    assert done.stdout, done.stderr
    return {each["what"]: each for each in json.loads(done.stdout)[boundary]["verdicts"]}


@pytest.mark.timeout(12 * PATIENCE)
@pytest.mark.parametrize(
    "boundary", [pytest.param(each, marks=() if each in QUICK else pytest.mark.slow) for each in BOUNDARIES]
)
def test_hostile_inputs_hurt_no_healthy_target(boundary):
    """No target is falsely down. Memory is bounded, and the agent lives. Lateness is for `dev.py beside`, on a machine
    with a free core.
    """
    found = judged(boundary)
    assert [each for what, each in found.items() if not each["holds"] and what != "in time"] == []


@pytest.mark.slow
@pytest.mark.timeout(12 * PATIENCE)
@pytest.mark.parametrize(
    ("defect", "verdict"),
    [
        ("ends", "alive at the end"),
        ("marks_down", "healthy targets"),
        ("raises", "defects"),
    ],
)
def test_the_judge_finds_a_planted_defect(defect, verdict):
    """Without that, it would mean nothing that the agent passes. Defects that take time need a free core, by hand."""
    assert not judged("push", "--plays", "1", "--defect", defect)[verdict]["holds"]


def samples(*readings):
    """Make samples: the instant, the time without a core, the time in which the machine stood still."""
    return [Sample(at, waited, still) for at, waited, still in readings]


@pytest.mark.parametrize(
    ("readings", "own"),
    [
        ([(0.0, 5.0, 1.0), (1.0, 5.0, 1.0), (1.6, 5.0, 1.0), (2.0, 9.0, 9.0)], 0.5),
        ([(0.0, 5.0, 1.0), (1.0, 5.0, 1.0), (1.6, 5.4, 1.0), (2.0, 9.0, 9.0)], 0.1),
        ([(0.0, 5.0, 1.0), (1.0, 5.0, 1.0), (1.6, 5.0, 1.5), (2.0, 9.0, 9.0)], 0.0),
        ([(0.9, 5.0, 0.0), (1.01, 5.1, 0.0), (1.49, 5.2, 0.0), (1.51, 5.3, 0.0)], 0.2),
        ([(1.2, 5.0, 0.0), (1.3, 5.1, 0.0)], 0.4),
    ],
    ids=["worked or waited", "had no core", "machine stood still", "around due and start", "fewer readings"],
)
def test_what_the_machine_took_is_not_the_agents_fault(readings, own):
    """The check is due after one second, and starts half a second late."""
    check = Check("a", "up", None, due=1.0, lateness=0.5)
    assert own_lateness(check, samples(*readings)) == pytest.approx(own)

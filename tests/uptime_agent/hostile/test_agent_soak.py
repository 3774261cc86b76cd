"""Thirty hostile targets among forty healthy ones, for seconds. The ten minutes are hostile_soak.py itself."""

import json
import subprocess
import sys

import pytest

from programs import path_of

SCRIPT = path_of("hostile_soak")
CANNOT = 2


@pytest.mark.slow
def test_hostile_targets_hurt_no_healthy_one():
    """None is down or slow, none left out; every hostile one got its answer; threads and descriptors stay."""
    command = [sys.executable, str(SCRIPT), "--for", "6s", "--healthy", "40", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode == CANNOT:
        pytest.skip(done.stderr.strip())
    found = json.loads(done.stdout)
    assert set(found["healthy"]) <= {"up", "unknown"}, found  # unknown: this machine was itself held up, and says so
    assert found["healthy"]["up"] > 0
    rows = ["ended well", "threads", "descriptors"]
    if not any("held up" in error for error in found["errors"].values()):  # else it was the machine that left some out
        rows.append("healthy ones left out")
    for row in rows:
        assert found["rows"][row]["holds"], (row, found["rows"], found["notices"])
    assert len([name for name in found["errors"] if not name.endswith("(healthy)")]) == 37
    assert found["hostile"].keys() == {"down", "unknown"}


def test_a_soak_that_cannot_be_tried_says_so():
    """With an exit status of its own, and without having sent a byte."""
    command = [sys.executable, str(SCRIPT), "--for", "1s"]
    env = {"PATH": "", "HOSTILE_SOAK_INSIDE": "1"}  # as if it were alone, which it is not
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=env)
    if done.returncode != CANNOT:
        pytest.skip("this machine has no network but lo")
    assert done.stderr.startswith("hostile_soak: not tried: expected a network of lo alone, found ")

"""The example that is killed and started again tells of both lives."""

import subprocess
import sys
from pathlib import Path

import pytest

from kit import PATIENCE

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "durable.py"


@pytest.mark.slow
def test_the_durable_example_is_killed_and_goes_on():
    """At least once is tried again, at most once is not, and each tick has one record."""
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, timeout=PATIENCE, check=True)
    first, second = done.stdout.split("killed\n")
    assert sorted(first.splitlines()) == ["backup begins, attempt 1", "report begins, attempt 1"]
    assert "backup begins, attempt 2" in second
    assert "report begins" not in second
    assert sorted(second.splitlines()[-2:]) == ["backup, attempt 2: succeeded", "report, attempt 1: crashed"]
    assert done.stderr == ""

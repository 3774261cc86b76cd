"""Mangled answers of PostgreSQL servers and mangled rows of tables. postgres_fuzz.py itself takes thousands."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import fuzzed_postgres
from kit import PATIENCE

FUZZ = Path(fuzzed_postgres.__file__).with_name("postgres_fuzz.py")
INPUTS = 450


@pytest.mark.slow
def test_no_mangled_answer_hurts_anybody():
    """Nothing is raised, nothing is a defect of ours, healthy targets are up, and little memory is taken."""
    command = [sys.executable, str(FUZZ), "--inputs", str(INPUTS), "--healthy", "20", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * PATIENCE, check=False)
    found = json.loads(done.stdout or done.stderr)
    assert found["defects"] == []
    assert set(found["healthy"]) <= {"up", "unknown"}  # unknown: this machine was itself held up, and says so
    assert found["memory_mib"] < 400
    assert sum(found["ends"][end] for end in ("down", "up", "degraded") if end in found["ends"]) == INPUTS // 3
    assert found["ends"].keys() >= {"probed", "not probed", "tables unread", "tables read, True"}
    assert 0 < found["ends"]["rows that are wrong"] < INPUTS


def test_mangled_answers_are_the_same_for_the_same_seed():
    """So that what was found once can be found again."""

    def said(seed):
        answers = [fuzzed_postgres.Answers(seed, number) for number in range(50)]
        return [(each.welcome, each.to(b"SELECT 1"), each.to(b"LISTEN x"), each.hangs_up) for each in answers]

    assert said("1") == said("1")
    assert said("1") != said("2")

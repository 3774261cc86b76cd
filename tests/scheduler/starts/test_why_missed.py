"""Why a tick has no run is decided in one file: who wants to know opens that one."""

import re
from pathlib import Path

import pytest

import scheduler
from scheduler import MissedReason
from scheduler._starts import why_missed
from scheduler._values import Cause

SOURCE = Path(scheduler.__file__).parent
DECIDED = SOURCE / "_starts" / "why_missed.py"
NAMED = re.compile(r"(?<!is )(?<!is not )(?<!`)\bMissedReason\.([A-Z_]+)\b")
WORDS = {"agent", "testing", "_why"}
"""Folders above: they read reasons and choose none."""


def named_in(file):
    """The reasons that a file gives; what it compares with is not among them."""
    return set(NAMED.findall(file.read_text()))


def test_every_reason_that_there_is_is_given_there():
    """None of them would have to be looked for elsewhere."""
    assert named_in(DECIDED) == {reason.name for reason in MissedReason}


def test_no_other_file_gives_a_reason():
    """But for the answer to who awaits a run of which no tick is missed: of a scheduler that has stopped, or a run that
    another agent was asked for.
    """
    others = [each for each in SOURCE.rglob("*.py") if each != DECIDED and not WORDS & set(each.parts)]
    giving = {each.relative_to(SOURCE).as_posix(): found for each in others if (found := named_in(each))}
    assert giving == {
        "_jobs/asked.py": {"STOPPED"},
        "_fleet/answers.py": {"STOPPED", "REMOVED"},
        "_fleet/rejoining.py": {"STOPPED"},
    }


@pytest.mark.parametrize("cause", Cause)
def test_whatever_ends_a_run_has_a_reason_for_what_waited_behind_it(cause):
    """A cause that comes in later has to say which."""
    assert why_missed.ended_by(cause) in MissedReason

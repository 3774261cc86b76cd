"""The hash that spreads jobs: the same on every machine and in every run."""

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import schedule
from schedule import ScheduleError, phase, phase_us


def test_the_phase_of_a_job_is_fixed_for_all_time():
    """A changed hash would move every job of every user: these values may never change."""
    found = {key: phase(key, "1h") for key in ("", "web", "https://example.org/", "ключ")}
    assert found == {
        "": timedelta(seconds=3058, microseconds=269876),
        "web": timedelta(seconds=1749, microseconds=121652),
        "https://example.org/": timedelta(seconds=2991, microseconds=246264),
        "ключ": timedelta(seconds=2253, microseconds=895712),
    }


def test_the_phase_does_not_depend_on_the_hash_seed():
    """Python's own hash of text changes from run to run."""
    code = "from schedule import phase; print(phase('web', '1h'))"
    path = str(Path(schedule.__file__).parents[1])
    said = {
        subprocess.check_output(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": path}
        )
        for seed in ("1", "2")
    }
    assert said == {f"{phase('web', '1h')}\n".encode()}


@given(st.text(), st.timedeltas(timedelta(microseconds=1), timedelta(days=1000)))
def test_a_phase_lies_within_its_interval(key, interval):
    """At least zero, less than the interval, for any text."""
    assert timedelta(0) <= phase(key, interval) < interval


@given(st.text(), st.integers(1, 10**10), st.integers(1, 100))
def test_a_multiple_of_the_interval_keeps_to_the_old_slots(key, micros, factor):
    """Who checks half as often checks at every second of the instants as before."""
    short, long = timedelta(microseconds=micros), timedelta(microseconds=micros * factor)
    assert phase(key, long) % short == phase(key, short)


def test_a_phase_in_microseconds_is_the_same():
    """For those who count in them, and with the same refusal."""
    assert phase_us("web", 3_600_000_000) == phase("web", "1h") / timedelta(microseconds=1)
    with pytest.raises(ScheduleError, match="at least one microsecond, not 0"):
        phase_us("web", 0)


@pytest.mark.parametrize("interval", [0, "-1s", timedelta(0)])
def test_there_is_no_phase_in_no_interval(interval):
    """Dividing by zero is told in words."""
    with pytest.raises(ScheduleError):
        phase("web", interval)

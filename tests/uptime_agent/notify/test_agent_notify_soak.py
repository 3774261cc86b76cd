"""The soak of notifications in small: the agent is killed, a channel is down, and what receivers got is judged."""

import json
import subprocess
import sys

import pytest

from notify_soak import fits, longest_seen, outages_not_told, told_without_outage
from programs import path_of


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_each_incident_is_told_and_resolved_once_whatever_is_killed():
    """Twelve seconds of what takes half an hour by hand."""
    options = ["--for", "12s", "--kill-every", "5s", "--kinds", "http,tcp,dns", "--json"]
    command = [sys.executable, path_of("notify_soak"), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert found["violations"] == []
    assert done.returncode == 0
    counts = found["counts"]
    assert counts["kills"] >= 2
    assert counts["outages"] > 2
    assert counts["attempts in vain at shaky"] > 0
    assert counts["keys taken by steady"] == counts["keys taken by shaky"] >= 6


def test_the_judge_finds_an_outage_that_nobody_heard_of_and_an_alarm_without_one():
    """A judge that cannot find anything would be none."""
    message = {"incident": "a-1", "target": "a", "began": "2026-01-01T00:00:10.000Z"}
    begin = 1767225600.0 + 9
    assert fits(message, "a", begin, begin + 10)
    assert not fits(message, "b", begin, begin + 10)
    assert list(outages_not_told("ops", [("a", begin, begin + 10)], [message], [])) == []
    assert len(list(outages_not_told("ops", [("a", begin + 100, begin + 110)], [message], []))) == 1
    assert not list(outages_not_told("ops", [("a", begin + 100, begin + 110)], [], [begin + 99]))
    assert longest_seen(begin, begin + 60, [begin + 10]) == 30
    assert len(list(told_without_outage("ops", [("a", begin + 100, begin + 110)], [message]))) == 1

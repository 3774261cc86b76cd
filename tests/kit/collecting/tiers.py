"""Which tests `dev.py test` runs, and what it leaves to `dev.py test --all`.

Left out is what costs most for what it finds: tests marked `slow`, trio where the backend decides nothing, and four
of five examples of each property. Tests that are named by file, word or mark run whole.
"""

import os
import re
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parents[2]

BACKEND_MATTERS = tuple(
    """
    timerqueue scheduler/loop scheduler/runs scheduler/queues scheduler/test_lifecycle_of_scheduler.py
    uptime_agent/checks uptime_agent/heartbeat uptime_agent/push
    uptime_agent/notify/test_agent_channels.py uptime_agent/postgres/reach/test_ways_to_a_server.py
    """.split()
)
"""Where tests run on trio too: tasks, cancellation, threads, sockets and processes differ there."""

COMMANDS = frozenset({"ran", "started", "forked_commands"})
"""Fixtures that start the agent as a program, which has a loop of its own: that of the test decides nothing."""

SLOW = "slow tests"
BACKEND = "on trio where the backend decides nothing"


def runs_all():
    """Tell whether every test is asked for."""
    return os.environ.get("TESTS") == "all"


def are_few(option, args):
    """Tell whether somebody has asked for a few tests, by file or word, or for those that failed."""
    chosen = option.keyword or getattr(option, "lf", False) or getattr(option, "stepwise", False)
    return bool(chosen) or not any(map(os.path.isdir, args))


def are_named(option, args):
    """Tell whether somebody has said which tests run."""
    return bool(option.markexpr) or are_few(option, args)


def why_left(item):
    """Return why a test is left to `--all`, or nothing."""
    if item.get_closest_marker("slow"):
        return SLOW
    if backend_of(item) == "trio" and "BACKENDS" not in os.environ and not backend_matters(item):
        return BACKEND
    return ""


def backend_of(item):
    """Return the backend that a test runs on by its parameters, or nothing."""
    params = item.callspec.params if hasattr(item, "callspec") else {}
    return params.get("anyio_backend") or params.get("backend") or ""


def backend_matters(item):
    """Tell whether a test may find other things on trio."""
    return any(item.path.is_relative_to(TESTS / each) for each in BACKEND_MATTERS) and COMMANDS.isdisjoint(
        item.fixturenames
    )


def split(items):
    """Return the items that run, those that are left to `--all`, and how many of these there are for each reason."""
    kept, left, counts = [], [], Counter()
    for item in items:
        why = why_left(item)
        (left if why else kept).append(item)
        counts[why] += 1
    del counts[""]
    return kept, left, counts


def told(counts):
    """Return the line that says what was left to `--all`."""
    parts = [f"{count} {why}" for why, count in sorted(counts.items(), reverse=True)]
    return "left to `python3 dev.py test --all`: " + ", ".join([*parts, "4 of 5 examples of each property"])


def missing(reasons):
    """Return the line that says which tests this machine has no programs for, or nothing. `reasons`: of all skips."""
    found = [name for reason in reasons for name in re.findall(r"apt-get install ([\w-]+)", reason)]
    if not found:
        return ""
    return f"left out here: {len(found)} tests, for want of: apt-get install {' '.join(sorted(set(found)))}"

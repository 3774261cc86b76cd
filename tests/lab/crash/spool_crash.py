"""Replays a spool into a SQLite file again and again, each time killed with kill -9 some lines later.

The arguments are a folder, and how many lines later. Each replay is a process of its own, forked from
this one, which has no threads.
"""

import json
import os
import shutil
import signal
import sys
from pathlib import Path

from metric_kit import SETTINGS, outcome, sample
from uptime_agent.postgres.storage import MetricWriter, SampleBatch, Spool, SqliteMetrics

BATCHES = [
    SampleBatch((sample(at, ("a", at), ("b", at)), sample(at, (str(at // 2), None), probe=SETTINGS)), (outcome(at),))
    for at in range(6)
]
SNAPSHOTS = [0, 2, 4]
"""Seconds at which the second probe has found something new."""


def fill(folder):
    """Put six batches into the spool, in segments of two or three."""
    spool = Spool(folder / "spool", most_bytes=20_000)
    spool.open()
    for batch in BATCHES:
        spool.append(batch)
    spool.close()


def replay(folder, dies_at=None):
    """Replay all; kill this process at a line of the spool's or the writer's code."""
    store, spool = SqliteMetrics(folder / "metrics.db"), Spool(folder / "spool", most_bytes=20_000)
    writer = MetricWriter(store, spool)
    left = [dies_at]

    def trace(frame, event, _):
        if not frame.f_code.co_filename.endswith(("storage/spool/spool.py", "storage/writer.py")):
            return None
        left[0] -= event == "line"
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    if dies_at:
        sys.settrace(trace)
    writer.open(0.0)
    while writer.turn(0.0):
        pass
    sys.settrace(None)
    found = sorted((each.probe, each.at, each.rows) for each in store.samples(limit=1000))
    writer.finish(lambda: 0.0, 0.0)
    return found, len(store.outcomes(limit=1000)), spool


def main():
    root = Path(sys.argv[1])
    fill(root / "filled")
    step, killed, wrong = int(sys.argv[2]), 0, []
    for line in range(1, 100_000, step):
        folder = root / "life"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(root / "filled", folder)
        pid = os.fork()
        if not pid:
            replay(folder, line)
            os._exit(0)
        if os.waitpid(pid, 0)[1] == 0:
            break
        killed += 1
        found, outcomes, _ = replay(folder)
        at = {probe: [round(when - sample().at) for name, when, _ in found if name == probe] for probe, *_ in found}
        if at != {"wal": list(range(6)), "settings": SNAPSHOTS} or outcomes != len(BATCHES):
            wrong.append((line, at, outcomes))
    print(json.dumps({"killed": killed, "wrong": wrong}))  # noqa: T201 - its result


if __name__ == "__main__":
    main()

"""Measure the time from a change of state to its notification in a local webhook, while a second channel hangs.

    python -m benchmarks.notification_latency [--changes 200] [--targets 50]

The agent is the command `timerqueue run` with a SQLite store, fsync on, in a process of its own. Its targets are broken
and mended one after another, so that each change of state is told by itself. A message says when the check ended that
found the change (`began`, `ended`); the receiver looks at the same clock when it has read all of it.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

WELL_FOR = 4
"""Checks after which a change of state is no flapping."""


class Quiet(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()


def serve(handler):
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server.server_address[1]


def configuration(options, targets, fast, hanging):
    yield '[defaults]\ninterval = "1s"\n[limits]\n"host:*" = 200\n[notify]\ndigest = false'
    yield f'[[channel]]\nname = "fast"\nkind = "webhook"\nurl = "http://127.0.0.1:{fast}/"'
    yield f'[[channel]]\nname = "hangs"\nkind = "webhook"\ntimeout = "5s"\nurl = "http://127.0.0.1:{hanging}/"'
    for number in range(options.targets):
        yield f'[[check]]\nname = "t{number}"\nurl = "http://127.0.0.1:{targets}/t{number}"'


def measure(options):
    broken, delays = set(), []

    class Target(Quiet):
        def do_GET(self):
            self.answer(503 if self.path.strip("/") in broken else 200)

    class Fast(Quiet):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            changed = datetime.fromisoformat(body["began"] if body["kind"] == "trigger" else body["ended"])
            delays.append(time.time() - changed.timestamp())
            self.answer(204)

    class Hanging(Quiet):
        def do_POST(self):
            time.sleep(600)

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "agent.toml")
        file.write_text("\n".join(configuration(options, serve(Target), serve(Fast), serve(Hanging))))
        command = [sys.executable, "-m", "uptime_agent", "run", str(file), "--json"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as agent:
            time.sleep(2 + WELL_FOR)
            while len(delays) < options.changes:
                for change in (broken.add, broken.discard):
                    for number in range(options.targets):
                        change(f"t{number}")
                        time.sleep(1 / options.targets)
                    time.sleep(WELL_FOR)
            agent.terminate()
    return delays


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--changes", type=int, default=200)
    parser.add_argument("--targets", type=int, default=50)
    delays = sorted(measure(parser.parse_args()))
    parts = statistics.quantiles(delays, n=100)
    median, p99, most = (seconds * 1e3 for seconds in (parts[49], parts[98], delays[-1]))
    print(f"{len(delays)} changes: median {median:.1f} ms, p99 {p99:.1f} ms, most {most:.1f} ms")


if __name__ == "__main__":
    main()

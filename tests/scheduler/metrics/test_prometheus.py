"""A real Prometheus scrapes a scheduler over loopback, and has the figures that we have."""

import json
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import anyio.to_thread
import pytest

from debian_servers import program
from exposed import exposed
from held_ports import hold_port, number_of
from kit import PATIENCE, nothing, until, wait_until
from scheduler import Scheduler
from scheduler.metrics import OPENMETRICS_CONTENT_TYPE, exposition

pytestmark = pytest.mark.slow


@contextmanager
def served(text):
    """Serve one text as /metrics in a thread. The port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", OPENMETRICS_CONTENT_TYPE)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join(PATIENCE)
        server.server_close()


class Prometheus:
    """A server of Debian's package that scrapes one port of this machine each second."""

    def __init__(self, folder, target):
        with hold_port() as held:
            self._port = number_of(held)
        (folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s}\n"
            f"scrape_configs: [{{job_name: us, static_configs: [{{targets: ['127.0.0.1:{target}']}}]}}]\n"
        )
        self.process = subprocess.Popen(
            [
                program("prometheus"), f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                f"--web.listen-address=127.0.0.1:{self._port}", "--log.level=error",
            ],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def query(self, query):
        """Return the series that an instant query finds; none while the server begins."""
        url = f"http://127.0.0.1:{self._port}/api/v1/query?{urlencode({'query': query})}"
        try:
            with urlopen(url, timeout=5) as answer:
                return json.load(answer)["data"]["result"]
        except (URLError, ConnectionError):
            return []


async def test_what_prometheus_has_scraped_is_what_we_have_exposed(tmp_path, quiet):
    """Every series with its labels and its value, an id with quotes and an end of line among them."""
    async with Scheduler(limits={"db": 2}) as s:

        async def broken():
            raise ValueError

        s.add(nothing, "@every 1h", id='a "job"\\\n of many lines', needs="db", start="now")
        s.add(broken, "@every 1h", id="broken", start="now")
        s.add(nothing, "@every 1h", id="paused").pause()
        await until(lambda: s.statistics().runs == 2 and not s.statistics().active_tasks)
        text = exposition(s, jobs="*", openmetrics=True)
    with served(text) as port:
        server = Prometheus(tmp_path, port)
        try:
            await anyio.to_thread.run_sync(wait_until, lambda: server.query('up{job="us"} == 1'))
            found = await anyio.to_thread.run_sync(server.query, '{__name__=~"timerqueue.*"}')
        finally:
            server.process.terminate()
            server.process.wait(PATIENCE)
    scraped = {}
    for each in found:
        labels = {name: value for name, value in each["metric"].items() if name not in {"job", "instance"}}
        if "le" in labels:
            labels["le"] = float(labels["le"])
        scraped[labels.pop("__name__"), frozenset(labels.items())] = float(each["value"][1])
    wanted = {
        (name, frozenset((key, float(value) if key == "le" else value) for key, value in labels)): value
        for (name, labels), value in exposed(text, openmetrics=True).items()
    }
    assert scraped == wanted

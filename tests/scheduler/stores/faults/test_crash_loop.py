"""A short run of crash_loop.py: `python3 dev.py crash` is the long one."""

import subprocess
import sys

import pytest

from programs import path_of

pytestmark = pytest.mark.slow

PROGRAM = path_of("crash_loop")


@pytest.mark.timeout(180)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_an_agent_that_is_killed_again_and_again_keeps_its_promises(request, kind):
    """So few kills may be inconclusive (2); what must never be found is a violation (1)."""
    options = ["--store", kind, "--kills", "5"]
    if kind == "postgres":
        server, schema = map(request.getfixturevalue, ("postgres_server", "postgres_schema"))
        options += ["--dsn", server.dsn, "--schema", schema]
    done = subprocess.run([sys.executable, PROGRAM, *options], capture_output=True, text=True, check=False)
    assert done.returncode in {0, 2}, done.stdout + done.stderr
    assert "kills 5" in done.stdout

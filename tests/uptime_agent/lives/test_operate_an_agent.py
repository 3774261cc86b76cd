"""The page docs/operate-an-agent.md is carried out as it stands: see tests/kit/tutorials.py."""

import shutil
import sys
from pathlib import Path

import anyio
import pytest

from kit import PATIENCE
from tutorials import carry_out, environment_of

PAGE = Path(__file__).resolve().parents[3] / "docs" / "operate-an-agent.md"


@pytest.fixture(scope="module")
def anyio_backend():
    """The commands under test have loops of their own; which one the test uses makes no difference."""
    return "asyncio"


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals and a shell of POSIX")
@pytest.mark.usefixtures("keys_work")
@pytest.mark.skipif(shutil.which("curl") is None, reason="the page uses curl: apt-get install curl")
async def test_an_agent_is_operated_as_the_page_says(tmp_path, ports):
    """From the first line to the last, as a reader would do it."""
    folder = tmp_path / "work"
    folder.mkdir()
    page = PAGE.read_text("utf-8").replace("8080", str(ports[0])).replace("8075", str(ports[1]))
    with anyio.fail_after(2 * PATIENCE):
        await carry_out(page, folder, environment_of(tmp_path), "uptime.toml")

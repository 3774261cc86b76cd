"""The tutorial docs/first-monitor.md is carried out as it stands: see tests/kit/tutorials.py."""

import shutil
import sys
from pathlib import Path

import anyio
import pytest

from kit import PATIENCE
from tutorials import blocks, carry_out, environment_of, masked

PAGE = Path(__file__).resolve().parents[3] / "docs" / "first-monitor.md"


@pytest.fixture(scope="module")
def anyio_backend():
    """The commands under test have loops of their own; which one the test uses makes no difference."""
    return "asyncio"


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals and a shell of POSIX")
@pytest.mark.usefixtures("keys_work")
@pytest.mark.skipif(shutil.which("curl") is None, reason="the page uses curl: apt-get install curl")
async def test_the_tutorial_is_true(tmp_path, ports):
    """From the first line to the last, as a reader would do it, only twice as fast."""
    folder = tmp_path / "work"
    folder.mkdir()
    page = PAGE.read_text("utf-8").replace("8080", str(ports[0])).replace("8075", str(ports[1]))
    page = page.replace("/tmp/told.json", str(tmp_path / "told.json"))
    page = page.replace('"2s"', '"1s"').replace('retry_interval = "1s"', 'retry_interval = "100ms"')
    with anyio.fail_after(2 * PATIENCE):
        await carry_out(page, folder, environment_of(tmp_path), "uptime.toml")


def test_each_block_of_the_tutorial_is_followed():
    """One without its terminal would be passed over."""
    page = PAGE.read_text("utf-8")
    found = blocks(page)
    assert len(found) == page.count("```console\n") + page.count("```toml\n") > 20
    assert [lines for terminal, kind, lines in found if (terminal is None) != (kind == "toml")] == []


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("2026-11-21T12:00:02.191Z  -> UP  a in 3.5 ms", "2027-01-01T00:00:00.000Z  -> UP  a in 350 us"),
        ("was down for 11s; it was", "was down for 1m02s; it was"),
    ],
)
def test_lines_are_alike_but_for_their_numbers(line, other):
    """Nothing else of them is passed over."""
    assert masked(line) == masked(other)
    assert masked(line) != masked(other.replace("was", "is").replace("UP", "DOWN"))

"""The page docs/howto/many-machines.md is carried out as it stands: see tests/kit/tutorials.py."""

import sys
from pathlib import Path

import anyio
import pytest

from debian_servers import program
from kit import PATIENCE
from tutorials import blocks, carry_out, environment_of

PAGE = Path(__file__).resolve().parents[3] / "docs" / "howto" / "many-machines.md"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def anyio_backend():
    """The commands under test have loops of their own; which one the test uses makes no difference."""
    return "asyncio"


@pytest.fixture
def fresh_server(postgres_server):
    """A PostgreSQL on which nobody has shared anything: which agent has what depends on how many there have been."""
    with type(postgres_server)() as server:
        yield server


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals and a shell of POSIX")
@pytest.mark.usefixtures("keys_work")
async def test_the_way_to_many_machines_is_true(tmp_path, ports, fresh_server):
    """From nothing to an agent that is killed and replaced, as a reader would do it."""
    await follow(parts()[0], tmp_path, ports, fresh_server)


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals and a shell of POSIX")
@pytest.mark.usefixtures("keys_work")
async def test_the_way_to_jobs_in_a_queue_is_true(tmp_path, ports, fresh_server):
    """From nothing to a worker that is killed and replaced, and a beanstalkd that is."""
    program("beanstalkd")
    await follow(parts()[1], tmp_path, ports, fresh_server)


def parts():
    """Return the page up to its jobs in a queue, and from there on: each begins with nothing."""
    first, second = PAGE.read_text("utf-8").split("\n## Jobs of your own")
    return first, second


async def follow(page, tmp_path, ports, server):
    """Do what a part of the page says, with that server and with ports that are free."""
    folder = tmp_path / "work"
    folder.mkdir()
    page = page.replace("8080", str(ports[0])).replace("11300", str(ports[1]))
    page = page.replace("@127.0.0.1/postgres?", f"@/postgres?host={server.folder}&")
    page = page.replace("@127.0.0.1/postgres", f"@/postgres?host={server.folder}")
    with anyio.fail_after(8 * PATIENCE):
        await carry_out(page, folder, environment_of(tmp_path), "fleet.toml")


def test_each_block_of_the_page_is_followed():
    """One without its terminal would be passed over."""
    page = PAGE.read_text("utf-8")
    found = blocks(page)
    assert len(found) == sum(page.count(f"```{kind}\n") for kind in ("console", "toml", "python")) > 10
    assert [lines for place, kind, lines in found if (place is None) != (kind == "toml")] == []

"""What weakens the agent is said where a person looks: certificates not verified, places open to everybody."""

import io
import json
import os
import sys

import pytest
from rich.console import Console

from kit import when
from scheduler import Scheduler
from uptime_agent.checks.contract.result import CheckResult, Status
from uptime_agent.config.config import parse_config
from uptime_agent.config.place import MetricsPlace, StorePlace
from uptime_agent.config.rights import warnings_about, warnings_about_owners
from uptime_agent.show.display import Screen
from uptime_agent.show.table import draw
from uptime_agent.standing.status import TargetStatus, fold

posix = pytest.mark.skipif(os.name != "posix", reason="rights are told in another way there")
CHECK = '[[check]]\nname = "{}"\nurl = "https://h"\nverify = false\n'


@pytest.fixture(scope="module")
def anyio_backend():
    """The process under test has a loop of its own; which one the test uses makes no difference."""
    return "asyncio"


async def test_verify_false_is_told_at_the_start_and_by_check(ran, config):
    """In words and with names; in JSON each check says whether its certificate is looked at."""
    file = config('[[check]]\nname = "shop"\nurl = "https://127.0.0.1:1"\nverify = false\nstart = "now"')
    code, out, _ = await ran("check", file)
    assert code == 0
    (line,) = (line for line in out.splitlines() if line.startswith("shop: "))
    assert line.endswith(", certificate not verified")
    warning = "certificates are not verified (verify = false) of shop"
    assert f"warning: {warning}\n" in out
    code, out, _ = await ran("run", file, "--for", "300ms")
    assert f"  {warning}\n" in out
    _, out, _ = await ran("run", file, "--once", "--json")
    checks = [event for event in map(json.loads, out.splitlines()) if event["event"] == "check"]
    assert {event["name"]: event["verified"] for event in checks} == {"shop": False, "site": True, "db": True}


async def test_passwords_in_clear_are_told_at_the_start_and_by_check(ran, config):
    """Of checks and of servers whose probes run; not where the file leaves it at what we do by ourselves."""
    file = config("""[[check]]
        name = "orders"
        url = "postgresql://me:hunter2@127.0.0.1:1/d"
        require_auth = "password"
        start = "now"
        [[check]]
        name = "other"
        url = "postgresql://me:hunter2@127.0.0.1:1/d"
        [[postgres]]
        name = "main"
        dsn = "host=127.0.0.1 port=1 require_auth=!md5"
        """)
    code, out, _ = await ran("check", file)
    assert code == 0
    lines = {line.partition(":")[0]: line for line in out.splitlines()}
    assert lines["orders"].endswith(", password may be sent in clear")
    assert lines["server main"].endswith(", password may be sent in clear")
    assert "in clear" not in lines["other"]
    warning = "passwords may be sent in clear, without TLS (require_auth), to orders, main"
    assert f"warning: {warning}\n" in out
    code, out, _ = await ran("run", file, "--for", "300ms")
    assert f"  {warning}\n" in out


def test_of_many_checks_that_verify_nothing_some_are_named():
    """And one that is disabled is none of them."""
    text = "".join(CHECK.format(n) for n in range(8)) + CHECK.format("off") + "enabled = false\n"
    (warning,) = parse_config(text, "f", {}).all_warnings
    assert warning.endswith(" of 0, 1, 2, 3, 4 and 3 more")


def test_the_table_says_whose_certificate_is_not_verified():
    """Beside what was found."""
    known = TargetStatus("api", "https://h", "http", is_verified=False)
    up = CheckResult(status=Status.UP, latency=0.1, detail={"http_status": 200})
    scheduler = Scheduler()
    scheduler.add(print, "@every 1m", id="api")
    known.last = fold([up])
    known.last_run = type("Run", (), {"ended": when(10.0), "lateness": 0.0})()
    console = Console(file=io.StringIO(), width=160, height=24)
    console.print(draw(Screen(targets=[known], scheduler=scheduler, now=lambda: 20.0), 160, 24))
    assert "status 200, certificate not verified" in console.file.getvalue()


@posix
async def test_a_folder_that_everybody_may_write_to_is_told(ran, config, tmp_path):
    """Once, though configuration and store both lie in it; and with what to do about it."""
    file = config()
    tmp_path.chmod(0o777)
    warning = f"everybody on this machine may write to the folder {tmp_path}: chmod o-w {tmp_path}"
    for command in (["check", file], ["run", file, "--for", "200ms"]):
        code, out, _ = await ran(*command)
        assert (code, out.count(warning)) == (0, 1)
    tmp_path.chmod(0o700)
    _, out, _ = await ran("check", file)
    assert warning not in out


@posix
async def test_a_store_elsewhere_is_looked_at_too(ran, config, tmp_path):
    """Also the one that the command line names."""
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    code, out, _ = await ran("run", config(), "--for", "200ms", "--store", f"sqlite:///{folder}/a.db")
    assert code == 0
    assert f"may write to the folder {folder}: " in out


@posix
def test_who_may_write_is_asked_of_the_file_and_of_every_folder_above_it(tmp_path):
    """A folder in which only owners may remove, as /tmp is, is no danger; a link counts as what it leads to."""
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    file = inner / "uptime.toml"
    file.write_text("")
    link = tmp_path / "link.toml"
    link.symlink_to(file)
    assert warnings_about([file, link, inner / "none.db"]) == []
    file.chmod(0o666)
    assert warnings_about([link]) == [f"everybody on this machine may write to the file {file}: chmod o-w {file}"]
    file.chmod(0o600)
    inner.parent.chmod(0o777)
    assert [text.split(": chmod")[0].rpartition(" ")[2] for text in warnings_about([file])] == [str(inner.parent)]
    inner.parent.chmod(0o1777)
    assert warnings_about([file]) == []


@posix
def test_what_another_user_owns_is_told(tmp_path):
    """Whoever owns a store may change what is remembered, though its mode lets nobody else in."""
    store, spool = tmp_path / "uptime.db", tmp_path / "uptime.metrics.spool"
    store.touch(0o600)
    spool.mkdir(0o700)
    assert warnings_about_owners([store, spool, tmp_path / "none.db"]) == []
    if os.geteuid() == 0:
        os.chown(store, 12_345, -1)
        os.chown(spool, 12_345, -1)
    ours = store.stat().st_uid + 1
    found = warnings_about_owners([store, spool], ours)
    assert [each.split(" belongs to ")[0] for each in found] == [f"the file {store}", f"the folder {spool}"]


@posix
def test_the_files_of_metrics_are_looked_at_too(tmp_path):
    """Their spool is a folder beside the history."""
    history = StorePlace(file=tmp_path / "uptime.db")
    names = [each.name for each in MetricsPlace(base=tmp_path / "uptime.toml").files(history)]
    assert names == ["uptime.metrics.db", "uptime.metrics.spool"]


@pytest.mark.skipif(sys.platform == "win32", reason="has no /dev/null")
def test_a_device_is_no_file(tmp_path):
    """Everybody may write to /dev/null."""
    assert warnings_about([type(tmp_path)("/dev/null")]) == []

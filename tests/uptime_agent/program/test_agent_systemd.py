"""The recipe for systemd works as it is written: the unit, the configuration, and what the service may write to."""

import configparser
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from kit import PATIENCE
from uptime_agent.config.config import parse_config

RECIPES = Path(__file__).parents[3] / "docs" / "recipes.md"
(SECTION,) = re.findall(r"## Under systemd\n(.*?)\n## ", RECIPES.read_text("utf-8"), re.DOTALL)
BLOCKS = dict(re.findall(r"```(ini|toml)\n(.*?)```", SECTION, re.DOTALL))


@pytest.fixture
def unit():
    """Read the directives of the unit; the case of their names counts."""
    found = configparser.ConfigParser(interpolation=None)
    found.optionxform = str
    found.read_string(BLOCKS["ini"])
    return found


@pytest.fixture
def command(unit):
    """Read what the unit runs: its arguments after the program."""
    program, *arguments = shlex.split(unit["Service"]["ExecStart"])
    assert PurePosixPath(program).name == "timerqueue"
    return arguments


def test_systemd_understands_every_directive(unit, tmp_path):
    """A key that it does not know would be ignored."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("needs systemd-analyze: apt-get install systemd")
    file = tmp_path / "uptime.service"
    program = shlex.split(unit["Service"]["ExecStart"])[0]
    file.write_text(BLOCKS["ini"].replace(program, "/bin/true"))  # it looks whether the program is there
    done = subprocess.run([analyze, "verify", file], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_service_remembers_where_it_may_write(unit, command):
    """Its user has no other folder: beside the configuration, where an agent remembers by default, it may not write."""
    config = parse_config(BLOCKS.get("toml", ""), command[-1], {})
    folder = PurePosixPath("/var/lib") / unit["Service"].get("StateDirectory", "none")
    assert unit["Service"]["DynamicUser"] == "yes"
    assert config.store.file.parent == folder


def test_the_service_may_open_what_its_limits_need(unit):
    """A connection for each check at a time, and files of its own."""
    limits = parse_config(BLOCKS["toml"], "uptime.toml", {}).limits
    assert int(unit["Service"]["LimitNOFILE"]) >= 2 * limits.total


@pytest.mark.parametrize(("token", "said"), [("SHOP_TOKEN=hunter22", "restarted"), ("SHOP=hunter22", "")])
def test_the_file_is_checked_with_the_secrets_of_the_service(tmp_path, token, said):
    """The line of the page, as a shell reads it: without them the check would refuse what the service runs."""
    (line,) = re.findall(r"^    (.* && systemctl restart uptime)$", SECTION, re.MULTILINE)
    text = BLOCKS["toml"].replace("/var/lib/timerqueue", str(tmp_path))
    (tmp_path / "uptime.toml").write_text(f'{text}headers = {{ Authorization = {{ env = "SHOP_TOKEN" }} }}\n')
    (tmp_path / "secrets.env").write_text(f"{token}\n")
    for documented, here in [
        ("/etc/timerqueue", str(tmp_path)),
        ("timerqueue check", f"{sys.executable} -m uptime_agent check"),
        ("systemctl restart uptime", "echo restarted"),
    ]:
        assert documented in line
        line = line.replace(documented, here)
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.stdout.strip().endswith(said) if said else "restarted" not in done.stdout
    assert ("SHOP_TOKEN" in done.stderr) == (not said)


async def test_the_command_of_the_unit_runs_and_ends_at_sigterm(started, ran, command, up, tmp_path):
    """Without a terminal, in less than systemd waits; and what the recipe says to look at is there."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "lib").mkdir()
    file = str(tmp_path / "etc" / "uptime.toml")
    text = BLOCKS["toml"].replace("/var/lib/timerqueue", str(tmp_path / "lib"))
    text = text.replace("https://example.org/", f"http://127.0.0.1:{up.port}/")
    (tmp_path / "etc" / "uptime.toml").write_text(text.replace("[[check]]", '[[check]]\nstart = "now"'))
    assert (await ran("check", file))[0] == 0
    async with started(*command[:-1], file, stderr=subprocess.STDOUT) as agent:
        await agent.line_with("-> UP", "website")
        agent.process.send_signal(signal.SIGTERM)
        assert await agent.end() == 0
    code, out, _ = await ran("history", "--config", file)
    assert code == 0
    assert "website" in out
    assert [each.name for each in (tmp_path / "etc").iterdir()] == ["uptime.toml"]

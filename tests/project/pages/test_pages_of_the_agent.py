"""What the documents say of the agent is what it takes: its commands with their options, and its configuration."""

import re
from pathlib import Path

import click
import pytest
from attrs import fields

from uptime_agent.cli import cli
from uptime_agent.config.config import Config, parse_config
from uptime_agent.reload import FOLLOWED
from uptime_agent.toml import ConfigError

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = [
    ROOT,
    *(ROOT / name for name in ("docs", "docs/agent", "docs/howto", "docs/reference", "docs/stores", "examples")),
]
PAGES = [page for folder in FOLDERS for page in sorted(folder.glob("*.md"))]
COMMANDS = ROOT / "docs" / "agent" / "command-line.md"
TOML = re.compile(r"```toml\n(.*?)```", re.DOTALL)
COMMAND = re.compile(r"(?:\$ |`|^    |; |&& )timerqueue ((?:-v+ )?[a-z]+(?: [^`|;>&\n#]*)?)", re.MULTILINE)
NOT_HERE = re.compile(r"a file that can be read|a program that can be run|kind apprise needs")
"""What a reader's machine has and this one need not."""


def calls():
    """Yield each call of the command on a page."""
    for page in PAGES:
        for found in COMMAND.finditer(page.read_text("utf-8")):
            yield pytest.param(found[1].split(), id=f"{page.name}: {found[1].strip()}")


@pytest.mark.parametrize("words", list(calls()))
def test_a_command_of_a_page_is_there_with_its_options(words):
    """One that was renamed would be typed by every reader."""
    command = cli
    for word in [word for word in words if not word.startswith("-v")]:
        others = getattr(command, "commands", {})
        if (isinstance(command, click.Group) and re.fullmatch("[a-z]+", word)) or word in others:
            command = others[word]
        elif word.startswith("--"):
            assert word.rstrip(")").partition("=")[0] in {opt for each in command.params for opt in each.opts}


def test_the_page_has_each_command():
    """A command that nobody finds is one that nobody has. Its options stand in docs/reference."""
    page = COMMANDS.read_text("utf-8")
    assert [name for name in cli.commands if f"| `timerqueue {name} " not in page] == []


def test_the_page_says_what_is_followed_while_the_agent_runs():
    """And what takes a new start."""
    page = COMMANDS.read_text("utf-8")
    (line,) = re.findall(r"^- (.*) take effect when the agent starts again", page, re.MULTILINE)
    later = {each.name for each in fields(Config)} - FOLLOWED
    assert set(re.findall(r"[a-z]+", line.replace(" and ", " "))) == {
        "history" if each == "retention" else each for each in later
    }


def files():
    """Yield each configuration on a page."""
    for page in PAGES:
        for found in TOML.finditer(page.read_text("utf-8")):
            if "[project" not in found[1]:
                line = page.read_text("utf-8").count("\n", 0, found.start()) + 1
                yield pytest.param(found[1], id=f"{page.name}:{line}")


@pytest.mark.parametrize("text", list(files()))
def test_a_configuration_of_a_page_is_accepted(text):
    """With a check beside it where it shows none, and whatever it takes from files and variables of its own."""
    push = re.findall(r'"push://', text) and "[push]" not in text
    more = "" if "[[check]]" in text else '\n[[check]]\nurl = "http://h"\n'
    more += '\n[push]\nlisten = "127.0.0.1:8075"\n' if push else ""
    problems = []
    try:
        parse_config(text + more, "uptime.toml", {}, needs_secrets=False)
    except ConfigError as exc:
        problems = [each.text for each in exc.problems if not NOT_HERE.search(each.text)]
    assert problems == []

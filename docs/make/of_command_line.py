"""The page about the command line: each command with its options, and the exit codes."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc

import click
from prose import paragraphs, sentence

from uptime_agent.cli import cli


def command_line_page() -> str:
    """Return the page of all commands."""
    return "\n\n".join(
        [
            "# Reference: command line",
            "[The command line](../agent/command-line.md) shows what you do with these commands.",
            "## Exit codes",
            exit_codes(cli.epilog or ""),
            "## For all commands",
            options_of(cli),
            *commands(cli, "timerqueue"),
        ]
    )


def exit_codes(epilog: str) -> str:
    """Return the exit codes as the help shows them."""
    lines = epilog.replace("\b", "").strip().splitlines()
    return "\n".join(["```text", *(line.removeprefix("  ") for line in lines[1:]), "```"])


def commands(group: click.Command, name: str) -> Iterator[str]:
    """Yield the sections of the commands within a command, by name."""
    for each, command in sorted(getattr(group, "commands", {}).items()):
        if not isinstance(command, click.Group):
            yield section(command, f"{name} {each}")
        yield from commands(command, f"{name} {each}")


def section(command: click.Command, name: str) -> str:
    """Return the section of one command: its usage, its help and its options."""
    usage = " ".join([name, *command.collect_usage_pieces(click.Context(command))])
    shown = [f"## `{name}`", f"```text\n{usage}\n```", paragraphs(cleandoc(command.help or "").replace("\b", ""))]
    return "\n\n".join([*shown, *filter(None, [options_of(command)])])


def options_of(command: click.Command) -> str:
    """Return one item for each option of a command."""
    context = click.Context(command)
    found = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    return "\n".join(f"- {names(each, context)}: {meaning(each)}" for each in found)


def names(option: click.Option, context: click.Context) -> str:
    """Return the names of an option with what it takes: `--every DURATION`."""
    takes = "" if option.is_flag or option.count else f" {option.make_metavar(context)}".replace("INTEGER RANGE", "N")
    return ", ".join(f"`{each}{takes}`" for each in sorted(option.opts, key=len, reverse=True))


def meaning(option: click.Option) -> str:
    """Return the help of an option, with its default if it shows one."""
    default = f" Without it: `{option.default}`." if option.show_default and option.default is not None else ""
    return sentence(option.help or "") + default

"""Commands that give callers of the control API tokens, and take them back."""

# ruff: noqa: PLC0415 - as in cli.py

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..output import BAD_USAGE, FAILED, config_or_end, end, print_lines

if TYPE_CHECKING:
    from ..api import TokenFile

_FILE = click.argument("file", type=click.Path(path_type=Path), envvar="TIMERQUEUE_FILE")


@click.group("token")
def token() -> None:
    """Give callers of the control API tokens, and take them back.

    FILE is the configuration of the agent, with [api]. A change holds at once, also for an agent that runs.
    """


@token.command()
@click.argument("name")
@_FILE
@click.option(
    "--scope",
    type=click.Choice(["read", "operate", "admin"]),
    required=True,
    help="read: see jobs. operate: also run, pause and skip them, and see arguments and errors. admin: everything.",
)
def add(name: str, file: Path, scope: str) -> None:
    """Make a token for NAME, and print it. It is shown this once: the agent keeps only its hash."""
    from timerqueue import system_random

    from ..api import TokensUnfit, made

    secret = made(system_random())
    try:
        _tokens(file).add(name, scope, secret)
    except TokensUnfit as exc:
        end(str(exc), BAD_USAGE)
    print_lines([secret])


@token.command("list")
@_FILE
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def list_(file: Path, *, as_json: bool) -> None:
    """List who has tokens, and their scopes."""
    found = _tokens(file)
    if (trouble := found.trouble) is not None:
        end(trouble, BAD_USAGE)
    print_lines(
        json.dumps({"name": each.name, "scope": each.scope}) if as_json else f"{each.name}  {each.scope}"
        for each in found.tokens
    )


@token.command()
@click.argument("name")
@_FILE
def revoke(name: str, file: Path) -> None:
    """Take the token of NAME back. Its open streams end as well."""
    from ..api import TokensUnfit

    try:
        _tokens(file).revoke(name)
    except TokensUnfit as exc:
        end(str(exc), FAILED)
    print_lines([f"revoked: {name}"])


def _tokens(file: Path) -> TokenFile:
    from ..config import read_config

    api = config_or_end(lambda: read_config(file, os.environ, needs_secrets=False)).api
    if api is None:
        end(f"{file} has no [api]: add the line [api], or there is nothing to ask with a token", BAD_USAGE)
    from ..api import TokenFile

    return TokenFile(api.tokens)

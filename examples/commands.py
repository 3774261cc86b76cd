"""The commands of servers.py and fleet.py: they break and mend what is checked, while it is checked."""

import errno
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import suppress
from typing import Protocol

import anyio

HELP = "break NAME [HOW], mend NAME, mend (all of them), list; Ctrl-C ends the servers"


class Breakable(Protocol):
    """A target that works, or is broken in one of the ways of `faults`: what each looks like from outside."""

    name: str
    faults: Mapping[str, str]
    broken: str | None

    def become(self, how: str | None) -> None:
        """Break in that way; None: work."""


def obey(line: str, targets: Iterable[Breakable]) -> str:
    """Carry out one command. Returns what to say."""
    named = {target.name: target for target in targets}
    match line.split():
        case ["break", name, *how] if name in named and len(how) < 2:
            return broken(named[name], *how)
        case ["mend", name] if name in named:
            return mended([named[name]])
        case ["mend"]:
            return mended([target for target in named.values() if target.broken])
        case ["break" | "mend", name, *_] if name not in named:
            return f"there is no {name}: one of {', '.join(named)}"
        case ["list"]:
            return "\n".join(map(described, named.values()))
        case _:
            return HELP


def broken(target: Breakable, how: str = "") -> str:
    """Break a target; if nobody says how, in the first of its ways."""
    how = how or next(iter(target.faults))
    if how not in target.faults:
        return f"{target.name} breaks in these ways: {', '.join(target.faults)}"
    target.become(how)
    return f"{target.name} is broken: {how} ({target.faults[how]})"


def mended(targets: list[Breakable]) -> str:
    """Have targets work again."""
    for target in targets:
        target.become(None)
    return f"mended: {', '.join(target.name for target in targets) or 'nothing was broken'}"


def described(target: Breakable) -> str:
    """One line about a target: how it is, and how it can break."""
    ways = "; ".join(f"{how}: {seen}" for how, seen in target.faults.items())
    return f"{target.name:<12} {target.broken or 'works':<10} {ways}"


async def typed() -> AsyncIterator[str]:
    """The lines that come on standard input, until it ends or belongs to somebody else."""
    rest = b""
    while True:
        with suppress(PermissionError):  # of a file, or /dev/null, which never keep anybody waiting
            await anyio.wait_readable(0)
        try:
            came = os.read(0, 4096)
        except OSError as exc:  # in the background of a shell, whose terminal it is
            if exc.errno != errno.EIO:
                raise
            return
        if not came:
            return
        *lines, rest = (rest + came).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "replace")

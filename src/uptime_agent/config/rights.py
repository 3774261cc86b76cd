"""Who else may write our files or deceive our checks."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

_MOST_NAMED: Final = 5


def warnings_about(paths: Iterable[Path]) -> list[str]:
    """Warn of files, and folders above, that every user may write."""
    return list(dict.fromkeys(text for path in paths for text in _warnings(path)))


def warnings_about_owners(paths: Iterable[Path], ours: int | None = None) -> list[str]:
    """Warn of paths of other users, except root: owners may change them."""
    if os.name != "posix":
        return []
    trusted = {0, os.geteuid() if ours is None else ours}
    return [text for path in paths for text in _of_others(path, trusted)]


def _of_others(path: Path, trusted: Collection[int]) -> Iterator[str]:
    try:
        owner = path.stat().st_uid
    except OSError:
        return
    if owner not in trusted:
        what = "folder" if path.is_dir() else "file"
        yield (
            f"the {what} {path} belongs to {_name_of(owner)}, who may change what is remembered: "
            f"chown it to the user of the agent, or move it away"
        )


def _name_of(user: int) -> str:
    import pwd  # noqa: PLC0415 - on POSIX alone

    try:
        return f"the user {pwd.getpwuid(user).pw_name}"
    except KeyError:
        return f"user {user}"


def weaknesses(unverified: Sequence[str], in_clear: Sequence[str]) -> Iterator[str]:
    """Say what a network attacker can forge or read."""
    if unverified:
        yield f"certificates are not verified (verify = false) of {_listed(unverified)}"
    if in_clear:
        yield f"passwords may be sent in clear, without TLS (require_auth), to {_listed(in_clear)}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _warnings(path: Path) -> Iterator[str]:
    if os.name != "posix":  # rights are told in another way there
        return
    real = path.resolve()
    for each in (real, *real.parents):
        try:
            mode = each.stat().st_mode
        except OSError:  # there is none yet, or we may not look, so no other user may either
            continue
        if mode & stat.S_IWOTH and (stat.S_ISREG(mode) or (stat.S_ISDIR(mode) and not mode & stat.S_ISVTX)):
            what = "folder" if stat.S_ISDIR(mode) else "file"
            yield f"everybody on this machine may write to the {what} {each}: chmod o-w {each}"

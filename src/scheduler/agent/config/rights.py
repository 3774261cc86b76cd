"""Rights of others: who may write where the agent reads what it does, and keeps what it found."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path


def warnings_about(paths: Iterable[Path]) -> list[str]:
    """Warn of files, and of folders that lead to them, to which everybody may write."""
    return list(dict.fromkeys(text for path in paths for text in _warnings(path)))


def _warnings(path: Path) -> Iterator[str]:
    if os.name != "posix":  # rights are told in another way there
        return
    real = path.resolve()
    for each in (real, *real.parents):
        try:
            mode = each.stat().st_mode
        except OSError:  # there is none yet, or we may not look: then nobody else is let in either
            continue
        if mode & stat.S_IWOTH and (stat.S_ISREG(mode) or (stat.S_ISDIR(mode) and not mode & stat.S_ISVTX)):
            what = "folder" if stat.S_ISDIR(mode) else "file"
            yield f"everybody on this machine may write to the {what} {each}: chmod o-w {each}"

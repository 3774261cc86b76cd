"""Whether the package `scheduler` next to this one is ours.

PyPI's distribution scheduler overwrites our files, and removes them when uninstalled. Only another package can tell.
"""

from __future__ import annotations

from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

OURS: Final = "from timerqueue import"

MEND: Final = "pip uninstall scheduler, then pip install --force-reinstall --no-deps timerqueue"


def check_neighbour(folder: Path) -> None:
    """Raise ImportError if another distribution overwrote or removed `scheduler` in that folder.

    Unreadable source is left alone.
    """
    spec = PathFinder.find_spec("scheduler", [str(folder)])
    if spec is None:
        return
    if spec.origin is None or spec.loader is None:
        msg = (
            f"the package scheduler in {folder} has lost its files: another distribution of that name was installed "
            f"over it, and uninstalled. {MEND}"
        )
        raise ImportError(msg, name="scheduler")
    source = getattr(spec.loader, "get_source", lambda _name: None)("scheduler")
    if source is not None and OURS not in source:
        msg = (
            f"{spec.origin} is not that of timerqueue: another distribution (PyPI has one called scheduler) has been "
            f"installed over it. {MEND}. Two environments can have one each."
        )
        raise ImportError(msg, name="scheduler")

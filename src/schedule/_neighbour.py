"""The package `scheduler` beside this one: whether it is still ours.

PyPI has a distribution called scheduler. Installed after ours it puts its files over ours, without a word, and pip is
content. Uninstalled, it takes ours with it. Then nothing of that package can say so; this one can.
"""

from __future__ import annotations

from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

OURS: Final = "from timerqueue import"
"""Stands in the source of our `scheduler`, and in no other."""

MEND: Final = "pip uninstall scheduler, then pip install --force-reinstall --no-deps timerqueue"


def check_neighbour(folder: Path) -> None:
    """Raise ImportError if the package `scheduler` in that folder is another distribution's, or was removed by one. One
    that is elsewhere on the path is no neighbour, and what cannot be looked at is left alone.
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

from __future__ import annotations

from collections.abc import Iterable, Mapping

Needs = tuple[tuple[str, int], ...]
"""Limits with the units needed of each, sorted by name."""


def needs_of(needs: str | Iterable[str] | Mapping[str, int]) -> Needs:
    """Normalise one name, several names, or a mapping of names to units.

    Raises TypeError for another type, ValueError unless units are whole numbers from 1.
    """
    if not needs:
        return ()
    if isinstance(needs, str):
        needs = (needs,)
    if not isinstance(needs, Iterable):
        msg = f'needs must be the name of a limit, several, or a mapping such as {{"http": 2}}, not {needs!r}'
        raise TypeError(msg)
    units = dict(needs) if isinstance(needs, Mapping) else dict.fromkeys(needs, 1)
    for name, count in units.items():
        if not isinstance(name, str) or not isinstance(count, int) or isinstance(count, bool) or count < 1:
            msg = f"needs must map names of limits to whole units from 1, not {name!r} to {count!r}"
            raise ValueError(msg)
    return tuple(sorted(units.items()))

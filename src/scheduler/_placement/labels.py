from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

_LABEL: Final = re.compile(r"[^\s=,]{1,63}=[^\s=,]{1,63}")


@lru_cache(maxsize=1_024)
def labels_of(text: str) -> Mapping[str, str]:
    """Read "region=eu,zone=a". Raises ValueError, which names the wrong label."""
    found: dict[str, str] = {}
    for part in map(str.strip, text.split(",")):
        if not _LABEL.fullmatch(part):
            msg = f"{part[:100]!r} is no label with its value"
            raise ValueError(msg)
        name, value = part.split("=")
        if found.setdefault(name, value) != value:
            msg = f"{name!r} cannot be both {found[name]!r} and {value!r}"
            raise ValueError(msg)
    return MappingProxyType(found)


def is_label(name: str) -> bool:
    return _LABEL.fullmatch(f"{name}=any") is not None


def has_labels(labels: Mapping[str, str], where: str) -> bool:
    """Return whether `labels` include `where`. False for nonsense."""
    try:
        return labels_of(where).items() <= labels.items()
    except ValueError:
        return False


def checked_labels(labels: Mapping[str, str] | None) -> dict[str, str]:
    """Raises ValueError for labels that no job could ask for."""
    for name, value in () if labels is None else labels.items():
        parts: tuple[Any, ...] = (name, value)
        if not all(isinstance(part, str) for part in parts) or not _LABEL.fullmatch(f"{name}={value}"):
            msg = (
                f"labels has {name!r}: {value!r}: names and values are texts of 1 to 63 characters without spaces, "
                'commas and equals signs, such as {"region": "eu"}'
            )
            raise ValueError(msg)
    return {} if labels is None else dict(labels)

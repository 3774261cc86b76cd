"""The kinds of check that there are. README.md in this folder says how to add one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .check import Attempt, Check, Hop, Kind
from .http import HTTP
from .tcp import TCP

KINDS: Final = (HTTP, TCP)

BY_SCHEME: Final[Mapping[str, Kind]] = {scheme: kind for kind in KINDS for scheme in kind.schemes}

__all__ = ["BY_SCHEME", "KINDS", "Attempt", "Check", "Hop", "Kind"]

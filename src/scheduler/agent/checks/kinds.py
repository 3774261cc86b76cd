"""The kinds of check that there are. README.md in this folder says how to add one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .contract import Kind
from .http import HTTP
from .tcp import TCP

KINDS: Final = (HTTP, TCP)

BY_SCHEME: Final[Mapping[str, Kind]] = {scheme: kind for kind in KINDS for scheme in kind.schemes}

PORTS: Final[Mapping[str, int | None]] = {scheme: BY_SCHEME[scheme].schemes[scheme] for scheme in BY_SCHEME}
"""The default port of each URL scheme; None: the URL has to name one."""

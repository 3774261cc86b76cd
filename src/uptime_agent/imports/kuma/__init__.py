"""Uptime Kuma: a JSON backup of version 1, with the key names of version 2.

Every monitor has the keys of all types. Defaults are skipped; every other key is carried over or told.
"""

from __future__ import annotations

from .kuma import read_kuma

__all__ = ["read_kuma"]

"""Uptime Kuma: a JSON backup of version 1, with the key names of version 2.

Every key is carried over or told, except defaults: each monitor has the keys of all types.
"""

from __future__ import annotations

from .kuma import read_kuma

__all__ = ["read_kuma"]

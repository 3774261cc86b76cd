"""Uptime Kuma: the monitors of a backup, as its version 1 exports them and version 2 calls their keys, in JSON.

Offers `read_kuma`. A backup says of every monitor every key of all types: those that say what Kuma does anyway are
passed over, and every other one is carried over or told.
"""

from __future__ import annotations

from .kuma import read_kuma

__all__ = ["read_kuma"]

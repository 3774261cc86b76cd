"""Gatus: endpoints with conditions, external endpoints, suites and maintenance, as documented.

Offers `read_gatus`. All conditions must hold: each with a counterpart here narrows what is up, each other one is noted.
Reads one file of Gatus, not a folder.
"""

from __future__ import annotations

from .gatus import read_gatus

__all__ = ["read_gatus"]

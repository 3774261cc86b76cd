"""Gatus: endpoints, external endpoints, suites and maintenance.

Reads one file, as documented.
"""

from __future__ import annotations

from .gatus import read_gatus

__all__ = ["read_gatus"]

"""Gatus: endpoints, external endpoints, suites and maintenance, as documented, in one file."""

from __future__ import annotations

from .gatus import read_gatus

__all__ = ["read_gatus"]

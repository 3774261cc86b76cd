"""Gatus: endpoints with their conditions, external endpoints, suites and maintenance, as its documentation has them.

Offers `read_gatus`. Its conditions are anded: each that has a counterpart here narrows what counts as up, and each
that has none is told alone. Knows one file of Gatus, not the folder of files that it can merge.
"""

from __future__ import annotations

from .gatus import read_gatus

__all__ = ["read_gatus"]

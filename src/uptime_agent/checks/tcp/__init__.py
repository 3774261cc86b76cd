"""Checks of tcp:// targets.

Offers the kind; its dialogue sends and expects texts.
"""

from __future__ import annotations

from .tcp_check import TCP

__all__ = ["TCP"]

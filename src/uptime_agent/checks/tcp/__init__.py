"""Checks of tcp:// targets."""

from __future__ import annotations

from .tcp_check import TCP

__all__ = ["TCP"]

"""Checks of domain:// targets, by RDAP.

Answers are kept for six hours, also over a restart.
"""

from __future__ import annotations

from .domain_check import DOMAIN

__all__ = ["DOMAIN"]

"""Checks of several steps: requests in sequence, each of which may hand texts on to those after it.

Offers `read_steps`, which reads them, `StepsCheck`, and `prepared`, which makes them run as a check of a target does.
Knows no protocol: a step is a check of some kind, asked as any target is, with its lookup, limits, addresses and
bounds. Lives on the event loop.
"""

from __future__ import annotations

from .reading import STEPS, read_steps
from .run import TIMEOUT_OF_ALWAYS, StepsRun, prepared
from .step import Step, StepsCheck

__all__ = ["STEPS", "TIMEOUT_OF_ALWAYS", "Step", "StepsCheck", "StepsRun", "prepared", "read_steps"]

"""Checks of several steps: requests in sequence that hand texts on.

A step is a check of any kind, with its own lookup, limits, addresses and bounds.
"""

from __future__ import annotations

from .reading import STEPS, read_steps
from .run import TIMEOUT_OF_ALWAYS, StepsRun, prepared
from .step import Step, StepsCheck

__all__ = ["STEPS", "TIMEOUT_OF_ALWAYS", "Step", "StepsCheck", "StepsRun", "prepared", "read_steps"]

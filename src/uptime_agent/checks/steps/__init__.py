"""Checks of several steps that hand texts on.

Each step is a check of its own kind.
"""

from __future__ import annotations

from .reading import STEPS, read_steps
from .run import TIMEOUT_OF_ALWAYS, StepsRun, prepared
from .step import Step, StepsCheck

__all__ = ["STEPS", "TIMEOUT_OF_ALWAYS", "Step", "StepsCheck", "StepsRun", "prepared", "read_steps"]

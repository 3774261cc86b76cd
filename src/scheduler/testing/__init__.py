"""For tests of programs that schedule: a year in seconds, a store that fails when told to.

`scheduler.testing.stores` holds the suite that a store of your own has to pass; it alone needs pytest and hypothesis.
"""

from ._simulate import Build, Simulation, simulate
from .flaky import FlakyStore

__all__ = ["Build", "FlakyStore", "Simulation", "simulate"]

"""Helpers for tests of programs that schedule: `simulate` plays a year in seconds, `FlakyStore` fails on demand.

`scheduler.testing.stores` has the suite that a store of your own must pass. Only that needs pytest and hypothesis.
"""

from ._simulate import Build, Simulation, simulate
from .flaky import FlakyStore

__all__ = ["Build", "FlakyStore", "Simulation", "simulate"]

"""Helpers for tests of programs that schedule: `simulate` plays a year in seconds, `FlakyStore` fails on demand.

`scheduler.testing.stores`, the suite for your own store, needs pytest and hypothesis.
"""

from ._simulate import Build, Simulation, simulate
from .flaky import FlakyStore

__all__ = ["Build", "FlakyStore", "Simulation", "simulate"]

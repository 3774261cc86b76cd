"""Whole sets of jobs: one call makes a set all jobs of its owner, and writes them as a text.

Knows the verbs of jobs, and no scheduler.
"""

from .export import export_json, export_toml, read_jobs
from .sync import Sync, Synced

__all__ = ["Sync", "Synced", "export_json", "export_toml", "read_jobs"]

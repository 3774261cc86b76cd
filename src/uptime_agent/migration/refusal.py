"""The refusal of a job."""

from __future__ import annotations


class NotCarried(Exception):
    """A job has no counterpart here. Says what to do by hand."""

"""The refusal of a job."""

from __future__ import annotations


class NotCarried(Exception):
    """A job, or a part of it, has no counterpart. Says what to do by hand."""

"""The refusal of a job that has no counterpart here."""

from __future__ import annotations


class NotCarried(Exception):
    """A job, or a part of it, cannot be carried over. The message says which part, and what to do by hand."""

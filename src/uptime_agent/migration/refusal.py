"""The refusal of a job that has no counterpart here."""

from __future__ import annotations


class NotCarried(Exception):
    """A job cannot be carried over. Says what to do by hand."""

"""Views: answers of a scheduler about its jobs and runs.

They change nothing.
"""

from .views import Views

__all__ = ["Views"]

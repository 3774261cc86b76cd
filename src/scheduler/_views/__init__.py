"""Views: answers of a scheduler about its jobs and runs.

They change nothing.
"""

from .recent import RecentEvents
from .views import Views

__all__ = ["RecentEvents", "Views"]

"""PostgreSQL fleets: which probes are due on which servers and databases, what they find, and where it is kept.

Knows `config` and what lies below it; nothing of notifications and displays. Decisions live on the event loop, queries
and storage on threads of their own. psycopg is imported where it is used, so that the agent runs without it.
"""

from __future__ import annotations

__all__: list[str] = []

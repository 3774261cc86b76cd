from __future__ import annotations

from typing import Final

from ..._sharing import Standby, StoreServer
from ..connection import StoreConnection, one_row, sql

SERVER: Final = sql.SQL("SELECT pg_is_in_recovery(), current_setting('synchronous_commit')")

STANDBYS: Final = sql.SQL("""
    SELECT coalesce(application_name, ''),
        CASE WHEN current_setting('synchronous_standby_names') = '' THEN 'async' ELSE sync_state END
    FROM pg_stat_replication
    WHERE coalesce(state, '') <> 'backup' AND pid NOT IN
        (SELECT active_pid FROM pg_replication_slots WHERE slot_type = 'logical' AND active_pid IS NOT NULL)
    ORDER BY 1
""")
"""Excludes backups and logical subscribers. A role without pg_monitor sees only their number."""


def read_server(reader: StoreConnection) -> StoreServer:
    is_standby, synchronous_commit = one_row(reader.execute(SERVER))
    standbys = tuple(Standby(*row) for row in reader.execute(STANDBYS))
    return StoreServer(is_standby=is_standby, synchronous_commit=synchronous_commit, standbys=standbys)

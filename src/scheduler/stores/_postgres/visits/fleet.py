from __future__ import annotations

from typing import Final

from ..._sharing import AgentRow, FleetView, HandOver, waiting_of
from ..connection import StoreConnection, one_row
from ..statements import Statements
from ..units import UnitStatements, loans_of
from .server import read_server
from .tables import check_made

_AGENT: Final = (
    *("name", "epoch", "labels", "opened_us", "format", "left", "shards"),
    *("jobs", "lag", "skew", "is_off", "version", "connections"),
)
_HAND_OVER: Final = ("name", "epoch", "is_dead", "ago", "shards", "claimed", "seconds")


def read_fleet(reader: StoreConnection, statements: Statements, schema: str) -> FleetView:
    """Return the present nodes, in the open transaction. Raises NoTables."""
    check_made(reader, schema)
    rows = reader.execute(statements.agents)
    agents = tuple(AgentRow(**dict(zip(_AGENT, row, strict=True))) for row in rows)
    free, requests = one_row(reader.execute(statements.open_work))
    rows = reader.execute(statements.hand_overs)
    overs = tuple(HandOver(**dict(zip(_HAND_OVER, row, strict=True))) for row in rows)
    loans = tuple(loans_of(reader, UnitStatements(statements)))
    waiting = waiting_of(reader.execute(statements.without_owner), agents)
    return FleetView(
        agents=agents,
        free=free,
        requests=requests,
        hand_overs=overs,
        loans=loans,
        waiting=waiting,
        server=read_server(reader),
    )

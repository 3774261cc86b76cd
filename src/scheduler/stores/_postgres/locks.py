"""Which jobs other sessions have locked: they wait, others go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, LiteralString

from .._rows import Batch
from .connection import StoreConnection, sql
from .statements import Statements
from .table import number_array, storable, text_array

OF_JOBS: Final = ("jobs", "states", "paused", "finished", "released", "planned", "added", "begun")


class Locks:
    """The query locks the free rows."""

    def __init__(self, statements: Statements) -> None:
        parts = (self._of_table(statements, name) for name in ("job", "job_state", "execution", "tick"))
        self._locked = sql.SQL(" UNION ALL ").join(parts)

    @staticmethod
    def _of_table(statements: Statements, name: LiteralString) -> sql.Composed:
        by_tick: LiteralString = "(job_id, due_us) IN (SELECT * FROM unnest(%(tick_jobs)s::text[], %(dues)s::bigint[]))"
        key, which = (
            ("id", "id = ANY (%(ids)s::text[])") if name == "job" else ("job_id", "job_id = ANY (%(ids)s::text[])")
        )
        return statements.of(
            "(WITH found AS (SELECT ctid, {key} AS id FROM {schema}.{rows} WHERE {which}), free AS (SELECT ctid"
            " FROM {schema}.{rows} WHERE {which} ORDER BY ctid FOR NO KEY UPDATE SKIP LOCKED)"
            " SELECT id FROM found WHERE ctid NOT IN (SELECT ctid FROM free))",
            key=sql.Identifier(key),
            rows=sql.Identifier(name),
            which=sql.SQL(by_tick if name == "tick" else which),
        )

    def of(self, connection: StoreConnection, batches: Sequence[Batch]) -> set[str]:
        ticks = [(tick.job_id, tick.due_us) for batch in batches for tick in (*batch.marks, *batch.ended)]
        ids = {id for batch in batches for name in OF_JOBS for id in getattr(batch, name)}
        ids.update(job_id for job_id, _ in ticks)
        asked = {
            "ids": text_array(ids),
            "tick_jobs": text_array(job_id for job_id, _ in ticks),
            "dues": number_array(due_us for _, due_us in ticks),
        }
        locked = {row[0] for row in connection.execute(self._locked, asked)}
        return {id for id in ids if storable(id) in locked}

"""Who changed what, in PostgreSQL. Not the log that tells nodes of changed rows: that is the table `change`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

from ..._rows import Retention, StoredChange
from ..connection import Asked, StoreConnection
from ..statements import Statements
from ..table import MADE, storable

TABLE: Final = """
CREATE TABLE {schema}.made_change (
    number bigint PRIMARY KEY,
    at_us bigint NOT NULL,
    act text NOT NULL,
    scope text COLLATE "C" NOT NULL,
    actor text,
    reason text,
    before text,
    after text
);
CREATE INDEX made_change_at ON {schema}.made_change (at_us, number);
"""

LATEST: Final = 2**63 - 1

MOST: Final = 2_000
"""Changes that one call deletes."""


class MadeStatements:
    def __init__(self, statements: Statements) -> None:
        of = statements.of
        self.read = of(
            "SELECT {columns} FROM {schema}.made_change WHERE at_us < %s"
            " AND (%s::text IS NULL OR scope = %s) AND (%s::text IS NULL OR actor = %s)"
            " ORDER BY at_us DESC, number DESC LIMIT %s",
            MADE,
        )
        self.prune = of(
            "DELETE FROM {schema}.made_change WHERE number = ANY (ARRAY(SELECT number FROM {schema}.made_change"
            " WHERE at_us < %s OR (at_us, number) <= (SELECT at_us, number FROM {schema}.made_change"
            " ORDER BY at_us DESC, number DESC OFFSET %s LIMIT 1) LIMIT %s FOR UPDATE SKIP LOCKED))"
        )

    def pruned(self, retention: Retention, now_us: int) -> Asked:
        """Return what deletes some changes over the bounds."""
        before_us = -LATEST if retention.age is None else now_us - int(min(retention.age * 1e6, 2**62))
        return self.prune, [before_us, LATEST if retention.changes is None else retention.changes, MOST]


class PostgresChanges:
    """`reading`: opens a transaction that reads."""

    def __init__(
        self, reading: Callable[[], AbstractContextManager[StoreConnection]], statements: MadeStatements
    ) -> None:
        self._reading = reading
        self._statements = statements

    def read(
        self, *, scope: str | None = None, actor: str | None = None, limit: int = 100, before_us: int | None = None
    ) -> list[StoredChange]:
        """See MadeChanges."""
        scope, actor = (None if each is None else storable(each) for each in (scope, actor))
        asked = [LATEST if before_us is None else before_us, scope, scope, actor, actor, limit]
        with self._reading() as reader:
            return [StoredChange(*row) for row in reader.execute(self._statements.read, asked)]

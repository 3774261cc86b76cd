from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

from ...._values import EVERYTHING
from ..._rows import Placed
from ..._visit import Audience, Doubt, Doubted, Looked
from ..connection import Asked, Cursor, StoreConnection, one_row, sql
from ..execution_statements import ExecutionStatements, in_part
from ..executions import PostgresExecutions
from ..statements import Statements
from ..table import PLACED, number_array, text_array
from .statements import VisitStatements
from .tables import check_made

MAX_JOBS: Final = 1_000


class PostgresVisit:
    """A visit; each question is a transaction. Raises StoreUnusable unless the tables are there.

    `name`: the schema, also the nodes' channel.
    """

    def __init__(
        self, connection: StoreConnection, statements: Statements, of_executions: ExecutionStatements, name: str
    ) -> None:
        with connection.transaction_as(""):
            check_made(connection, name)
        self._connection = connection
        self._statements = VisitStatements(statements)
        self._of_executions = of_executions
        self._name = name
        self._try_lock = f"timerqueue audit of {name}"

    @property
    def epoch(self) -> int:
        """A visitor is no node."""
        return 0

    @property
    def executions(self) -> PostgresExecutions:
        return PostgresExecutions(self, self._of_executions, self._name)

    @contextmanager
    def transaction(self) -> Iterator[StoreConnection]:
        """Nodes see its changes as made by hand."""
        with self._connection.transaction_as(""):
            yield self._connection

    def ask_once(self, *asked: Asked) -> list[Cursor]:
        return self._connection.ask_as("", asked)

    def writing(self) -> AbstractContextManager[StoreConnection]:
        return self.transaction()

    @contextmanager
    def writing_if(self, asked: Asked) -> Iterator[StoreConnection | None]:
        with self._connection.transaction_as("", first=[asked]) as (answer,):
            yield self._connection if one_row(answer)[0] else None

    @contextmanager
    def in_one_way(self) -> Iterator[StoreConnection]:
        with self._connection.in_one_way_as("", [], writes=True):
            yield self._connection

    def now_us(self) -> int:
        return int(self._ask(self._statements.now)[0][0])

    def is_queued(self) -> bool:
        return bool(self._ask(self._statements.is_queued)[0][0])

    def ended(self) -> dict[int, int]:
        return dict(self._ask(self._statements.ended))

    def bury(self, ended: Mapping[int, int]) -> list[str]:
        asked = [number_array(ended), number_array(ended.values())]
        with self.transaction() as connection:
            names = [row[0] for row in connection.execute(self._statements.bury, asked)]
            if names:
                connection.execute(self._statements.tell, [self._name, "fleet"])
        return names

    def look(self, part: int, *, late_us: int) -> Looked | None:
        with self.transaction() as connection:
            if not one_row(connection.execute(self._of_executions.try_lock, [self._try_lock, part]))[0]:
                return None
            now_us = one_row(connection.execute(self._statements.now))[0]
            asked = in_part(part) | {"limit": MAX_JOBS}
            rows = connection.execute(self._statements.doubted, asked | {"before_us": now_us - late_us})
            doubted = tuple(Doubted(id, Doubt(doubt), due_us, owner) for id, doubt, due_us, owner in rows)
            stamped = asked | {"now_us": now_us, "everything": EVERYTHING}
            jobs = one_row(connection.execute(self._of_executions.stamp, stamped))[0]
        return Looked(jobs, doubted)

    def ask(self, doubted: Iterable[Doubted]) -> list[int]:
        given = list(doubted)
        due = [each.due_us if each.doubt is Doubt.NOBODY_RUNS else None for each in given]
        with self.transaction() as connection:
            parameters = [text_array(each.job_id for each in given), number_array(due)]
            numbers = [row[0] for row in connection.execute(self._statements.ask, parameters)]
            connection.execute(self._statements.tell, [self._name, "news"])
        return numbers

    def answers(self, numbers: Sequence[int]) -> list[Audience]:
        return [Audience(*row) for row in self._ask(self._statements.answers, [number_array(numbers)])]

    def withdraw(self, numbers: Sequence[int]) -> None:
        with self.transaction() as connection:
            connection.execute(self._statements.withdraw, [number_array(numbers)])

    def placed(self, rows: Iterable[Placed]) -> None:
        with self.transaction() as connection:
            connection.execute(self._of_executions.place, PLACED.parameters(rows))

    def _ask(self, statement: sql.Composed | sql.SQL, asked: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self.transaction() as connection:
            return connection.execute(statement, asked).fetchall()

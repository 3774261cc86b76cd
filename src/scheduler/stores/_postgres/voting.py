"""Votes in PostgreSQL, apart from commits, which wait for none."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from .._rows import StoredTick
from .._voting import Vote
from .connection import Cursor, sql
from .sharing import SharingPlace
from .statements import Statements
from .table import TICK, number_array, text_array


class VotingStatements:
    def __init__(self, statements: Statements) -> None:
        of = statements.of
        self.cast = of(
            "INSERT INTO {schema}.vote (subject, due_us, epoch, said)"
            " SELECT subject, due_us, epoch, said"
            " FROM unnest(%s::text[], %s::bigint[], %s::text[], %s::bigint[]) AS given (subject, due_us, said, epoch)"
            " JOIN {schema}.agent USING (epoch) WHERE incarnation = %s ON CONFLICT DO NOTHING"
        )
        self.votes = of(
            "SELECT subject, due_us, epoch, said FROM {schema}.vote"
            " JOIN unnest(%s::text[], %s::bigint[]) AS given (subject, due_us) USING (subject, due_us)"
            " ORDER BY subject, due_us, epoch"
        )
        self.forget = of("DELETE FROM {schema}.vote WHERE due_us < %s")
        self.latest = of(
            "SELECT found.* FROM unnest(%s::text[]) AS given (id) CROSS JOIN LATERAL ("
            "SELECT {columns} FROM {schema}.tick WHERE job_id = given.id AND result IS NOT NULL"
            " ORDER BY due_us DESC LIMIT 1) AS found",
            TICK,
        )


class PostgresVoting:
    def __init__(self, place: SharingPlace, statements: VotingStatements) -> None:
        self._place = place
        self._statements = statements

    def cast(self, votes: Sequence[Vote]) -> None:
        asked = [
            text_array(vote.subject for vote in votes),
            number_array([vote.due_us for vote in votes]),
            text_array(vote.said for vote in votes),
            number_array([vote.epoch for vote in votes]),
            self._place.incarnation,
        ]
        self._ask(self._statements.cast, asked)

    def votes(self, asked: Collection[tuple[str, int]]) -> list[Vote]:
        given = [text_array(subject for subject, _ in asked), number_array([due_us for _, due_us in asked])]
        return [Vote(*row) for row in self._ask(self._statements.votes, given)]

    def forget(self, before_us: int) -> int:
        return self._ask(self._statements.forget, [before_us]).rowcount

    def latest(self, jobs: Collection[str]) -> list[StoredTick]:
        return [StoredTick(*row) for row in self._ask(self._statements.latest, [text_array(jobs)])]

    def _ask(self, statement: sql.Composed, asked: Sequence[Any]) -> Cursor:
        (answer,) = self._place.beside.ask((statement, asked))
        return answer

"""Parts of batches that stand aside, because another transaction has locked a row that they write."""

from __future__ import annotations

from collections.abc import Collection

from .sealed import Sealed


class Aside:
    """The parts that stand aside, oldest first. Later notes about their jobs wait behind them."""

    def __init__(self) -> None:
        self.parts: list[Sealed] = []

    def keep(self, sealed: Sealed, locked: Collection[str] = ()) -> tuple[Sealed | None, Sealed | None]:
        """Keep a batch's part about the locked jobs, and about jobs that stand aside. Return that part, and the rest.

        A caller that waits for the whole batch waits for all parts that stand aside.
        """
        known = {job_id for part in self.parts for job_id in part.job_ids()}
        kept, rest = sealed.apart(known.union(locked))
        if kept is not None and not (self.parts and self.parts[-1].extend(kept)):
            self.parts.append(kept)
        if self.parts:
            self.parts[-1].flushed.extend(sealed.flushed)
        elif rest is not None:
            rest.flushed = sealed.flushed
        return kept, rest

    def free(self, locked: Collection[str]) -> list[Sealed]:
        """Take out the parts that do not wait for these jobs, in the order in which they came."""
        parts, self.parts, freed, behind = self.parts, list[Sealed](), list[Sealed](), set(locked)
        flushed = [done for part in parts for done in part.flushed]
        for part in parts:
            kept, rest = part.apart(behind)
            if kept is not None:
                behind.update(kept.job_ids())
                self.parts.append(kept)
            if rest is not None:
                freed.append(rest)
        if last := [*freed, *self.parts][-1:]:
            last[0].flushed = flushed
        return freed

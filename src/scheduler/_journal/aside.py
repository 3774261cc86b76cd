from __future__ import annotations

from collections.abc import Collection

from .sealed import Sealed


class Aside:
    """Parts of batches that wait for a locked row, oldest first. Later notes about their jobs wait too."""

    def __init__(self) -> None:
        self.parts: list[Sealed] = []

    def keep(self, sealed: Sealed, locked: Collection[str] = ()) -> tuple[Sealed | None, Sealed | None]:
        """Keep a batch's part about jobs that are locked or wait. Return it, and the rest.

        A caller that waits for the batch waits for all kept parts.
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
        """Take out parts that do not wait for these jobs."""
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

"""A spool in a folder: segments, appended at one end and replayed from the other.

Each batch is synced: it survives kill -9 and loss of power. A small file notes replayed batches; a crash before that
repeats one, which a store takes once. A full spool drops its oldest segment: the newest measurements matter most.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from ..batch import SampleBatch, joined
from .encoding import decode, encode
from .segment import Counts, framed, read_record, survey, sync_folder

if sys.platform != "win32":
    import fcntl

_SEGMENTS: Final = 16
_SUFFIX: Final = ".spool"
_POSITION: Final = "position"


class SpoolFailed(Exception):
    """The spool is unusable, or another process has it."""


class Spool:
    """A spool of at most `most_bytes`. `lost`: dropped since opening."""

    def __init__(self, folder: str | os.PathLike[str], *, most_bytes: int = 256 * 1024 * 1024) -> None:
        if most_bytes < _SEGMENTS:
            msg = f"most_bytes is {most_bytes}: a spool needs room"
            raise ValueError(msg)
        self.folder = Path(folder)
        self.lost = Counts()
        self.damaged = 0
        """Segments with an unreadable rest."""
        self._most_bytes = most_bytes
        self._counts: dict[int, Counts] = {}
        """By segment, oldest first."""
        self._sizes: dict[int, int] = {}
        self._offset = 0
        """Of the next replay."""
        self._lock: int | None = None
        self._pending: tuple[int, Counts] | None = None

    def __repr__(self) -> str:
        return f"Spool({str(self.folder)!r}, {self.waiting})"

    @property
    def waiting(self) -> Counts:
        """How much waits to be replayed."""
        return sum(self._counts.values(), Counts())

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(self._sizes.values())

    def open(self) -> None:
        """Lock the folder, count what waits, cut off a torn end. Raises SpoolFailed."""
        self.close()
        with _told(self.folder):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._take_lock()
            numbers = sorted(int(path.stem) for path in self.folder.glob(f"*{_SUFFIX}") if path.stem.isdigit())
            first, self._offset = self._read_position()
            for number in numbers:
                if number < first:
                    self._path(number).unlink()
                else:
                    self._survey(number, self._offset if number == first else 0, is_last=number == numbers[-1])
            if not self._counts or next(iter(self._counts)) != first:
                self._offset = 0
            self._drop_empty()

    def append(self, batch: SampleBatch) -> bool:
        """Write and sync. False: lost, as it is larger than the spool.

        Raises SpoolFailed or Unstorable, and then changes nothing.
        """
        counts = Counts(len(batch.samples), batch.rows, len(batch.outcomes))
        record = framed(encode(batch), counts)
        if len(record) > self._most_bytes:
            self.lost += counts
            return False
        with _told(self.folder):
            number = self._room_for(len(record))
            path, size = self._path(number), self._sizes.get(number, 0)
            with path.open("ab") as file:
                try:
                    file.truncate(size)
                    file.write(record)
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    with suppress(OSError):
                        file.truncate(size)
                    raise
            if not size:
                sync_folder(self.folder)
            self._sizes[number] = size + len(record)
            self._counts[number] = self._counts.get(number, Counts()) + counts
        return True

    def oldest(self, weight: int = 1) -> SampleBatch | None:
        """Return the oldest batches as one, up to `weight`. They stay until `done`. Raises SpoolFailed."""
        with _told(self.folder):
            while self._counts:
                number = next(iter(self._counts))
                found, end, counts = self._read(number, weight)
                if found:
                    self._pending = end, counts
                    return joined(found)
                self._give_up(number)
        return None

    def _read(self, number: int, weight: int) -> tuple[list[SampleBatch], int, Counts]:
        found: list[SampleBatch] = []
        end, counts = self._offset, Counts()
        while weight > 0 and (record := read_record(self._path(number), end)) is not None:
            try:
                batch = decode(record.payload)
            except (ValueError, KeyError, TypeError):
                break
            found.append(batch)
            end, counts, weight = record.end, counts + record.counts, weight - batch.weight
        return found, end, counts

    def done(self) -> None:
        """Go on after the last `oldest`. Raises SpoolFailed."""
        if self._pending is None:
            return
        with _told(self.folder):
            number = next(iter(self._counts))
            self._offset, counts = self._pending
            self._counts[number] -= counts
            self._pending = None
            if self._offset >= self._sizes[number]:
                self._remove(number)
            else:
                self._write_position(number, self._offset)

    def close(self) -> None:
        """Release the folder. Waiting batches stay."""
        self._counts.clear()
        self._sizes.clear()
        self._pending = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:012}{_SUFFIX}"

    def _take_lock(self) -> None:
        file = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if sys.platform != "win32":
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            msg = f"the spool {self.folder} is another agent's: stop that, or name another folder"
            raise SpoolFailed(msg) from None
        self._lock = file

    def _survey(self, number: int, offset: int, *, is_last: bool) -> None:
        path = self._path(number)
        counts, end = survey(path, min(offset, path.stat().st_size))
        size = path.stat().st_size
        if end < size:
            if is_last:
                os.truncate(path, end)
                size = end
            self.damaged += not is_last
        self._counts[number], self._sizes[number] = counts, size

    def _drop_empty(self) -> None:
        while self._counts and not self._counts[number := next(iter(self._counts))]:
            self._remove(number)

    def _room_for(self, size: int) -> int:
        while self._counts and self.size + size > self._most_bytes:
            self._give_up(next(iter(self._counts)))
        newest = next(reversed(self._counts), None)
        if newest is not None and self._sizes[newest] + size <= self._most_bytes // _SEGMENTS:
            return newest
        return self._next_number()

    def _next_number(self) -> int:
        newest = next(reversed(self._counts), None)
        return 1 + (newest if newest is not None else self._read_position()[0])

    def _give_up(self, number: int) -> None:
        self.lost += self._counts[number]
        self._remove(number)

    def _remove(self, number: int) -> None:
        """The note comes first: none of it returns."""
        del self._counts[number], self._sizes[number]
        self._offset, self._pending = 0, None
        self._write_position(next(iter(self._counts), number + 1), 0)
        self._path(number).unlink(missing_ok=True)

    def _read_position(self) -> tuple[int, int]:
        try:
            number, offset = map(int, (self.folder / _POSITION).read_text("ascii").split())
        except (FileNotFoundError, ValueError):
            return 0, 0
        return number, offset

    def _write_position(self, number: int, offset: int) -> None:
        """Unsynced: an older note repeats batches, which are stored once."""
        new = self.folder / f"{_POSITION}.new"
        new.write_text(f"{number} {offset}\n", "ascii")
        new.replace(self.folder / _POSITION)


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        msg = f"the spool {folder} cannot be read or written: {error.strerror or error}"
        raise SpoolFailed(msg) from error

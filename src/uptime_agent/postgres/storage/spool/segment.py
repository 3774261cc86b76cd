"""Segments: append-only files of records, each with its length, counts and a checksum.

A crash can tear only the last record. Its length or checksum shows that, and opening for writing cuts it off. Damage
further in costs the rest of the segment.
"""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path
from typing import Final

from attrs import frozen

_HEAD: Final = struct.Struct("<4sIIIII")
"""Magic, bytes of the payload, samples, rows, outcomes, and the checksum of these and the payload."""
_MAGIC: Final = b"tqs1"


@frozen
class Counts:
    """How much waits or is lost."""

    samples: int = 0
    rows: int = 0
    outcomes: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.samples + other.samples, self.rows + other.rows, self.outcomes + other.outcomes)

    def __sub__(self, other: Counts) -> Counts:
        return Counts(self.samples - other.samples, self.rows - other.rows, self.outcomes - other.outcomes)

    def __bool__(self) -> bool:
        return bool(self.samples or self.rows or self.outcomes)

    def __str__(self) -> str:
        return f"{self.samples} samples with {self.rows} rows, {self.outcomes} outcomes"


@frozen
class Record:
    """A record of a segment. `end`: the offset of the first byte after it."""

    counts: Counts
    payload: bytes
    end: int


def framed(payload: bytes, counts: Counts) -> bytes:
    """Return the bytes of a record."""
    fields = (len(payload), counts.samples, counts.rows, counts.outcomes)
    return _HEAD.pack(_MAGIC, *fields, _checksum(fields, payload)) + payload


def read_record(path: Path, offset: int) -> Record | None:
    """Return the record at an offset. None: there is none, or it is torn or damaged. Raises OSError."""
    with path.open("rb") as file:
        file.seek(offset)
        head = file.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return None
        magic, length, *counted, checksum = _HEAD.unpack(head)
        payload = file.read(length) if magic == _MAGIC else b""
    if magic != _MAGIC or len(payload) < length or _checksum((length, *counted), payload) != checksum:
        return None
    return Record(Counts(*counted), payload, offset + _HEAD.size + length)


def survey(path: Path, offset: int = 0) -> tuple[Counts, int]:
    """Return the counts from an offset on, and where the last good record ends. Raises OSError."""
    counts = Counts()
    while (record := read_record(path, offset)) is not None:
        counts += record.counts
        offset = record.end
    return counts, offset


def sync_folder(folder: Path) -> None:
    """Make new and removed names in a folder durable."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _checksum(fields: tuple[int, ...], payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(repr(fields).encode()))

"""Append-only files of records, each with a checksum.

A crash tears only the last record, which opening cuts off. Damage further in costs the segment's rest.
"""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path
from typing import Final

from attrs import frozen

_HEAD: Final = struct.Struct("<4sIIIII")
"""Magic, payload's bytes, samples, rows, outcomes, checksum."""
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
class SegmentRecord:
    """A record. `end`: the next one's offset."""

    counts: Counts
    payload: bytes
    end: int


def framed(payload: bytes, counts: Counts) -> bytes:
    """Return a record's bytes."""
    fields = (len(payload), counts.samples, counts.rows, counts.outcomes)
    return _HEAD.pack(_MAGIC, *fields, _checksum(fields, payload)) + payload


def read_record(path: Path, offset: int) -> SegmentRecord | None:
    """Return a record; None: torn, damaged or none. Raises OSError."""
    with path.open("rb") as file:
        file.seek(offset)
        head = file.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return None
        magic, length, *counted, checksum = _HEAD.unpack(head)
        payload = file.read(length) if magic == _MAGIC else b""
    if magic != _MAGIC or len(payload) < length or _checksum((length, *counted), payload) != checksum:
        return None
    return SegmentRecord(Counts(*counted), payload, offset + _HEAD.size + length)


def survey(path: Path, offset: int = 0) -> tuple[Counts, int]:
    """Return the counts, and the good records' end. Raises OSError."""
    counts = Counts()
    while (record := read_record(path, offset)) is not None:
        counts += record.counts
        offset = record.end
    return counts, offset


def sync_folder(folder: Path) -> None:
    """Make a folder's names durable."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _checksum(fields: tuple[int, ...], payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(repr(fields).encode()))

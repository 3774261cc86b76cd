"""Segments: files of records, each with its length, what it holds and a checksum. Only ever appended to.

A record that was torn by a crash is the last one: its length or its checksum tells, and who opens the segment for
writing cuts it off. A record that is damaged further in costs the rest of its segment.
"""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path
from typing import Final

from attrs import frozen

_HEAD: Final = struct.Struct("<4sIIIII")
"""Magic, bytes of the payload, samples, rows, outcomes, and the checksum of all of that and the payload."""
_MAGIC: Final = b"tqs1"


@frozen
class Counts:
    """How much there is of something that waits, or is lost."""

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
    """Return the record at an offset, or None: there is none, it is torn or damaged. Raises OSError."""
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
    """Return what lies from an offset on, and where the last good record ends. Raises OSError."""
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

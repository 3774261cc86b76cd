"""Probes that are off: costly, or for few servers."""

from __future__ import annotations

from typing import Final

from attrs import evolve

from ..contract import Probe, Variant
from .shape import keys, number_keys, numbers, probe, shares, texts

BUFFERCACHE: Final = evolve(
    probe(
        "buffercache",
        "how shared buffers are used",
        "@extschema@.pg_buffercache_summary()",
        numbers("buffers_used buffers_unused buffers_dirty buffers_pinned", unit="blocks"),
        shares("usagecount_avg"),
        every=300.0,
        is_enabled=False,
        is_cheap=False,  # looks at each buffer, and no LIMIT makes that less
        grants="a role in pg_monitor",
    ),
    extension="pg_buffercache",
)
BUFFERCACHE_SINCE: Final = "1.4"

AIOS: Final = probe(
    "aios",
    "asynchronous reads and writes that are under way",
    "pg_aios",
    number_keys("pid io_id"),
    texts("state operation"),
    numbers("off length", unit="bytes"),
    texts("target_desc result"),
    since=18,
    order="pid, io_id",
    every=60.0,
    is_enabled=False,
    grants="a role in pg_monitor",
)

SHARED_MEMORY: Final = probe(
    "shared_memory",
    "what shared memory is taken by",
    "pg_shmem_allocations",
    keys("name", "coalesce(name, '<free>')"),
    numbers("size allocated_size", unit="bytes"),
    order="allocated_size DESC",
    most_rows=100,
    every=3600.0,
    is_enabled=False,
    grants="a role in pg_monitor",
)

OPTIONAL: Final[tuple[Probe, ...]] = (
    evolve(BUFFERCACHE, variants=(Variant(BUFFERCACHE.variants[0].sql, extension_since=BUFFERCACHE_SINCE),)),
    AIOS,
    SHARED_MEMORY,
)

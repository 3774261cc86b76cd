"""Batches as bytes, with their probes' columns: the replaying release may have others."""

from __future__ import annotations

import json
from typing import Any

from attrs import asdict

from ...contract import Column, Failure, OutcomeKind, Probe, ProbeOutcome, Sample, Scope, Type
from ..batch import SampleBatch
from ..values import normal_columns

Row = tuple[Any, ...]


def encode(batch: SampleBatch) -> bytes:
    """Return a batch as bytes. Raises Unstorable."""
    probes = {sample.probe.name: sample.probe for sample in batch.samples}
    parts = {
        "probes": [_probe_as_row(probe) for probe in probes.values()],
        "samples": [_sample_as_row(sample) for sample in batch.samples],
        "outcomes": [_outcome_as_row(outcome) for outcome in batch.outcomes],
    }
    return json.dumps(parts, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


def decode(payload: bytes) -> SampleBatch:
    """Return the batch. Raises ValueError, KeyError or TypeError for other bytes."""
    parts = json.loads(payload)
    probes = {row[0]: _probe(row) for row in parts["probes"]}
    samples = tuple(_sample(probes, row) for row in parts["samples"])
    return SampleBatch(samples, tuple(_outcome(row) for row in parts["outcomes"]))


def _probe_as_row(probe: Probe) -> Row:
    columns = [(each.name, each.type.name, each.is_key, each.is_counter) for each in probe.columns]
    return probe.name, probe.on_change, columns


def _probe(row: Row) -> Probe:
    name, on_change, columns = row
    return Probe(
        name=name,
        purpose="from the spool",
        scope=Scope.SERVER,
        every=1.0,
        columns=tuple(Column(column, Type[type_], *flags) for column, type_, *flags in columns),
        on_change=on_change,
    )


def _sample_as_row(sample: Sample) -> Row:
    columns = normal_columns(sample) if sample.rows else []
    return sample.probe.name, sample.target, sample.database, sample.at, sample.left_out, columns


def _sample(probes: dict[str, Probe], row: Row) -> Sample:
    probe, target, database, at, left_out, columns = row
    return Sample(probes[probe], target, database, at, tuple(zip(*columns, strict=True)), left_out)


def _outcome_as_row(outcome: ProbeOutcome) -> dict[str, Any]:
    failure = outcome.failure.value if outcome.failure else None
    return asdict(outcome) | {"kind": outcome.kind.value, "failure": failure}


def _outcome(row: dict[str, Any]) -> ProbeOutcome:
    failure = Failure(row["failure"]) if row["failure"] else None
    return ProbeOutcome(**row | {"kind": OutcomeKind(row["kind"]), "failure": failure})

"""The page about metrics: each with its type, its labels and its meaning, and the bounds of the histograms."""

from __future__ import annotations

from collections.abc import Iterable

from prose import paragraphs

from scheduler import metrics
from scheduler.metrics import DURATION_BOUNDS, LATENESS_BOUNDS, MOST_JOBS, PARTS, Metric


def metrics_page() -> str:
    """Return the page of all metrics."""
    return "\n\n".join(
        [
            "# Reference: metrics",
            "[Metrics](../metrics.md) says how Prometheus gets them.",
            paragraphs(metrics.__doc__ or ""),
            "A part that a scheduler lacks, such as a store, has no series.",
            "Counters begin at 0 with the scheduler, but a stored job keeps its own.",
            *(f"## {title}\n\n{table(found)}" for title, found in PARTS.items()),
            f"Jobs have series only on request, by a pattern of ids, and at most {MOST_JOBS} jobs.",
            "## Bounds",
            f"- `timerqueue_lateness_seconds`: {listed(LATENESS_BOUNDS)}",
            f"- `timerqueue_run_duration_seconds`: {listed(DURATION_BOUNDS)}",
            "In seconds. They do not change. Counts within a bound are right to 7 %, sums of seconds to 3 %.",
        ]
    )


def table(found: Iterable[Metric]) -> str:
    """Return a table of metrics."""
    rows = [
        f"| `{each.name}` | {each.kind.value} | {', '.join(f'`{label}`' for label in each.labels)} | {each.text} |"
        for each in found
    ]
    return "\n".join(["| metric | type | labels | meaning |", "|---|---|---|---|", *rows])


def listed(bounds: Iterable[float]) -> str:
    """Return bounds in a row."""
    return ", ".join(f"{bound:g}" for bound in bounds)

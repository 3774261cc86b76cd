"""Audits, as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from scheduler import Became, Finding, StoreAudit
from scheduler.stores import PARTS

from ..text import printable, wording

MAX_NAMED: Final = 20

WORDS: Final = {
    Became.MENDED: "mended",
    Became.WELL: "well",
    Became.NOT_ANSWERED: "left",
    Became.WITH_NOBODY: "left",
}
AND_THEN: Final = {
    Became.MENDED: "",
    Became.WELL: "; its node has it, and it waits for its turn",
    Became.NOT_ANSWERED: "; its node was asked, and has not answered",
    Became.WITH_NOBODY: "; there is no node to ask: the one that starts next sees to it",
}


def audit_lines(audit: StoreAudit) -> Iterator[str]:
    """Write the audit for people."""
    nodes = "node has" if audit.agents == 1 else "nodes have"
    yield f"{audit.jobs} jobs audited; {audit.agents or 'no'} {nodes} the store"
    if audit.busy:
        yield f"{audit.busy} of {PARTS} parts were left out: another audit was at them"
    for name in audit.buried:
        yield f"mended: {name or 'a node'} is gone, and what it had is nobody's now"
    if audit.free:
        yield f"left: {audit.free} shards are nobody's"
    for became in Became:
        yield from _jobs(became, [each for each in audit.findings if each.became is became])
    yield from _of_queue(audit)
    yield f"{audit.mended} mended, {audit.left} left" if audit.mended or audit.left else "all is well"


def audit_in_json(audit: StoreAudit) -> str:
    """Write the audit as one JSON object."""
    counts = ("jobs", "busy", "agents", "free", "planned", "requeued", "withdrawn", "failed", "mended", "left")
    found = {name: getattr(audit, name) for name in counts}
    found["buried"] = list(audit.buried)
    found["findings"] = [
        {
            "job": each.job_id,
            "doubt": each.doubt.key,
            "due": None if each.due is None else wording.stamp(each.due.timestamp()),
            "became": each.became.key,
            "reason": each.reason,
        }
        for each in audit.findings
    ]
    return json.dumps(found, ensure_ascii=False)


def _jobs(became: Became, findings: list[Finding]) -> Iterator[str]:
    for each in findings[:MAX_NAMED]:
        yield f"{WORDS[became]}: job {printable(each.job_id)!r} {_what(each)}"
    if len(findings) > MAX_NAMED:
        yield f"{WORDS[became]}: {len(findings) - MAX_NAMED} more jobs"


def _what(each: Finding) -> str:
    since = "" if each.due is None else f", due {wording.stamp(each.due.timestamp())}"
    said = "" if each.reason is None else f": {each.reason}"
    return f"was {each.doubt.value}{since}{said}{AND_THEN[each.became]}"


def _of_queue(audit: StoreAudit) -> Iterator[str]:
    if audit.planned:
        yield f"mended: {audit.planned} jobs had no next start, and have one in the queue"
    if audit.requeued:
        yield f"mended: {audit.requeued} starts were not in the queue, or too late there, and have been put"
    if audit.withdrawn:
        yield f"mended: {audit.withdrawn} starts of jobs that are to have none were taken out"
    if audit.failed:
        yield f"left: {audit.failed} jobs have a schedule that cannot be read, or gives no start"

from __future__ import annotations

import json

from attrs import frozen

from .._queue import Kind, Tick

FORMAT = 1


@frozen
class Later: ...


def encode(tick: Tick) -> bytes:
    """Equal ticks have equal bytes."""
    job = json.dumps(tick.job_id)
    text = f'{{"v":{FORMAT},"kind":"{tick.kind.value}","job":{job},"due":{tick.due_us},"gen":{tick.generation}}}'
    return text.encode("ascii")


def decode(body: bytes) -> Tick | Later | None:
    """None: the body is not ours."""
    try:
        fields = json.loads(body)
        if fields["v"] != FORMAT:
            return Later() if isinstance(fields["v"], int) and fields["v"] > FORMAT else None
        tick = Tick(fields["job"], fields["due"], Kind(fields["kind"]), fields["gen"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    numbers = (type(tick.due_us), type(tick.generation))
    return tick if isinstance(tick.job_id, str) and numbers == (int, int) else None

"""How long it takes after an outage until all starts are on time again: pure functions of what tasks wrote."""

from bisect import bisect_left
from collections import defaultdict

from fleet_evidence import agent_of, is_edited


def recovery(evidence, since, back, until):
    """Return the seconds from `back`, when a server returned, until all starts were on time again; 0: they were.

    `since`: when the server went. Starts are looked at until `until`, when something else happened: where the last of
    them are late, all that is known is that it took as long as that.
    """
    last = max(late_starts(evidence, since, until), default=back)
    return max(0.0, (last - back) / 1e6)


def late_starts(evidence, since, until):
    """Yield when ticks began that were late, and were due before it had to be over. What began later: `until`."""
    on_time = round(evidence.on_time * 1e6)
    for each, was_due in evidence.late:
        if each.at >= since and was_due <= until - on_time:
            yield min(each.at, until)


def gaps(evidence, back, until):
    """Yield, for each slot after `back` that was not begun, when its job began the next time; `until`: not any more.

    A slot that a crash costs its job, or the rest after one, is not on time either.
    """
    on_time = round(evidence.on_time * 1e6)
    slots = defaultdict(list)
    for (job, due), (first, *_) in evidence.by_tick.items():
        if not (is_edited(job) or agent_of(job)):
            slots[job].append((due - evidence.wall, first.at))
    for found in slots.values():
        found.sort()
        dues = [due for due, _ in found]
        known = set(dues)
        for due in range(dues[0], until - on_time, evidence.every):
            if due >= back and due not in known:
                following = bisect_left(dues, due)
                yield min(until, found[following][1]) if following < len(found) else until

"""What must hold of a fleet when its server has a bad day: more rules for fleet_judge.py.

    healthy      no agent was taken for dead to which nothing had been done itself
    crashed      no run is on record as a crash, and no job is in quarantine, whose agent nothing had befallen itself
    slow         all starts were on time again soon after the server's return
    stranded     while an agent cannot commit, others run its jobs after some seconds
    sluggish     starts are on time beside long transactions, and beside readers of what is published
    hoarded      an agent that has room for one run takes no more than it can run soon
    unpruned     history is pruned
    hung         each agent that is asked to end does

A trouble of a server is noted with the agent whose commit was held on the way; nothing else was done to that one.
"""

from collections import Counter, defaultdict
from statistics import median

from fleet_evidence import kind_of, seconds
from fleet_recovery import recovery

LEASE = 3.0

UNWELL = {
    "kill",
    "lose",
    "exit",
    "stop",
    "freeze",
    "cut",
    "half_open",
    "reset",
    "delay",
    "leave",
    "starve",
    "unknown",
    "hung",
}
"""What is done to one agent that others may take for its death, and what ends it. "unknown": the store knows nothing of
it, as it joined in seconds that a failover has lost.
"""

LINGERS = 2 * LEASE + 1
"""Seconds after its end in which such a trouble may have others take an agent for dead."""

OUTAGES = ("outage_", "promote_", "starve", "bulk_edit")
"""What the kinds begin with of the troubles from which a fleet is to be back soon."""

AWAY = (*OUTAGES, "restart", "broker_", "server_clock")
"""And of all in which a server does not answer."""

BESIDE = {"hold_snapshots", "publish"}
"""Troubles that may cost no start its time."""

GIVES = 3 * LEASE
"""Seconds after which an agent that cannot commit is to have given its jobs away."""

HOARDS = 4.0
"""Seconds that ticks may wait at an agent that has no room for them, while others have."""

LOOKED_AT = 15.0
"""Seconds after a server's return from when on a late start is another matter."""


def is_outage(trouble):
    return trouble.kind.startswith(OUTAGES)


def healthy(evidence):
    for event in evidence.events:
        if event.kind == "lost" and not evidence.troubled(event.process, UNWELL, event.at - LINGERS * 1e6, event.at):
            name = evidence.names.get(event.process, event.process)
            yield f"agent {name} was taken for dead in good health ({when(event.at, evidence)})"


def suspects(process, evidence):
    """Whose trouble explains a crash: that of the run's agent, or of any if its incarnation never began a run."""
    return {each.process for each in evidence.troubles} if process is None else {process}


def crashed(evidence):
    processes = {each.incarnation: each.process for each in evidence.begun}
    begun = {(each.job, each.due, each.fence): each.at for each in evidence.begun}
    found = defaultdict(list)
    for record in evidence.records:
        if record.outcome != "crashed":
            continue
        process = processes.get(record.fence >> 32)
        since = begun.get((record.job, record.due, record.fence), record.due - evidence.wall)
        until = record.ended - evidence.wall if record.ended else since + LINGERS * 1e6
        befell = any(
            evidence.troubled(each, UNWELL, since - LINGERS * 1e6, until) for each in suspects(process, evidence)
        )
        if not befell and not was_lost(since, evidence):
            found[process].append(record)
    for process, records in found.items():
        name = evidence.names.get(process, process)
        first = min(record.due for record in records) - evidence.wall
        yield f"{len(records)} runs of agent {name} are crashes, and nothing befell it ({when(first, evidence)})"
        if jobs := sorted({record.job for record in records} & evidence.quarantined):
            yield f"{len(jobs)} jobs of agent {name} are in quarantine, such as {jobs[0]}, and nothing befell it"


def was_lost(at, evidence):
    """Whether what was committed at that instant was lost in a failover."""
    return any(each.lost is not None and each.lost <= at <= each.until for each in evidence.troubles)


def lost_with_a_failover(evidence):
    """Return the ticks that were begun again as a failover had lost that they had been begun."""
    return [
        tick for tick, (*before, _) in evidence.by_tick.items() if any(was_lost(each.at, evidence) for each in before)
    ]


def slow(evidence):
    for trouble, took in recoveries(evidence):
        if took > evidence.within:
            where = when(trouble.since, evidence)
            yield f"{took:.1f} s until all starts were on time again after {trouble.kind} ({where})"


def recoveries(evidence):
    """Yield each trouble of a server with the seconds until all starts were on time again, if that was looked at."""
    for trouble in filter(is_outage, evidence.troubles):
        following = (
            each.since
            for each in evidence.troubles
            if each.since > trouble.since and each.kind not in BESIDE | {"narrow"}
        )
        until = min([*following, evidence.quiet, trouble.until + round(LOOKED_AT * 1e6)])
        if until - trouble.until >= evidence.on_time * 1e6:
            yield trouble, recovery(evidence, trouble.since, trouble.until, until)


def stranded(evidence):
    for trouble in evidence.troubles:
        if trouble.kind != "starve":
            continue
        since, until = trouble.since + GIVES * 1e6, trouble.until - evidence.on_time * 1e6
        late = [(each.at - was_due) / 1e6 for each, was_due in evidence.late if since <= was_due <= until]
        if late:
            name = evidence.names.get(trouble.process, trouble.process)
            yield (
                f"{len(late)} starts were up to {max(late):.1f} s late while agent {name} could not commit"
                f" ({when(trouble.since, evidence)})"
            )


def sluggish(evidence):
    others = [each for each in evidence.troubles if each.kind not in BESIDE]
    for trouble in evidence.troubles:
        if trouble.kind in BESIDE:
            late = [
                (each.at - was_due) / 1e6
                for each, was_due in evidence.late
                if trouble.since <= was_due <= trouble.until
                and each.at - was_due > evidence.within * 1e6
                and not overlapped(others, was_due - (LINGERS + evidence.within) * 1e6, each.at)
            ]
            if late:
                yield (
                    f"{len(late)} starts were up to {max(late):.1f} s late beside {trouble.kind}, and no other trouble"
                    f" ({when(trouble.since, evidence)})"
                )


def hoarded(evidence):
    narrow = {each.process: each for each in evidence.troubles if each.kind == "narrow"}
    away = [each for each in evidence.troubles if each.kind.startswith(AWAY)]
    found = defaultdict(list)
    for each in evidence.begun:
        was_due = each.due - evidence.wall
        trouble = narrow.get(each.process)
        if trouble and kind_of(each.job) == "queued_burst" and each.at - was_due > HOARDS * 1e6:
            since = max(was_due, trouble.since)
            if each.at - since > HOARDS * 1e6 and not overlapped(away, since - LEASE * 1e6, each.at):
                found[each.process].append((each.at - since) / 1e6)
    for process, late in found.items():
        yield (
            f"{len(late)} ticks waited up to {max(late):.1f} s at an agent with room for one, beside others with more"
            f" ({when(narrow[process].since, evidence)})"
        )


def unpruned(evidence):
    away = [each for each in evidence.troubles if each.kind.startswith(AWAY)]
    found = [
        event
        for event in evidence.events
        if event.kind == "unpruned"
        and not overlapped(away, event.at - LINGERS * 1e6, event.at)
        and not evidence.troubled(event.process, UNWELL, event.at - LINGERS * 1e6, event.at)
    ]
    if found:
        kinds = Counter(
            each.kind for event in found for each in evidence.troubles if each.since <= event.at <= each.until
        )
        beside = f", mostly beside {kinds.most_common(1)[0][0]}" if kinds else ""
        yield f"{len(found)} times history could not be pruned{beside} ({when(found[0].at, evidence)})"


def hung(evidence):
    for trouble in evidence.troubles:
        if trouble.kind == "hung":
            name = evidence.names.get(trouble.process, trouble.process)
            yield f"agent {name} did not end in order ({when(trouble.since, evidence)})"


def overlapped(troubles, since, until):
    """Whether one of these went on at any time between the two."""
    return any(each.since <= until and each.until >= since for each in troubles)


def when(at, evidence):
    """Where an instant lies, and the last trouble of a server that had begun by then."""
    before = [each for each in evidence.troubles if is_outage(each) and each.since <= at]
    last = f", {(at - before[-1].since) / 1e6:.1f} s after the begin of {before[-1].kind}" if before else ""
    return seconds(at, evidence) + last


RULES = (healthy, crashed, slow, stranded, sluggish, hoarded, unpruned, hung)


def told_of_outages(evidence):
    """Yield how long it took, by kind of trouble, until all starts were on time again, and what failovers have lost."""
    took = defaultdict(list)
    for trouble, each in recoveries(evidence):
        took[trouble.kind].append(each)
    for kind, found in sorted(took.items()):
        yield f"all on time again after {kind}: median {median(found):.2f} s, max {max(found):.2f} s of {len(found)}"
    lost = sum((each.since - each.lost) / 1e6 for each in evidence.troubles if each.lost is not None)
    if lost:
        again = len(lost_with_a_failover(evidence))
        yield f"failovers to a standby that was behind lost {lost:.1f} s in all; {again} ticks of these ran again"

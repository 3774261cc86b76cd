"""What must hold of a fleet whatever befell it: judged by what its tasks wrote, and by what its operator did.

A tick is a job and a due instant. Of each that was to be it holds:

    twice        it was begun once at most; at least once: each attempt has a higher number than the one before
    unexplained  it was begun, or a death has cut it off between its mark and its beginning, and a record says so;
                 of one agent these are a batch
    unended      it ended, or its agent cut it off or was killed, and a record says so
    limit        no more than so many of those under a limit went on at a time
    buried       no incarnation began a run after its row was gone
    early        none was begun before it was due, as far as the clocks of agents may be off
    edited       what was removed does not begin any more, and what was added does
    parts        of a job that two agents run, one does not begin both parts for long while another is there; the part
                 of an agent is begun by that one alone

What holds when the server that all share has a bad day stands in fleet_outage_judge.py. A tick whose begin was lost by
a failover to a standby that was behind may be begun twice; such ticks are counted apart.

All times are microseconds of CLOCK_MONOTONIC; due instants are turned into it by `wall`, what has to be added to get
UTC.
"""

from collections import Counter, defaultdict
from itertools import groupby, pairwise

import fleet_outage_judge
from fleet_evidence import ENDS, STANDS_STILL, agent_of, is_edited, kind_of, seconds, whole_of
from fleet_outage_judge import LEASE, was_lost

SETTLES = 15.0
"""Seconds after which every agent that lives knows of an edit: it may have been cut off meanwhile."""

BREATH = 1.0
"""Seconds after it goes on in which an agent that was frozen may begin what it was about to begin. Its row may have
gone meanwhile; nothing that a program looks at tells it so before the next instruction.
"""

TURN = 20_000
"""Microseconds in which an agent in good health may begin what was durable before it was buried, as others heard the
end of its session: that its connections broke was on its way to it, too, or is not told to it at all.
"""

ALIVE = {"reset", "half_open"}
"""Troubles in which agents are buried, within a second, while their leases go on as far as they can know."""

SKEW = 1.0
"""Seconds by which the clock of an agent may be off before it is to notice."""


def judge(evidence):
    """Yield what does not hold, in words."""
    for rule in (twice, unexplained, unended, limit, buried, early, edited, parts, *fleet_outage_judge.RULES):
        for words in rule(evidence):
            yield f"{rule.__name__}: {words}"


def twice(evidence):
    for (job, due), all_begun in evidence.by_tick.items():
        for before, after in pairwise(all_begun):
            if was_lost(before.at, evidence):
                continue  # that it began is lost with a failover: a standby has to be synchronous to know of it
            if kind_of(job) != "again":
                yield f"{job} due {due} was begun by {before.incarnation} and by {after.incarnation}"
            elif after.attempt <= before.attempt or after.fence == before.fence:
                yield f"{job} due {due}: attempt {after.attempt} of {after.incarnation} came after {before.attempt}"


def unexplained(evidence):
    """Every slot of a job that nobody edits, from its first run, or that of the other part, until all was quiet."""
    excused = slots_with_a_reason(evidence)
    never_begun = defaultdict(list)
    for job, first, dues in slots_begun(evidence):
        until = max(dues) if agent_of(job) else evidence.quiet + evidence.wall  # that agent may have left
        for due in range(first, until, evidence.every):
            if due in dues:
                continue
            why = excused.get((job, due))
            if why is None:
                when = seconds(due - evidence.wall, evidence)
                yield f"{job} due {due} ({when}) was never begun, and nothing says why"
            elif why.outcome != "missed":
                never_begun[why.fence >> 32].append((job, due))
    for incarnation, ticks in never_begun.items():
        if len(ticks) > evidence.batch:
            yield f"{len(ticks)} ticks that {incarnation} had marked were not begun, which is more than a batch"


def slots_begun(evidence):
    """Return each job that nobody edits, its first slot, and those that were begun. Two parts have one first slot."""
    slots, firsts = defaultdict(set), defaultdict(list)
    for job, due in evidence.by_tick:
        if not is_edited(job):
            slots[job].add(due)
            firsts[whole_of(job)].append(due)
    numbered = {f"{whole_of(job)}#{part}": set() for job in slots if kind_of(job) == "many" for part in (1, 2)}
    return [(job, min(firsts[whole_of(job)]), dues) for job, dues in (numbered | slots).items()]


def slots_with_a_reason(evidence):
    """Return the records by slot: of deaths, and of what was missed while a job rested after one.

    A job that died three times in a row is in quarantine, and rests for good.
    """
    found = {}
    for record in evidence.records:
        if record.outcome == "crashed" or record.reason == "after crash":
            last = evidence.quiet + evidence.wall if record.job in evidence.quarantined else record.last_due
            for due in range(record.due, last + 1, evidence.every):
                found[record.job, due] = record if due <= record.last_due else record._replace(outcome="missed")
    return found


def unended(evidence):
    crashed = {(each.job, each.due) for each in evidence.records if each.outcome != "missed"}
    for (job, due), all_begun in evidence.by_tick.items():
        last = all_begun[-1]
        if (job, due, last.fence) in evidence.ended or (job, due) in crashed or last.at > evidence.quiet:
            continue
        if was_lost(last.at, evidence):
            continue
        if (job, due, last.fence) in evidence.cut_off:
            yield f"{job} due {due} was cut off by {last.incarnation} itself, and no record says so"
        elif not evidence.troubled(last.process, ENDS, last.at, float("inf")):
            yield f"{job} due {due}, begun by {last.incarnation}, never ended, and nobody killed it"
        else:
            yield f"{job} due {due} was cut off with {last.incarnation}, and no record says so"


def limit(evidence):
    """A run under a limit counts from its begin to its end, until it was cut off, or its process killed or frozen."""
    changes = []
    for each in evidence.begun:
        if kind_of(each.job) == "limited":
            changes += [(each.at, 1, each), (end_of(each, evidence), -1, each)]
    going_on = Counter()
    most = 0
    for at, change, each in sorted(changes, key=lambda found: (found[0], found[1])):
        going_on[each.incarnation] += change
        now = sum(going_on.values())
        if was_lost(at - 2 * LEASE * 1e6, evidence) or was_lost(at, evidence):
            continue  # what was lent is not known any more
        if now > evidence.limit and now > most:
            most = now
            going = {name: count for name, count in going_on.items() if count}
            yield f"{now} went on at once under a limit of {evidence.limit} ({seconds(at, evidence)}): {going}"


def end_of(begun, evidence):
    run = begun.job, begun.due, begun.fence
    ended = evidence.ended.get(run, evidence.cut_off.get(run))
    stops = [
        each.since
        for each in evidence.troubles
        if each.process == begun.process and each.kind in ENDS | STANDS_STILL and each.since >= begun.at
    ]
    known = [*stops, *([] if ended is None else [ended])]
    return max(begun.at, min(known, default=evidence.begun[-1].at))


def buried(evidence):
    for each in evidence.begun:
        gone = evidence.gone.get(each.incarnation)
        if gone is None or each.at <= gone or in_the_breath(each, evidence) or in_the_turn(each, gone, evidence):
            continue
        late = (each.at - gone) / 1e6
        yield f"{each.job} due {each.due} was begun by {each.incarnation} {late:.3f} s after its row was gone"


def in_the_breath(begun, evidence):
    """Whether its process had just been frozen."""
    return evidence.troubled(begun.process, STANDS_STILL, begun.at - BREATH * 1e6, begun.at)


def in_the_turn(begun, gone, evidence):
    """Whether its agent was buried in good health that very moment."""
    there = [
        each for each in evidence.troubles if each.kind in ALIVE and each.since <= gone <= each.until + BREATH * 1e6
    ]
    return bool(there) and begun.at <= gone + TURN


def early(evidence):
    for each in evidence.begun:
        is_off = evidence.troubled(each.process, {"clock"}, each.at - SKEW * 1e6, each.at)
        allowed = SKEW * 1e6 if is_off else 1_000
        if each.at + evidence.wall < each.due - allowed and not is_edited(each.job):
            yield f"{each.job} due {each.due} was begun {(each.due - each.at - evidence.wall) / 1e6:.3f} s early"


def edited(evidence):
    """Between two edits of a job it is as the first left it, once all agents know of it."""
    by_job = defaultdict(list)
    for each in evidence.edits:
        by_job[each.job].append(each)
    begun = defaultdict(list)
    for each in evidence.begun:
        if is_edited(each.job):
            begun[each.job].append(each)
    for job, edits in by_job.items():
        for edit, after in pairwise([*edits, None]):
            until = evidence.quiet if after is None else after.asked
            if edit.done is not None:
                yield from as_edited(job, edit, until, begun[job], evidence)


def as_edited(job, edit, until, begun, evidence):
    since = edit.done + SETTLES * 1e6
    found = [each for each in begun if since <= each.at < until]
    if edit.verb in {"remove", "pause"} and found:
        yield f"{job} was begun {(found[0].at - edit.done) / 1e6:.1f} s after {edit.verb}"
    slots = (until - since) / edit.every if edit.every else 0
    if edit.verb in {"add", "resume", "update"} and slots >= 2 and not found:
        yield f"{job} did not begin within {(until - edit.done) / 1e6:.1f} s of {edit.verb}"


def parts(evidence):
    """A part that waited for an agent may come to one that has run the other; but not tick after tick."""
    lives = lives_of(evidence)
    ticks = defaultdict(list)
    for each in evidence.begun:
        if (name := agent_of(each.job)) and evidence.names.get(each.process, name) != name:
            yield f"{each.job} due {each.due} was begun by {evidence.names[each.process]}"
        if kind_of(each.job) == "many":
            ticks[whole_of(each.job), each.due].append(each)
    of_one = defaultdict(list)
    for (job, _), all_begun in sorted(ticks.items()):
        by = {each.incarnation for each in all_begun}
        of_one[job].append((all_begun, by.pop() if len(by) == 1 < len(all_begun) else None))
    for job, found in of_one.items():
        for by, streak in groupby(found, key=lambda each: each[1]):
            runs = [each for all_begun, _ in streak for each in all_begun]
            since, until = runs[0].at, runs[-1].at
            if by is None or until - since < SETTLES * 1e6:
                continue
            if others := [other for other in lives if other != by and was_there(lives[other], since, until, evidence)]:
                yield f"both parts of {job} were begun by {by} for {(until - since) / 1e6:.1f} s beside {others}"


def lives_of(evidence):
    """Return the process of each incarnation that shares shards, and from when to when it began runs."""
    lives = {}
    for each in evidence.begun:
        if not kind_of(each.job).startswith("queued"):
            _, since, _ = lives.get(each.incarnation, (0, each.at, 0))
            lives[each.incarnation] = each.process, since, each.at
    return lives


def was_there(life, since, until, evidence):
    """Whether an incarnation lived that long and nothing befell it."""
    process, first, last = life
    if not first <= since <= until <= last:
        return False
    kinds = {each.kind for each in evidence.troubles}
    return not evidence.troubled(process, kinds, since - SETTLES * 1e6, until)

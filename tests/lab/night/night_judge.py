"""The judge of a night: what people should have heard, by the model, against what the channels have taken."""

from collections import defaultdict

from night_world import AWAY, RETRY, TIMEOUT

LATE = 90.0
"""Seconds after which the end of an incident is told whose target was taken out: a look at the file, or a restart."""


def judge(night):
    """The counts of a night, and all that is wrong with it, in words."""
    found = list(night.log.wrong)
    for name, taken in night.log.taken.items():
        found += _wrong_at(name, taken, night)
    found += _outages_not_seen(night)
    still_open = {name.replace("-", "_") for name, model in night.models.items() if model.open is not None}
    messages = [job for job in night.data.jobs if job.startswith("notify:")]
    left = [job for job in messages if job.split(":")[1].rsplit("-", 2)[0] not in still_open]
    found += [f"never settled: {job}" for job in left]
    return _counts(night, left), found


def _counts(night, left):
    incidents = [each for model in night.models.values() for each in model.incidents]
    counts = {
        "lives of the agent": night.lives,
        "checks": night.statuses.total(),
        **{f"checks {name}": count for name, count in sorted(night.statuses.items())},
        "checks that began too late": night.late_checks,
        "outages": sum(len(each.outages) for each in night.world.fates.values()),
        "targets that flapped": sum(each.flapping is not None for each in night.world.fates.values()),
        "incidents expected": len(incidents),
        "of them ended by a removal": sum(each.is_gone for each in incidents),
    }
    for name, taken in night.log.taken.items():
        kinds = [night.log.messages[key].kind.value for key in taken]
        counts[f"triggers at {name}"] = kinds.count("trigger")
        counts[f"resolved at {name}"] = kinds.count("resolved")
        counts[f"reminders at {name}"] = kinds.count("reminder")
        counts[f"taken again at {name}, after a death"] = sum(map(len, taken.values())) - len(taken)
    counts["attempts in vain"] = night.log.in_vain
    counts["messages left"] = len(left)
    return counts


def _wrong_at(channel, taken, night):
    """What is wrong with what a channel has taken."""
    told = defaultdict(lambda: defaultdict(dict))
    for key, times in taken.items():
        message = night.log.messages[key]
        told[message.target][message.incident][key.rpartition(":")[2]] = (message, times[0][0])
        lives = [life for _, life in times]
        if len(set(lives)) < len(lives):
            yield f"{channel}: {key} came twice from one life"
    for name, model in night.models.items():
        yield from (f"{channel}: {name}: {each}" for each in _wrong_about(model.incidents, list(told[name].values())))


def _wrong_about(expected, told):
    """What is wrong with the incidents of a target as they were told, each by its kinds of messages."""
    by_began = {round(message.began, 3): kinds for kinds in told for message, _ in kinds.values()}
    if len(by_began) != len(told) or by_began.keys() != {round(each.began, 3) for each in expected}:
        heard = [(round(began, 3), sorted(kinds)) for began, kinds in sorted(by_began.items())]
        yield f"{len(expected)} incidents were to be told, {len(told)} were: {expected} {heard}"
        return
    for incident in expected:
        kinds = by_began[round(incident.began, 3)]
        if incident.ended is None and set(kinds) <= {"trigger", *(each for each in kinds if "reminder" in each)}:
            continue  # it is open at the end of the night
        if not {"trigger", "resolved"} <= set(kinds):
            yield f"only {sorted(kinds)} of the incident at {incident.opened:.0f} s"
            continue
        (_, triggered), (resolved, ended) = kinds["trigger"], kinds["resolved"]
        allowed = LATE if incident.is_gone else 0.001
        if incident.ended is None or abs(resolved.ended - incident.ended) > allowed:
            yield f"the incident at {incident.opened:.0f} s is told to have ended at {resolved.ended}: {incident}"
        if resolved.is_gone is not incident.is_gone:
            yield f"the incident at {incident.opened:.0f} s: removed? {resolved.is_gone}, it was {incident.is_gone}"
        times = [at for _, at in kinds.values()]
        if triggered != min(times) or ended != max(times):
            yield f"the incident at {incident.opened:.0f} s was told out of order: {sorted(kinds)}"


def _outages_not_seen(night):
    """Outages that a target was checked in for long enough, and of which there was no incident."""
    world = night.world
    for number, name in enumerate(world.names):
        if not all(world.is_configured(number, change) for change in range(len(world.reloads) + 1)):
            continue
        every = world.fates[name].every
        to_open = every + RETRY + 2 * TIMEOUT + 10.0
        for outage in world.fates[name].outages:
            seen = outage.end - outage.begin - world.offline.within(outage.begin, outage.end)
            if seen < 2 * (to_open + AWAY):
                continue
            until = outage.end + to_open
            if not any(
                each.opened < until and (each.closed or until) > outage.begin for each in night.models[name].incidents
            ):
                yield f"{name}: nobody heard of the outage {outage.begin:.0f} to {outage.end:.0f} s"

"""Statistics of the nodes that share a store. Any thread."""

from __future__ import annotations

from collections import Counter

from .._jobs import JobList, shard_of_job
from .._values import AgentStatistics, FleetStatistics


def fleet_of(jobs: JobList) -> FleetStatistics | None:
    """None: the store is not shared, or no view of its nodes has been read yet."""
    view = jobs.ownership.view
    if view is None:
        return None
    owned = Counter(view.owners)
    agents = tuple(
        AgentStatistics(peer.name, peer.epoch, owned[peer.epoch], peer.skew, peer.is_off) for peer in view.peers
    )
    me = next((agent.name for agent in agents if agent.epoch == view.me), "")
    elsewhere = [job for job in jobs.jobs() if job.sparse is not None and "is_elsewhere" in job.sparse]
    asked = Counter(
        job.policy.where
        for job in elsewhere
        if job.policy.where is not None and not (job.policy.is_part and view.owner_of(shard_of_job(job)))
    )
    waiting = {where: count for where, count in asked.items() if view.lacks(where)}
    return FleetStatistics(me=me, agents=agents, jobs_elsewhere=len(elsewhere), waiting=waiting)

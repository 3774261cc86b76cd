"""The agents that have a store, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

from attrs import asdict

from scheduler.stores import SHARDS, AgentRow, FleetView


def fleet_lines(view: FleetView, now: datetime) -> Iterator[str]:
    """Say who is there, and what is open."""
    if not view.agents:
        yield "no agent has the store"
    for agent in view.agents:
        yield _line(agent, now)
    if view.free and any(agent.left is not None for agent in view.agents):
        yield f"{view.free} of {SHARDS} shards are nobody's"
    if view.requests:
        yield f"{view.requests} requests to other agents are not done"


def fleet_in_json(view: FleetView) -> Iterator[str]:
    """Say of each agent what is known of it, as one object."""
    for agent in view.agents:
        yield json.dumps(asdict(agent) | {"labels": dict(agent.labels)}, ensure_ascii=False)


def _line(agent: AgentRow, now: datetime) -> str:
    hours = (now - datetime.fromtimestamp(agent.opened_us / 1e6, UTC)).total_seconds() / 3600
    words = [f"{agent.name}: incarnation {agent.epoch}, for {hours:.1f} h"]
    if agent.left is None:
        words.append("has the store for itself")
    else:
        lease = f"lease {agent.left:.1f} s" if agent.left > 0 else f"lease ended {-agent.left:.1f} s ago"
        words += [lease, f"{agent.shards} of {SHARDS} shards with {agent.jobs} jobs", f"format {agent.format}"]
    if agent.lag > 0:
        words.append(f"{agent.lag:.1f} s behind")
    words += [f"{name}={value}" for name, value in sorted(agent.labels.items())]
    return ", ".join(words)

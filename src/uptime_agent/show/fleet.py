"""Nodes, as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from attrs import asdict

from scheduler.stores import SHARDS, AgentRow, FleetView, HandOver, Loan, Standby, StoreServer, lack_text

LOSES: Final = "a failover loses the last commits, and ticks may run twice"


def fleet_lines(view: FleetView, now: datetime) -> Iterator[str]:
    """Describe the nodes and open work."""
    if not view.agents:
        yield "no node has the store"
    for node in view.agents:
        yield _line(node, now)
    if view.free and any(node.left is not None for node in view.agents):
        yield f"{view.free} of {SHARDS} shards are nobody's"
    for where, jobs in view.waiting.items():
        yield f"{jobs} jobs wait: {lack_text(where)}"
    for over in view.hand_overs:
        yield _hand_over(over)
    for loan in view.loans:
        yield _loan(loan)
    if view.requests:
        yield f"{view.requests} requests to other nodes are not done"
    if view.server is not None:
        yield from risks(view.server)


def risks(server: StoreServer) -> Iterator[str]:
    """Say what a failover of the server would lose."""
    if server.is_standby:
        yield "this server is a standby, which takes no commits: no node can work with it"
        return
    for standby in server.standbys:
        if standby.is_waited_for is None:
            yield f"{_name(standby)}: this role may not see whether commits wait for it: grant it pg_monitor"
        elif not standby.is_waited_for:
            yield f"{_name(standby)}: commits do not wait for it (synchronous_standby_names): {LOSES}"
    if server.standbys and not server.waits:
        yield f"synchronous_commit is {server.synchronous_commit}, so commits wait for no standby's disk: {LOSES}"


def fleet_in_json(view: FleetView) -> Iterator[str]:
    """Yield an object per node, handoff, loan, missing label, and server that has or is a standby."""
    for node in view.agents:
        yield json.dumps(asdict(node) | {"labels": dict(node.labels)}, ensure_ascii=False)
    for over in view.hand_overs:
        yield json.dumps({"hand_over": asdict(over)}, ensure_ascii=False)
    for loan in view.loans:
        yield json.dumps({"loan": asdict(loan)}, ensure_ascii=False)
    for where, jobs in view.waiting.items():
        yield json.dumps({"waiting": {"where": where, "jobs": jobs}}, ensure_ascii=False)
    if (server := view.server) is not None and (server.standbys or server.is_standby):
        yield json.dumps({"server": asdict(server) | {"is_safe": server.is_safe}}, ensure_ascii=False)


def _name(standby: Standby) -> str:
    return f"standby {standby.name}" if standby.name else "a standby"


def _line(node: AgentRow, now: datetime) -> str:
    hours = (now - datetime.fromtimestamp(node.opened_us / 1e6, UTC)).total_seconds() / 3600
    words = [f"{node.name}: incarnation {node.epoch}, for {hours:.1f} h"]
    if node.left is None:
        words.append("has the store for itself")
    else:
        lease = f"lease {node.left:.1f} s" if node.left > 0 else f"lease ended {-node.left:.1f} s ago"
        words += [lease, f"{node.shards} of {SHARDS} shards with {node.jobs} jobs", f"format {node.format}"]
    if node.lag > 0:
        words.append(f"{node.lag:.1f} s behind")
    words += [f"{name}={value}" for name, value in sorted(node.labels.items())]
    if node.skew is not None:
        clock = f"clock {abs(node.skew):.3f} s {'ahead' if node.skew > 0 else 'behind'}"
        words.append(f"{clock}: too far, so others have its shards" if node.is_off else clock)
    if node.connections is not None:
        words.append("1 connection" if node.connections == 1 else f"{node.connections} connections")
    if node.version is not None:
        words.append(f"timerqueue {node.version}")
    return ", ".join(words)


def _hand_over(over: HandOver) -> str:
    how = "died" if over.is_dead else "left"
    since = "after its last sign of life" if over.is_dead else "later"
    went = f"{over.name} (incarnation {over.epoch}) {how} {over.ago:.0f} s ago"
    if over.seconds is None:
        return f"{went}, nobody has claimed its {over.shards} shards yet"
    claimed = f"{over.shards} shards" if over.claimed == over.shards else f"{over.claimed} of its {over.shards} shards"
    return f"{went}, {claimed} claimed {over.seconds:.3f} s {since}"


def _loan(loan: Loan) -> str:
    who = f"a node that has died (incarnation {loan.epoch})" if loan.agent is None else loan.agent
    of = "" if loan.size is None else f" of {loan.size}"
    words = f"limit {loan.limit}: {who} has {loan.units}{of} units"
    if loan.waiting:
        words += f", {loan.waiting} wait"
    return words if loan.left is None else f"{words}, free in {max(0.0, loan.left):.1f} s"

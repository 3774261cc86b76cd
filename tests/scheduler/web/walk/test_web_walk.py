"""A walk through every route with a real server, and on a fleet whose nodes are killed between two steps."""

import threading
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from kit import wait_until
from nodes import Nodes, eventually
from scheduler import JobSpec, JobState, Outcome, WrongOwner, rate
from scheduler.web import ApiError, Unreachable
from scheduler.web._protocol import at_path
from scheduler.web._routes import ROUTES

MANY = {f"/v1/jobs/{verb}" for verb in ("run", "pause", "resume", "skip")}
WALKED_ELSEWHERE = {"/v1/events", "/v1/changes", "/v1/fleet", "/v1/queue", "/v1/jobs/{id}/why", *MANY}
"""Routes with walks of their own."""


@pytest.fixture
def nodes(tmp_path):
    """Start nodes of a fleet, or one process."""
    nodes = Nodes(tmp_path)
    yield nodes
    nodes.close()


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path):
    """Name a store that only one process may own."""
    if request.param == "sqlite":
        return {"kind": "sqlite", "path": str(tmp_path / "jobs.db")}
    server, schema = map(request.getfixturevalue, ("postgres_server", "postgres_schema"))
    return {"kind": "postgres", "dsn": server.dsn, "schema": schema}


def routes_walked(nodes):
    """Return the routes that were asked for, as the table has them."""
    found = set()
    for method, path in nodes.walked:
        if method in (routes := at_path(ROUTES, path.strip("/").split("/"))):
            found.add((method, routes[method][0].path))
    return found


def all_routes():
    """Return the routes of the table."""
    return {(route.method, route.path) for route in ROUTES if route.path not in WALKED_ELSEWHERE}


def walk(client):
    """Ask for every route, from an empty store. Leave two jobs: "kept", which is paused, and "set"."""
    assert client.ask("GET", "/healthz").body == client.ask("GET", "/readyz").body == {"status": "ok"}
    assert client.ask("GET", "/v1/openapi.json").body["openapi"].startswith("3.")
    assert client.jobs() == []
    job = client.add("note", "@every 1h", id="a/ä", args=[["x"]], tags=["t"], needs="http")
    assert client.get("a/ä").spec == JobSpec("a/ä", "note", "@every 1h", args=[["x"]], tags=["t"], needs="http",
                                            owner="api")  # fmt: skip
    client.ask("PATCH", "/v1/jobs/a%2F%C3%A4", {"name": "first"})
    job.update(timeout="10s")
    assert (job.name, job.timeout) == ("first", timedelta(seconds=10))
    assert job.run_now().result("30s").result == ["x"]
    assert client.add("fail", "@every 1h", id="broken").run_now().result("30s").outcome is Outcome.FAILED
    first, second = job.next_starts(2)
    job.skip()
    assert job.next_start == second
    job.supersede()
    assert job.next_start == first
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=5)
    job.set_next_start(at)
    assert job.next_start == at
    job.pause("new disks", until=at)
    assert (job.state, job.pauses[0].reason) == (JobState.DISABLED, "new disks")
    job.resume()
    assert job.pauses == ()
    assert [each.outcome for each in client.history("a/ä")][-1] is Outcome.SUCCEEDED
    client.resize(9, {"http": 3, "new": 2, "pace": rate(7, "1s")})
    assert [client.limits()[name].size for name in ("http", "new", "pace")] == [3, 2, 7]
    specs = [JobSpec("set", "note", "@every 1h"), JobSpec("unset", "note", "@every 1h")]
    assert client.sync(specs, owner="cmdb").added == ("set", "unset")
    assert client.sync(specs[:1], owner="cmdb", dry_run=True).removed == ("unset",)
    assert client.sync(specs[:1], owner="cmdb").removed == ("unset",)
    assert client.summary().owners == {"api": 2, "cmdb": 1}
    with pytest.raises(WrongOwner):
        client.get("set").remove()
    job.remove()
    client.get("broken").remove()
    client.add("note", "@every 1h", id="kept").pause("for good")
    assert sorted(each.id for each in client.jobs()) == ["kept", "set"]


@pytest.mark.parametrize("on_socket", [False, True], ids=["tcp", "unix"])
def test_a_walk_through_every_route(nodes, store, on_socket):
    """From an empty folder, with a kill -9 at the end: what was acknowledged is there afterwards."""
    client = nodes.start(store, on_socket=on_socket)
    walk(client)
    assert routes_walked(nodes) == all_routes()
    nodes.kill("node")
    with pytest.raises(Unreachable):
        client.jobs()
    client = nodes.start(store, on_socket=on_socket)
    assert sorted(each.id for each in client.jobs()) == ["kept", "set"]
    assert (client.get("kept").pauses[0].reason, client.get("set").owner) == ("for good", "cmdb")
    assert [each.outcome for each in client.history("a/ä")][-1] is Outcome.SUCCEEDED
    nodes.stop("node")


@pytest.mark.parametrize("rounds", [3])
def test_acknowledged_changes_survive_a_kill(nodes, store, rounds):
    """Threads add and change jobs until the process is killed, again and again."""
    acknowledged, numbers = {}, count()

    def write(client):
        while True:
            id = f"job {next(numbers)}"
            try:
                job = client.add("note", "@every 1h", id=id)
                acknowledged[id] = 0
                job.update(priority=1)
                acknowledged[id] = 1
            except (ApiError, Unreachable):
                return

    for _ in range(rounds):
        client = nodes.start(store)
        threads = [threading.Thread(target=write, args=(client,)) for _ in range(3)]
        enough = len(acknowledged) + 6
        for thread in threads:
            thread.start()
        wait_until(lambda: len(acknowledged) >= enough)  # noqa: B023 - it waits here
        nodes.kill("node")
        for thread in threads:
            thread.join()
    found = {job.id: job.priority for job in nodes.start(store).jobs()}
    assert {id: priority for id, priority in acknowledged.items() if found.get(id, -1) < priority} == {}


# -- a fleet -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def fleet(nodes, postgres_server, postgres_schema):
    """Start three nodes that share a store; return their clients by name."""
    store = {"kind": "postgres", "dsn": postgres_server.dsn, "schema": postgres_schema}
    return {name: nodes.start(store | {"name": name}, name) for name in ("n1", "n2", "n3")}


def test_any_node_answers_for_all_jobs(nodes, fleet):
    """Jobs are added, changed, paused, run and removed by nodes that need not have them; then their owner is killed."""
    clients = list(fleet.values())
    ids = [f"job-{number}" for number in range(12)]
    for number, id in enumerate(ids):
        clients[number % 3].add("note", "@every 1h", id=id, args=[number])
    for client in clients:
        wait_until(lambda: len(client.jobs()) == len(ids))  # noqa: B023 - it waits here
    owners = {job.id: job.agent for job in clients[0].jobs()}
    assert set(owners.values()) <= set(fleet)
    for number, id in enumerate(ids):
        client = clients[(number + 1) % 3]
        client.get(id).update(timeout=f"{number + 1}s")
        clients[(number + 2) % 3].get(id).pause(f"reason {number}")
    for number, id in enumerate(ids[:6]):
        client = clients[number % 3]
        wait_until(lambda: client.get(id).pauses)  # noqa: B023 - it waits here
        client.get(id).resume()
        answer = clients[(number + 1) % 3].get(id).run_now().result("60s")
        assert (answer.outcome, answer.result) == (Outcome.SUCCEEDED, number)
    clients[0].get("job-11").remove()
    dead = next(owner for id, owner in owners.items() if id == "job-0")
    nodes.kill(dead)
    left = [client for name, client in fleet.items() if name != dead]
    expected = {
        id: (timedelta(seconds=number + 1), [] if number < 6 else [f"reason {number}"])
        for number, id in enumerate(ids[:11])
    }
    for client in left:
        wait_until(lambda: standing(client) == expected)  # noqa: B023 - it waits here
        wait_until(lambda: dead not in {job.agent for job in client.jobs()})  # noqa: B023 - it waits here
    answer = eventually(lambda: left[1].get("job-0").run_now()).result("60s")
    assert (answer.outcome, answer.result) == (Outcome.SUCCEEDED, 0)
    runs = nodes.runs()
    assert sorted(runs) == sorted(set(runs))


def standing(client):
    """Return the timeout and the reasons of pauses of each job, as one node tells them."""
    return {job.id: (job.timeout, [pause.reason for pause in job.pauses]) for job in client.jobs()}


def test_a_fleet_keeps_what_was_acknowledged_while_nodes_are_killed(nodes, fleet, postgres_server, postgres_schema):
    """Each node takes writes; two of the three are killed meanwhile, and the third has everything."""
    acknowledged, numbers, stop = set(), count(), threading.Event()

    def write(client):
        while not stop.is_set():
            id = f"job {next(numbers)}"
            try:
                client.add("note", "@every 1h", id=id)
            except Unreachable:
                return
            except ApiError:  # it has waited too long for the store, and is not acknowledged
                continue
            acknowledged.add(id)

    threads = [threading.Thread(target=write, args=(client,)) for client in fleet.values()]
    for thread in threads:
        thread.start()
    for name in ("n1", "n2"):
        enough = len(acknowledged) + 20
        wait_until(lambda: len(acknowledged) >= enough)  # noqa: B023 - it waits here
        nodes.kill(name)
    stop.set()
    for thread in threads:
        thread.join()
    wait_until(lambda: acknowledged <= {job.id for job in fleet["n3"].jobs()})
    wait_until(lambda: {job.agent for job in fleet["n3"].jobs()} == {"n3"})

"""A store in PostgreSQL in a process that was forked off the one that has it open."""

import os

import pytest

from forks import in_fork, refusal
from kit import no_hint
from scheduler.stores import Batch

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks on this system")


@pytest.mark.parametrize("shared", [False, True])
def test_an_open_store_refuses_in_a_fork_and_goes_on_in_its_own_process(shared_store, shared):
    """The child spoke into the connection of its parent."""
    store = shared_store(shared=shared)
    store.open(0, no_hint)
    asked = {
        "open": lambda: store.open(0, no_hint),
        "load": lambda: list(store.load()),
        "pauses": store.pauses,
        "commit": lambda: store.commit(Batch()),
        "changes": store.changes,
        "history": store.history,
        "executions": lambda: store.executions.audit(0, 0),
    }
    if shared:
        asked["sharing"] = lambda: store.sharing.renew(0)
    said = in_fork(
        lambda: {name: refusal(verb) for name, verb in asked.items()} | {"repr": repr(store), "close": store.close()}
    )
    assert (said.pop("repr"), said.pop("close")) == (repr(store), None)
    assert {verb for verb, answer in said.items() if "LifecycleError" not in answer[0]} == set()
    assert {verb for verb, answer in said.items() if "StoreUnusable" not in answer[0]} == set()
    assert store.pauses() == []
    store.close()


def test_a_store_that_was_not_open_is_opened_after_the_fork_under_the_childs_name(shared_store):
    """Workers that share a store are told apart by their processes."""
    store = shared_store(shared=True)

    def name_of_child():
        store.open(0, no_hint)
        (peer,) = store.fleet().agents
        store.close()
        return [peer.name, os.getpid()]

    name, process = in_fork(name_of_child)
    assert f"process {process} on " in name

"""Acts as values: they read back as they were, and nothing that a store may hold is taken for one."""

import json

import pytest
from hypothesis import given, strategies as st

from uptime_agent.acts import Act, ActKind, Known, Scope, ScopeKind, act_id, act_of
from uptime_agent.acts.book import ActBook, settled

TEXTS = st.text(min_size=1, max_size=40)
INSTANTS = st.floats(0, 1e11)
ACTS = st.builds(
    Act,
    kind=st.sampled_from(ActKind),
    scope=st.builds(Scope, st.sampled_from(ScopeKind), TEXTS),
    actor=TEXTS,
    reason=TEXTS,
    since=INSTANTS,
    until=st.none() | INSTANTS,
    incident=st.none() | TEXTS,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
KNOWN = Known({"shop": frozenset({"web", "paid"}), "blog": frozenset({"web"})}, {"sites": ("shop", "gone")})


@given(ACTS)
def test_an_act_reads_back_as_it_was(act):
    """Through JSON."""
    assert act_of(json.loads(json.dumps(act.values()))) == act


@given(ACTS, st.sampled_from(["version", "act", "of", "name", "actor", "reason", "since", "until", "incident"]), JSON)
def test_anything_else_is_refused_with_a_value_error(act, key, value):
    """Another program may have written the row."""
    values = act.values() | {key: value}
    try:
        found = act_of(values)
    except ValueError:
        return
    assert found.kind in ActKind


def test_long_names_that_differ_have_ids_that_differ():
    """An id of a job has a bound, and a name nearly has none."""
    names = [f"{'x' * 480}{number}" for number in range(3)]
    ids = {act_id(ActKind.SILENCE, Scope(ScopeKind.TAG, name)) for name in names}
    assert len(ids) == 3
    assert max(map(len, ids)) < 400


@pytest.mark.parametrize(
    ("scope", "covered"),
    [
        (Scope(ScopeKind.TARGET, "shop"), {"shop"}),
        (Scope(ScopeKind.TAG, "web"), {"shop", "blog"}),
        (Scope(ScopeKind.TAG, "paid"), {"shop"}),
        (Scope(ScopeKind.GROUP, "sites"), {"shop", "sites"}),
        (Scope(ScopeKind.TAG, "other"), set()),
    ],
)
def test_a_silence_covers_what_its_scope_names(scope, covered):
    """A group covers its members and itself."""
    book = ActBook(KNOWN)
    book.put(Act(kind=ActKind.SILENCE, scope=scope, actor="ann", reason="x", since=0.0, until=10.0))
    names = ("shop", "blog", "sites", "gone")
    assert {name for name in names if book.holding(ActKind.SILENCE, name, 5.0)} == covered
    assert not any(book.holding(ActKind.SILENCE, name, 10.0) for name in names)


def test_of_several_silences_the_last_counts():
    """The narrower scope is none that wins."""
    book = ActBook(KNOWN)
    for scope, until in ((Scope(ScopeKind.TARGET, "shop"), 10.0), (Scope(ScopeKind.TAG, "web"), 20.0)):
        book.put(Act(kind=ActKind.SILENCE, scope=scope, actor="ann", reason="x", since=0.0, until=until))
    assert book.holding(ActKind.SILENCE, "shop", 5.0).until == 20.0


@given(st.none() | TEXTS, st.none() | TEXTS, INSTANTS, INSTANTS)
def test_a_recovery_always_ends_an_acknowledgement(of, present, began, since):
    """And another incident is never taken for the acknowledged one."""
    shop = Scope(ScopeKind.TARGET, "shop")
    act = Act(kind=ActKind.ACKNOWLEDGE, scope=shop, actor="ann", reason="x", since=since, incident=of)
    stays = settled(act, present, began)
    if present is None:
        assert stays is None
    elif of is not None:
        assert (stays is not None) is (of == present)
    else:
        assert (stays is not None) is (began <= since)

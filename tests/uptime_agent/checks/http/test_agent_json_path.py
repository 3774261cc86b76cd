"""Paths into JSON: where they lead, what they compare, and what is none."""

import json

import pytest
from hypothesis import given, strategies as st

from uptime_agent.checks.http.json_path import NoJson, parse_expectation, parse_json, parse_path

DOCUMENT = {
    "status": "ok",
    "queue": {"length": 5, "is-paused": False, "none": None, "ratio": 0.5},
    "nodes": [{"id": "a", "display name": "Node A"}, {"id": "b", "it's": 'say "x"'}],
    "größe": 1,
    "a.b": {"[0]": True},
}

HOLDS = [
    "$",
    "$.status",
    "$.queue.none",
    '$.status == "ok"',
    "$.status == 'ok'",
    '$.status=="ok"',
    "$.status != 'degraded'",
    "$.queue.length < 6",
    "$.queue.length <= 5",
    "$.queue.length > 4.5",
    "$.queue.length >= 5",
    "$.queue.length == 5.0",
    "$.queue.length != true",
    "$.queue.ratio == 5e-1",
    "$.queue.is-paused == false",
    "$.queue.is-paused != 0",
    "$.queue.none == null",
    "$.status > 'oh'",
    "$.nodes[0].id == 'a'",
    "$.nodes[-1].id == 'b'",
    "$.nodes[0]['display name'] == 'Node A'",
    "$.nodes[1]['it\\'s'] == 'say \"x\"'",
    '$.nodes[1]["it\'s"] == "say \\"x\\""',
    "$.größe == 1",
    "$['a.b']['[0]'] == true",
    "$.status == '\\u006fk'",
]


@pytest.mark.parametrize("text", HOLDS)
def test_an_expectation_that_holds(text):
    """Nothing is to be said about it."""
    assert parse_expectation(text).why_not(DOCUMENT) is None


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("$.status == 'up'", '$.status is "ok", expected == "up"'),
        ("$.queue.length > 5", "$.queue.length is 5, expected > 5"),
        ("$.queue.is-paused == 0", "$.queue.is-paused is false, expected == 0"),
        ("$.queue.length == true", "$.queue.length is 5, expected == true"),
        ("$.nodes == 1", "$.nodes is a list, expected == 1"),
        ("$.queue != null", None),
        ("$.queue < 5", "$.queue is an object, which is neither < 5 nor not"),
        ("$.status < 5", '$.status is "ok", which is neither < 5 nor not'),
        ("$.queue.is-paused < 5", "$.queue.is-paused is false, which is neither < 5 nor not"),
        ("$.missing", "there is no $.missing in its JSON"),
        ("$.missing != 1", "there is no $.missing in its JSON"),
        ("$.nodes[2]", "there is no $.nodes[2] in its JSON"),
        ("$.nodes[-3]", "there is no $.nodes[-3] in its JSON"),
        ("$.nodes.length", "there is no $.nodes.length in its JSON"),
        ("$.status[0]", "there is no $.status[0] in its JSON"),
        ("$.queue[0]", "there is no $.queue[0] in its JSON"),
        ("$['nodes']['0']", "there is no $['nodes']['0'] in its JSON"),
        ("$.__class__", "there is no $.__class__ in its JSON"),
    ],
)
def test_an_expectation_that_does_not_hold_says_what_stands_there(text, error):
    """And what should."""
    assert parse_expectation(text).why_not(DOCUMENT) == error


@pytest.mark.parametrize(
    "text",
    [
        "status",
        "",
        "$.",
        "$..status",
        "$.*",
        "$[*]",
        "$[?(@.a)]",
        "$[0:1]",
        "$.a b",
        "$.a =",
        "$.a = 1",
        "$.a ==",
        "$.a == ok",
        "$.a == 'x",
        "$.a == NaN",
        "$.a == Infinity",
        "$.a == {}",
        "$.a < null",
        "$['a",
        "$['\\x41']",
        "$[1.5]",
        "$[12345678901]",
        "$.a.length()",
        "$.a == " + "9" * 5_000,
        "$" + ".a" * 501,
    ],
)
def test_what_is_no_expectation_is_refused(text):
    """With what was expected."""
    with pytest.raises(ValueError, match=r"path|another|number|text"):
        parse_expectation(text)


def test_a_path_stands_alone_where_a_value_is_taken_out():
    """A comparison there would be a mistake."""
    assert parse_path("$.nodes[1].id").find(DOCUMENT) == "b"
    with pytest.raises(ValueError, match=r"a path without a comparison, such as \$.a"):
        parse_path("$.a == 1")


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", "no JSON, from character 1 on"),
        (b"<html>", "no JSON, from character 1 on"),
        (b'{"a": 1', "no JSON, from character 8 on"),
        (b'{"a": NaN}', "no JSON that can be read: it has a number that makes no sense"),
        (b"9" * 5_000, "no JSON that can be read: it has a number that makes no sense"),
        (b"[" * 100_000, "no JSON that can be read: it is nested too deep"),
        (b'{"a":' * 100_000, "no JSON that can be read: it is nested too deep"),
        (b'"\xff"', "no JSON: it is not UTF-8"),
    ],
)
def test_what_is_no_json_is_told_in_words_of_ours(content, error):
    """Whatever a server sends, it is no defect of the check."""
    with pytest.raises(NoJson) as caught:
        parse_json(content)
    assert str(caught.value) == error


def test_a_long_value_is_cut():
    """A server may put anything there."""
    error = parse_expectation("$.a == 1").why_not({"a": "x" * 10_000})
    assert len(error) < 100
    assert parse_expectation("$.a == 1").why_not({"a": 10**5_000}) == (
        "$.a is a number of more than 60 digits, expected == 1"
    )


@given(st.text(max_size=40))
def test_whatever_is_written_is_read_or_refused(text):
    """Never anything else."""
    for written in (text, "$" + text, f"$.a {text}", f"$[{text}]"):
        try:
            found = parse_expectation(written)
        except ValueError:
            continue
        assert found.why_not({}) is None or isinstance(found.why_not({}), str)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_each_place_of_a_document_is_found_by_its_path(document):
    """However its members are called."""
    waiting = [("$", document)]
    while waiting:
        path, value = waiting.pop()
        if len(path) <= 900:
            assert parse_path(path).find(document) == value
        if isinstance(value, dict):
            waiting += [(f"{path}[{json.dumps(key)}]", each) for key, each in value.items()]
        if isinstance(value, list):
            waiting += [(f"{path}[{at}]", each) for at, each in enumerate(value)]

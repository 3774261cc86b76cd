"""Conditions of Gatus are anded, and stay so here; one that has no counterpart is told, and drops nothing else."""

import pytest

from foreign_monitors import bring, gatus

WEB = "https://shop.example/health"


def conditioned(folder, *conditions, url=WEB, **others):
    """Import an endpoint with these conditions."""
    return bring("gatus", gatus({"url": url, "conditions": list(conditions), **others}), folder)


@pytest.mark.parametrize(
    ("conditions", "status"),
    [
        (["[STATUS] < 300", "[STATUS] >= 200"], "200-299"),
        (["[STATUS] >= 200", "[STATUS] < 300"], "200-299"),
        (["[STATUS] != 500"], ["100-499", "501-599"]),
        (["[STATUS] == any(200, 204)", "[STATUS] != 204"], 200),
        (["[STATUS] == pat(2*)"], "200-299"),
        (["[STATUS] != any(200, 201)", "[STATUS] < 203"], ["100-199", 202]),
        (["200 == [STATUS]"], 200),
        (["400 > [STATUS]"], "100-399"),
        (["[status] <= 299"], "100-299"),
        (["[CONNECTED] == true"], "100-599"),
    ],
)
def test_a_status_has_to_fit_all_conditions(conditions, status, tmp_path):
    """An answer of 500 was up where the last of two conditions won."""
    assert conditioned(tmp_path, *conditions).check["expect_status"] == status


def test_of_two_statuses_that_exclude_each_other_the_second_is_told(tmp_path):
    """There it was always down; a check that expects nothing would be always up."""
    found = conditioned(tmp_path, "[STATUS] == 200", "[STATUS] == 404")
    assert found.check["expect_status"] == 200
    assert found.told("the condition [STATUS] == 404: no status fits", found.line_of("404"))


@pytest.mark.parametrize(
    ("conditions", "limit"),
    [
        (["[RESPONSE_TIME] < 500", "[RESPONSE_TIME] < 900"], "500ms"),
        (["[RESPONSE_TIME] < 900", "[RESPONSE_TIME] < 500"], "500ms"),
        (["[RESPONSE_TIME] <= 2s"], "2s"),
        (["300 > [RESPONSE_TIME]"], "300ms"),
    ],
)
def test_the_shortest_response_time_holds(conditions, limit, tmp_path):
    """It is degraded here and down there, which is told."""
    found = conditioned(tmp_path, *conditions)
    assert found.check["degraded_above"] == limit
    assert found.told("degraded here, not down")


def test_the_longest_rest_of_a_certificate_holds(tmp_path):
    """Two conditions ask for both."""
    found = conditioned(tmp_path, "[CERTIFICATE_EXPIRATION] > 48h", "[CERTIFICATE_EXPIRATION] > 240h")
    assert found.check["cert_expires_within"] == "240h"


def test_a_member_that_must_not_be_there_is_told(tmp_path):
    """`$.errors == false` would be down for everybody who has no errors."""
    found = conditioned(tmp_path, "has([BODY].errors) == false", "has([BODY].data) == true")
    assert found.check["json"] == ["$.data"]
    assert found.told("the condition has([BODY].errors) == false", found.line_of("errors"))


def test_a_body_condition_that_cannot_be_read_drops_only_itself(tmp_path):
    """The whole list was gone with it."""
    found = conditioned(
        tmp_path, "[BODY].a == 1", "[BODY].b < none", "len([BODY].c) > 0", "[BODY].items[*].id == 1", "[BODY].1st == x"
    )
    assert found.check["json"] == ["$.a == 1", "$['1st'] == \"x\""]
    for word in ("[BODY].b < none", "len([BODY].c)", "[BODY].items[*].id"):
        assert found.told(f"the condition {word}", found.line_of(word))


@pytest.mark.parametrize(
    ("condition", "options"),
    [
        ("[BODY] == pong", {"regex": r"\A\s*pong\s*\z"}),
        ("[BODY] == any(a.b, c)", {"regex": r"\A\s*(?:a\.b|c)\s*\z"}),
        ("[BODY] == pat(*<h1>*)", {"contains": "<h1>"}),
        ("[BODY] == pat(ok*)", {"regex": r"(?s)\A\s*ok.*\s*\z"}),
        ("[BODY] != pat(*error*)", {"not_contains": "error"}),
    ],
)
def test_a_whole_body_is_looked_at_by_re2(condition, options, tmp_path):
    """RE2 knows another sign for the end of a text, so that none of these was ever carried over."""
    pytest.importorskip("re2")
    assert conditioned(tmp_path, condition).check.items() >= options.items()


def test_a_second_text_in_the_body_is_an_expression(tmp_path):
    """A check has one `contains`, and one `regex`; a third is told."""
    pytest.importorskip("re2")
    found = conditioned(tmp_path, *(f"[BODY] == pat(*{each}*)" for each in ("one", "two", "three")))
    assert (found.check["contains"], found.check["regex"]) == ("one", "(?s)two")
    assert found.told("pat(*three*)", found.line_of("three"))


@pytest.mark.parametrize("condition", ["[CONNECTED] == false", "[CONNECTED] != true"])
def test_what_has_to_be_unreachable_is_not_checked_the_wrong_way_round(condition, tmp_path):
    """A comment is better than a check that is up when it should be down."""
    found = conditioned(tmp_path, condition, url="tcp://db.example:6379")
    assert found.checks == {}
    assert found.told("it would be up here when it was down there", found.line_of(condition))
    assert f"# Not carried over: e0: the condition {condition}" in found.text


def test_the_domain_is_a_check_of_its_own(tmp_path):
    """Registries are asked every six hours, whatever the endpoint's interval."""
    found = conditioned(tmp_path, "[STATUS] == 200", "[DOMAIN_EXPIRATION] > 720h", interval="10m")
    assert found.checks["e0 (domain)"] == {
        "name": "e0 (domain)",
        "url": "domain://shop.example",
        "down_within": "720h",
        "expires_within": "1056h",
    }
    assert found.told("e0 (domain): shop.example is taken for the domain")


def test_answers_of_a_resolver_are_expected(tmp_path):
    """A second condition on them did away with the first."""
    found = conditioned(
        tmp_path,
        "[DNS_RCODE] == NOERROR",
        "[BODY] == any(192.0.2.7, 192.0.2.8)",
        "[BODY] == 192.0.2.9",
        url="8.8.8.8",
        dns={"query-name": "shop.example", "query-type": "A"},
    )
    assert (found.check["answers"], found.check["match"]) == (["192.0.2.7", "192.0.2.8"], "any")
    assert found.told("[BODY] == 192.0.2.9", found.line_of("192.0.2.9"))

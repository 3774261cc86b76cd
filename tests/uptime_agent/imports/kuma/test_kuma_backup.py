"""Monitors of Uptime Kuma mean the same here; what a backup says of each without meaning it is passed over."""

import pytest

from foreign_monitors import bring, kuma

SITE = {"type": "http", "url": "https://shop.example/", "accepted_statuscodes": ["200-299"], "maxredirects": 5}
JSON = {**SITE, "type": "json-query", "jsonPath": "n"}
DNS = {
    "type": "dns",
    "hostname": "shop.example",
    "dns_resolve_server": "192.0.2.53",
    "port": 53,
    "dns_resolve_type": "A",
}


def site(folder, **keys):
    """Import one site."""
    return bring("kuma", kuma({**SITE, **keys}), folder)


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [
        (">", "5", "$.n > 5"),
        ("!=", "bad", '$.n != "bad"'),
        ("==", "true", "$.n == true"),
        (None, "good", '$.n == "good"'),
        ("<=", "1.5", "$.n <= 1.5"),
    ],
)
def test_a_place_in_json_is_compared_as_there(operator, value, expected, tmp_path):
    """Every operator became `==`, and every number a text."""
    found = bring("kuma", kuma({**JSON, "jsonPathOperator": operator, "expectedValue": value}), tmp_path)
    assert found.check["json"] == [expected]


@pytest.mark.parametrize(("path", "operator"), [("n", "contains"), ("$sum(n)", "=="), ("n[type='a']", "==")])
def test_a_comparison_that_there_is_not_here_is_told(path, operator, tmp_path):
    """JSONata can do more than paths; nothing else is expected in its place."""
    monitor = {**JSON, "jsonPath": path, "jsonPathOperator": operator, "expectedValue": "x"}
    found = bring("kuma", kuma(monitor), tmp_path)
    assert "json" not in found.check
    assert found.told(path if operator == "contains" else "json = ")


@pytest.mark.parametrize(
    ("encoding", "kind"),
    [
        ("json", "application/json"),
        (None, "application/json"),
        ("form", "application/x-www-form-urlencoded"),
        ("xml", "text/xml; charset=utf-8"),
    ],
)
def test_a_body_says_what_it_is(encoding, kind, tmp_path):
    """Without it APIs answer 415."""
    found = site(tmp_path, method="POST", body="<a/>", httpBodyEncoding=encoding)
    assert found.check["headers"] == {"Content-Type": kind}


def test_a_header_of_its_own_says_it_first(tmp_path):
    """As it does there, in small letters or not."""
    found = site(tmp_path, body="a", headers='{"content-type": "text/plain"}')
    assert found.check["headers"] == {"content-type": "text/plain"}


@pytest.mark.parametrize("method", ["oauth2-cc", "mtls", "ntlm"])
def test_who_cannot_sign_in_is_told_and_not_checked(method, tmp_path):
    """An answer of 401 would be told as down."""
    found = site(tmp_path, authMethod=method, oauth_client_secret="s", tlsCert="c", basic_auth_user="me")
    assert found.check["enabled"] is False
    assert found.told(f"authMethod {method}", found.line_of("authMethod"))
    assert "headers" not in found.check


def test_who_signs_in_at_another_server_first_does_so_in_a_step(tmp_path):
    """It was not checked at all. The secret is not copied."""
    found = site(
        tmp_path,
        authMethod="oauth2-cc",
        oauth_token_url="https://login.example/token",
        oauth_client_id="shop",
        oauth_client_secret="hunter22",
        oauth_scopes="read write",
        headers='{"X-A": "b"}',
        type="keyword",
        keyword="open",
        interval=120,
    )
    assert found.check == {
        "name": "m1",
        "interval": "120s",
        "timeout": "96s",
        "step": [
            {
                "name": "token",
                "url": "https://login.example/token",
                "method": "POST",
                "body": "grant_type=client_credentials&scope=read+write",
                "headers": {
                    "Content-Type": "application/x-www-form-urlencoded",
                    "Authorization": {"env": "M1_OAUTH_CLIENT"},
                },
                "take": {"access_token": {"json": "$.access_token"}},
            },
            {
                "name": "request",
                "url": "https://shop.example/",
                "expect_status": ["200-299"],
                "redirects": 5,
                "contains": "open",
                "headers": {"X-A": "b", "Authorization": "Bearer {access_token}"},
            },
        ],
    }
    assert "hunter22" not in found.text


def test_a_secret_that_no_header_takes_is_told(tmp_path):
    """In a body it would have to be copied."""
    found = site(
        tmp_path,
        authMethod="oauth2-cc",
        oauth_token_url="https://login.example",
        oauth_auth_method="client_secret_post",
    )
    assert found.check["enabled"] is False
    assert found.told("authMethod oauth2-cc", found.line_of("authMethod"))


def test_a_bearer_token_is_sent(tmp_path):
    """Out of the environment."""
    found = site(tmp_path, authMethod="bearer", bearer_token="t")
    assert found.check["headers"] == {"Authorization": {"env": "M1_AUTHORIZATION"}}


def test_a_paused_group_and_its_members_are_a_group(tmp_path):
    """It is down as soon as one of them is, those of groups within it too."""
    found = bring(
        "kuma",
        kuma(
            {"type": "group", "name": "all"},
            {"type": "group", "name": "shop", "parent": 1},
            {**SITE, "name": "site", "parent": 2, "forceInactive": True},
            {**SITE, "name": "site", "parent": 1},
            {"type": "steam", "name": "game", "parent": 1},
            {"type": "group", "name": "empty"},
        ),
        tmp_path,
    )
    every, shop = found.tables["group"]
    assert (every["members"], every["down_if"]) == (["site", "site (2)"], "any")
    assert shop["members"] == ["site"]
    assert found.checks["site"]["enabled"] is False
    assert found.told("site: its group is paused", found.line_of("forceInactive"))
    assert found.told("empty: the whole group: none of its checks is there")


def test_a_second_resolver_is_told(tmp_path):
    """One of both is asked."""
    found = bring("kuma", kuma({**DNS, "dns_resolve_server": "192.0.2.53, 192.0.2.54"}), tmp_path)
    assert found.check["url"] == "dns://192.0.2.53/shop.example?type=A"
    assert found.told("the resolver 192.0.2.54", found.line_of("dns_resolve_server"))


def condition(operator="equals", value="192.0.2.7", *, join="and"):
    """Write a condition on a record."""
    return {"type": "expression", "variable": "record", "operator": operator, "value": value, "andOr": join}


def test_records_that_may_come_are_answers(tmp_path):
    """One of them is enough."""
    conditions = [condition(), condition(value="192.0.2.8", join="or")]
    found = bring("kuma", kuma({**DNS, "conditions": conditions}), tmp_path)
    assert (found.check["answers"], found.check["match"]) == (["192.0.2.7", "192.0.2.8"], "any")


@pytest.mark.parametrize("conditions", [[condition("contains")], [condition(), condition(value="b")]])
def test_other_conditions_on_records_are_told(conditions, tmp_path):
    """They were dropped without a word."""
    found = bring("kuma", kuma({**DNS, "conditions": conditions}), tmp_path)
    assert "answers" not in found.check
    assert found.told("the key conditions", found.line_of("conditions"))


def test_a_target_that_reports_has_its_deadline(tmp_path):
    """With a second on top, as there."""
    found = bring("kuma", kuma({"type": "push", "name": "backup", "interval": 600, "pushToken": "abc"}), tmp_path)
    assert found.check == {
        "name": "backup",
        "url": "push://backup",
        "interval": "600s",
        "token": {"env": "BACKUP_TOKEN"},
        "grace": "1s",
    }


def test_a_database_is_asked_whether_it_answers(tmp_path):
    """With its user and its mode of TLS. Another query is told."""
    url = "postgres://me:pw@db.example:5433/shop?sslmode=require&application_name=x"
    monitor = {"type": "postgres", "databaseConnectionString": url, "databaseQuery": "SELECT count(*) FROM t"}
    found = bring("kuma", kuma(monitor), tmp_path)
    assert (found.check["url"], found.check["sslmode"]) == ("postgresql://me@db.example:5433/shop", "require")
    assert found.told("the key databaseQuery", found.line_of("databaseQuery"))
    assert found.told("PGPASSWORD", found.line_of("databaseConnectionString"))
    assert found.told("application_name")


def test_a_server_of_time_is_held_to_its_thresholds(tmp_path):
    """They are milliseconds there."""
    monitor = {
        "type": "ntp",
        "hostname": "time.example",
        "port": 123,
        "ntpStratumThreshold": 4,
        "ntpTimeOffsetThreshold": 500,
        "ntpRootDispersionThreshold": 200,
    }
    found = bring("kuma", kuma(monitor), tmp_path)
    assert (
        found.check.items()
        >= {
            "url": "ntp://time.example",
            "max_stratum": 4,
            "max_offset": "500ms",
            "max_root_dispersion": "200ms",
        }.items()
    )


def test_a_monitor_without_a_timeout_has_most_of_its_interval(tmp_path):
    """As Kuma does with 0 and where there is none."""
    assert site(tmp_path, interval=50, timeout=0).check["timeout"] == "40s"


def test_what_a_backup_says_of_every_monitor_is_passed_over(tmp_path):
    """Or else nobody would find the losses."""
    silent = {
        "method": "GET",
        "hostname": None,
        "port": 53,
        "weight": 2000,
        "active": 1,
        "maxretries": 0,
        "retryInterval": 60,
        "timeout": 48,
        "keyword": None,
        "invertKeyword": False,
        "expiryNotification": False,
        "upsideDown": False,
        "packetSize": 56,
        "dns_resolve_type": "A",
        "dns_resolve_server": "1.1.1.1",
        "docker_container": "",
        "notificationIDList": {},
        "tags": [],
        "mqttPassword": "",
        "authMethod": None,
        "grpcEnableTls": False,
        "kafkaProducerBrokers": [],
        "kafkaProducerSaslOptions": {},
        "conditions": [],
        "body": None,
        "headers": "",
        "jsonPathOperator": "==",
        "gamedigGivenPortOnly": True,
        "childrenIDs": [],
        "pathName": "m1",
        "includeSensitiveData": True,
    }
    assert site(tmp_path, **silent).left == []


def test_an_unknown_type_is_told_once(tmp_path):
    """With its line, and nothing else of it."""
    found = bring("kuma", kuma({"type": "steam", "hostname": "h.example", "port": 1, "mqttTopic": "x"}, SITE), tmp_path)
    assert [each for each in found.left if "m1" in each] == [
        f"m1: a monitor of type steam (line {found.line_of('steam')})"
    ]


def test_monitors_may_stand_by_their_ids(tmp_path):
    """As the server itself sends them."""
    found = bring("kuma", {"monitorList": {"3": {"id": 3, "name": "a", **SITE}}}, tmp_path)
    assert set(found.checks) == {"a"}

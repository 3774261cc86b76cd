"""All tables of a file of Gatus that have a counterpart here have it."""

import pytest

from foreign_monitors import bring, gatus

WEB = {"url": "https://shop.example/", "conditions": ["[STATUS] == 200"]}


def test_a_target_that_reports_has_a_deadline_and_a_token(tmp_path):
    """The token comes from the environment."""
    content = {
        "external-endpoints": [
            {"name": "backup", "group": "night", "token": "hunter22", "heartbeat": {"interval": "30m"}},
            {"name": "sometimes", "token": "hunter22"},
        ]
    }
    found = bring("gatus", content, tmp_path)
    assert found.check["url"] == "push://night-backup"
    assert (found.check["interval"], found.check["grace"]) == ("30m", "1s")
    assert found.check["token"] == {"env": "NIGHT_BACKUP_TOKEN"}
    assert found.tables["push"] == {"listen": "127.0.0.1:8075"}
    assert found.told("sometimes: it has no heartbeat.interval", found.line_of("sometimes"))
    assert "hunter22" not in found.text


def test_a_suite_is_a_check_of_several_steps(tmp_path):
    """What is stored is handed on, and what stands in its context is put in."""
    content = {
        "suites": [
            {
                "name": "orders",
                "context": {"price": "19.99"},
                "endpoints": [
                    {
                        "name": "create",
                        "url": "https://shop.example/items",
                        "method": "POST",
                        "body": '{"price": "[CONTEXT].price"}',
                        "conditions": ["[STATUS] == 201", "[BODY].price == [CONTEXT].price"],
                        "store": {"itemId": "[BODY].id", "code": "[STATUS]"},
                    },
                    {
                        "name": "delete",
                        "url": "https://shop.example/items/[CONTEXT].itemId",
                        "method": "DELETE",
                        "always-run": True,
                        "conditions": ["[STATUS] == 204"],
                    },
                ],
            }
        ]
    }
    found = bring("gatus", content, tmp_path)
    first, second = found.check["step"]
    assert (first["body"], first["expect_status"]) == ('{"price": "19.99"}', 201)
    assert first["take"] == {"itemid": {"json": "$.id"}}
    assert (second["url"], second["always"]) == ("https://shop.example/items/{itemid}", True)
    assert (found.check["interval"], found.check["timeout"]) == ("10m", "5m")
    assert found.told("[CONTEXT].price", found.line_of("[BODY].price =="))
    assert found.told("code = [STATUS]", found.line_of("code:"))


def test_maintenance_of_all_and_of_one_are_windows(tmp_path):
    """By the calendar of their zone. `23:00` is no number, though YAML 1.1 takes it for one."""
    text = """
endpoints:
  - {name: a, url: "https://shop.example/", conditions: ["[STATUS] == 200"]}
  - name: a
    url: https://shop.example/b
    conditions: ["[STATUS] == 200"]
    maintenance-windows: [{start: 01:30, duration: 30m}]
maintenance:
  start: 23:00
  duration: 1h
  timezone: Europe/Berlin
  every: [Monday, Thursday]
"""
    found = bring("gatus", text, tmp_path)
    of_one, of_all = found.tables["maintenance"]
    assert of_one["targets"] == ["a (2)"]
    assert (of_one["schedule"], of_one["duration"]) == ("CRON_TZ=UTC 30 1 * * *", "30m")
    assert (of_all["schedule"], of_all["duration"]) == ("CRON_TZ=Europe/Berlin 0 23 * * mon,thu", "1h")
    assert found.told("there only alerts did")


@pytest.mark.parametrize(
    ("alerts", "attempts"),
    [
        ([{"type": "slack", "failure-threshold": 5}], 5),
        ([{"type": "slack"}], 3),
        ([{"type": "teams"}], 7),
        ([{"type": "slack", "failure-threshold": 1}], None),
        ([{"type": "slack", "failure-threshold": 25}], 10),
        ([{"type": "slack", "enabled": False}], None),
    ],
)
def test_failures_before_an_alert_are_attempts(alerts, attempts, tmp_path):
    """Each after an interval, as there."""
    alerting = {"teams": {"webhook-url": "https://hooks.example", "default-alert": {"failure-threshold": 7}}}
    found = bring("gatus", gatus({**WEB, "alerts": alerts}, alerting=alerting), tmp_path)
    assert found.check.get("max_attempts") == attempts
    assert found.check.get("retry_interval") == (None if attempts is None else "60s")


def test_a_name_is_a_text_whatever_yaml_takes_it_for(tmp_path):
    """`off` is false in YAML 1.1, and Gatus takes it for the text that it is."""
    text = """
endpoints:
  - {name: off, group: on, url: "https://shop.example/", body: 0123, enabled: yes, conditions: ["[STATUS] == 200"]}
"""
    found = bring("gatus", text, tmp_path)
    assert found.check["name"] == "on/off"
    assert found.check["body"] == "0123"
    assert "enabled" not in found.check


def test_graphql_is_wrapped_and_names_are_put_in(tmp_path):
    """As Gatus sends it."""
    found = bring("gatus", gatus({**WEB, "graphql": True, "body": "{ a(n: [ENDPOINT_NAME]) }"}), tmp_path)
    assert found.check["body"] == '{"query": "{ a(n: e0) }"}'
    assert found.check["headers"] == {"Content-Type": "application/json"}


def test_an_unknown_kind_is_told_once(tmp_path):
    """It was told twice, the second time as a URL that nobody wrote."""
    found = bring("gatus", gatus({"url": "udp://192.0.2.9:99", "conditions": ["[CONNECTED] == true"]}), tmp_path)
    assert found.left == ["e0: a check of udp:// (line 3)"]


def test_aliases_and_merged_keys_are_what_they_stand_for(tmp_path):
    """As the documentation advises to keep a file small."""
    text = """
defaults: &defaults
  interval: 5m
  client: {timeout: 3s, unheard-of: 1}
endpoints:
  - {<<: *defaults, name: a, url: "https://shop.example/", conditions: ["[STATUS] == 200"]}
  - {<<: *defaults, name: b, interval: 9m, url: "https://shop.example/", conditions: ["[STATUS] == 200"]}
"""
    found = bring("gatus", text, tmp_path)
    assert (found.checks["a"]["interval"], found.checks["b"]["interval"]) == ("5m", "9m")
    assert found.checks["a"]["timeout"] == found.checks["b"]["timeout"] == "3s"
    assert found.told("a: the key client.unheard-of", 4)
    assert found.told("b: the key client.unheard-of", 4)

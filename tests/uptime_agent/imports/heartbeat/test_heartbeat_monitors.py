"""Monitors of Heartbeat, out of its file, out of files beside it and out of a folder, mean the same here."""

import pytest

from foreign_monitors import bring
from uptime_agent.imports import IMPORTERS, NotImported, imported
from uptime_agent.output import problems_of

FILE = """
heartbeat.config.monitors:
  path: ${path.config}/monitors.d/*.yml
  reload.enabled: true
heartbeat.monitors:
- type: http
  id: shop
  schedule: '@every 5s'
  urls: ["https://shop.example/status", "https://shop.example/health"]
  check.response.status: 200
  check:
    request: {method: POST, headers: {X-A: b}}
- type: tcp
  name: echo
  schedule: '*/5 * * * * * *'
  hosts: ["echo.example"]
  ports: [7, 8]
  check.send: Check
  check.receive: Check
- type: icmp
  schedule: '0 0 8 * * * *'
  hosts: ["gw.example", "2001:db8::1"]
  ipv6: false
heartbeat.scheduler: {limit: 10}
output.elasticsearch: {hosts: ["localhost:9200"]}
"""
BESIDE = "- {type: http, name: other, schedule: '@every 1m', hosts: [other.example], unheard-of: 1}\n"


def monitor(folder, **keys):
    """Import one monitor."""
    return bring("heartbeat", {"heartbeat.monitors": [{"schedule": "@every 5s", **keys}]}, folder)


def response(folder, **keys):
    """Import what one monitor expects."""
    return monitor(folder, type="http", hosts=["https://shop.example"], **{"check.response": keys})


def test_a_file_and_those_that_it_names_are_read(tmp_path):
    """A check for each host, with keys with dots as with tables."""
    found = bring("heartbeat", FILE, tmp_path, beside={"monitors.d/other.yml": BESIDE})
    assert list(found.checks) == [
        "shop (https://shop.example/status)",
        "shop (https://shop.example/health)",
        "echo (echo.example:7)",
        "echo (echo.example:8)",
        "gw.example",
        "2001:db8::1",
        "other",
    ]
    first = found.checks["shop (https://shop.example/status)"]
    assert (first["interval"], first["timeout"], first["method"]) == ("5s", "16s", "POST")
    assert (first["expect_status"], first["headers"]) == ([200], {"X-A": "b"})
    echo = found.checks["echo (echo.example:7)"]
    assert (echo["url"], echo["send"], echo["expect"]) == ("tcp://echo.example:7", "Check", "Check")
    assert echo["schedule"] == "*/5 * * * * * *"
    assert found.told("2001:db8::1: ip = ")
    assert found.told("its schedule is in UTC here", found.line_of("0 0 8"))
    assert found.told("heartbeat.scheduler (see [limits] total)", found.line_of("limit: 10"))
    assert found.told("the key output", found.line_of("output"))
    assert found.told("other: the key unheard-of (line 1 of other.yml)")


def test_a_folder_of_monitors_is_read(tmp_path):
    """As monitors.d is one."""
    (tmp_path / "a.yml").write_text(BESIDE)
    (tmp_path / "b.yaml").write_text("- {type: icmp, hosts: [gw.example], schedule: '@every 5s'}\n")
    (tmp_path / "c.yml.disabled").write_text("- {type: icmp, hosts: [no.example], schedule: '@every 5s'}\n")
    drafts, left = IMPORTERS["heartbeat"](tmp_path, {})
    assert imported("heartbeat", drafts, left, problems_of).checks == 2


def test_a_file_of_monitors_d_is_a_list(tmp_path):
    """It is read by itself too."""
    assert set(bring("heartbeat", BESIDE, tmp_path).checks) == {"other"}


@pytest.mark.parametrize(
    ("host", "keys", "url", "tls"),
    [
        ("h.example:25", {}, "tcp://h.example:25", None),
        ("h.example:25", {"ssl": {"verification_mode": "full"}}, "tcp://h.example:25", True),
        ("tcp://h.example:25", {"ssl": {"verification_mode": "full"}}, "tcp://h.example:25", None),
        ("tls://h.example:25", {}, "tcp://h.example:25", True),
        ("ssl://h.example", {"ports": [465]}, "tcp://h.example:465", True),
        ("2001:db8::1", {"ports": [465]}, "tcp://[2001:db8::1]:465", None),
    ],
)
def test_a_scheme_says_whether_tls_begins(host, keys, url, tls, tmp_path):
    """Else the settings of TLS do."""
    found = monitor(tmp_path, type="tcp", hosts=[host], **keys)
    assert (found.check["url"], found.check.get("tls")) == (url, tls)


@pytest.mark.parametrize(
    ("body", "options"),
    [
        (["saved"], {"contains": "saved"}),
        ("saved", {"contains": "saved"}),
        (["saved", "Saved"], {"regex": "(?:saved)|(?:Saved)"}),
        ("(?s)first.*second", {"regex": "(?s)first.*second"}),
        ({"positive": ["foo"], "negative": ["bar"]}, {"contains": "foo", "not_contains": "bar"}),
    ],
)
def test_one_of_several_expressions_is_enough(body, options, tmp_path):
    """And none of those may be found that must not be."""
    pytest.importorskip("re2")
    assert response(tmp_path, body=body).check.items() >= options.items()


def test_a_second_text_that_must_not_be_there_is_told(tmp_path):
    """A check has one."""
    found = response(tmp_path, body={"negative": ["foo", "bar"]})
    assert found.check["not_contains"] == "foo"
    assert found.told("negative bar", found.line_of("bar"))


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"expression": 'status == "ok"'}, ['$.status == "ok"']),
        ({"expression": "a.b >= 3"}, ["$.a.b >= 3"]),
        ({"condition": {"equals": {"status": "ok", "a.b": True}}}, ['$.status == "ok"', "$.a.b == true"]),
        ({"condition": {"range": {"n.gte": 3, "n.lt": 9}}}, ["$.n >= 3", "$.n < 9"]),
        ({"condition": {"has_fields": ["a.b"]}}, ["$.a.b"]),
        ({"condition": {"and": [{"equals": {"a": 1}}, {"has_fields": ["b"]}]}}, ["$.a == 1", "$.b"]),
    ],
)
def test_conditions_on_json_are_paths(entry, expected, tmp_path):
    """As far as they say what stands at a place."""
    assert response(tmp_path, json=[{"description": "x", **entry}]).check["json"] == expected


@pytest.mark.parametrize(
    "entry", [{"condition": {"or": []}}, {"condition": {"regexp": {"a": "b"}}}, {"expression": "f(x)"}]
)
def test_other_conditions_on_json_are_told(entry, tmp_path):
    """And drop no other."""
    found = response(tmp_path, json=[entry, {"condition": {"equals": {"a": 1}}}])
    assert found.check["json"] == ["$.a == 1"]
    assert found.told(
        "check.response.json", found.line_of("- condition") if "condition" in entry else found.line_of("f(x)")
    )


def test_what_is_up_by_default_is_up_here(tmp_path):
    """Answers below 400."""
    assert response(tmp_path).check["expect_status"] == "100-399"


def test_schedules_stand_in_the_zone_of_the_scheduler(tmp_path):
    """If the file names one."""
    content = {
        "heartbeat.scheduler.location": "Europe/Berlin",
        "heartbeat.monitors": [{"type": "icmp", "hosts": ["gw.example"], "schedule": "0 0 8 * * * *"}],
    }
    found = bring("heartbeat", content, tmp_path)
    assert found.check["schedule"] == "CRON_TZ=Europe/Berlin 0 0 8 * * * *"
    assert found.left == []


def test_a_browser_is_told_once(tmp_path):
    """There is no such kind here."""
    found = monitor(tmp_path, type="browser", id="journey", source={"inline": {"script": "x"}})
    assert found.left == ["journey: a monitor of type browser (line 3 of heartbeat.yml)"]


@pytest.mark.parametrize(
    "content", ["heartbeat.monitors: 3", "heartbeat: []", "a: 1", "- 3", "heartbeat.monitors: [3]"]
)
def test_a_file_without_monitors_is_refused(content, tmp_path):
    """In words."""
    with pytest.raises(NotImported, match=r"there are no heartbeat\.monitors"):
        bring("heartbeat", content, tmp_path)


def test_a_key_that_is_said_in_two_ways_is_refused(tmp_path):
    """Who knows which one is meant."""
    with pytest.raises(NotImported, match="stands there twice"):
        monitor(tmp_path, type="http", check={"send": "a"}, **{"check.send": "b"})

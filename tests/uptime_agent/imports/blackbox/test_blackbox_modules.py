"""Modules of blackbox_exporter and their targets in Prometheus mean the same here, or are told."""

import pytest

from foreign_monitors import bring

HTTP = {"prober": "http"}


def module(folder, content, target, **others):
    """Import one module with one target."""
    return bring("blackbox", {"modules": {"m": content}}, folder, targets={"m": [target]}, **others)


def dialogue(folder, *entries):
    """Import the steps of a dialogue."""
    return module(folder, {"prober": "tcp", "tcp": {"query_response": list(entries)}}, "h.example:25")


def test_bytes_that_are_no_ascii_end_the_dialogue(tmp_path):
    """They became a text that begins with the letter b, and `expect_bytes` was gone."""
    text = """
modules:
  m:
    prober: tcp
    tcp:
      query_response:
        - send: !!binary "AAAACATSFi8="
        - expect_bytes: S
"""
    found = bring("blackbox", text, tmp_path, targets={"m": ["db.example:5432"]})
    assert "dialogue" not in found.check
    assert found.told("the key send: bytes that are no ASCII", 7)
    assert found.told("query_response from there on", 8)


def test_bytes_that_are_ascii_are_sent_as_they_are(tmp_path):
    """Without the end of line that a text gets."""
    text = """
modules:
  m:
    prober: tcp
    tcp:
      query_response: [{send: !!binary "UElORw0K"}, {expect_bytes: "+PONG"}, {send: QUIT}]
"""
    found = bring("blackbox", text, tmp_path, targets={"m": ["r.example:6379"]})
    assert found.check["dialogue"] == [{"send": "PING\r\n"}, {"expect": "+PONG"}, {"send": "QUIT\n"}]


def test_a_part_of_an_answer_is_not_sent_as_it_stands(tmp_path):
    """`${1}` is what the expression before it has found."""
    pytest.importorskip("re2")
    found = dialogue(
        tmp_path, {"send": "NICK prober"}, {"expect": "PING :([^ ]+)", "send": "PONG ${1}"}, {"expect": "001"}
    )
    assert found.check["dialogue"] == [{"send": "NICK prober\n"}]
    assert found.told("PONG ${1}", found.line_of("PONG"))


def test_what_is_said_comes_before_tls(tmp_path):
    """An entry is looked at in this order: what is expected, what is said, TLS."""
    found = dialogue(tmp_path, {"expect": "^250-STARTTLS", "send": "STARTTLS", "starttls": True})
    assert found.check["dialogue"] == [{"expect": "250-STARTTLS*"}, {"send": "STARTTLS\n"}, {"starttls": True}]


def test_an_expression_stays_one(tmp_path):
    """RE2 is what the exporter has too."""
    pytest.importorskip("re2")
    found = dialogue(tmp_path, {"expect": "^220 ([^ ]+) ESMTP"}, {"expect": "^SSH-2.0-"}, {"expect": "ready"})
    assert found.check["dialogue"] == [{"regex": "^220 ([^ ]+) ESMTP"}, {"expect": "SSH-2.0-*"}, {"expect": "ready"}]


def test_labels_of_an_entry_are_told(tmp_path):
    """They make a metric there."""
    found = dialogue(tmp_path, {"expect": "^220", "labels": [{"name": "a", "value": "b"}]})
    assert found.told("the key labels", found.line_of("labels"))


@pytest.mark.parametrize(
    ("prober", "target", "url"),
    [
        ("icmp", "2001:db8::1", "icmp://[2001:db8::1]"),
        ("tcp", "[2001:db8::1]:25", "tcp://[2001:db8::1]:25"),
        ("http", "2001:db8::1", "http://[2001:db8::1]"),
        ("dns", "2001:db8::1", "dns://[2001:db8::1]/shop.example?type=A"),
        ("dns", "192.0.2.1:5353", "dns://192.0.2.1:5353/shop.example?type=A"),
    ],
)
def test_an_ipv6_target_is_in_brackets(prober, target, url, tmp_path):
    """As a URL has it."""
    options = {"dns": {"query_name": "shop.example", "query_type": "A"}} if prober == "dns" else {}
    assert module(tmp_path, {"prober": prober, **options}, target).check["url"] == url


def test_a_question_for_any_record_is_told_in_its_own_words(tmp_path):
    """It was a message about a URL that nobody had written."""
    found = module(tmp_path, {"prober": "dns", "dns": {"query_name": "shop.example"}}, "192.0.2.53")
    assert found.checks == {}
    assert found.told("query_type ANY: a check asks for one type of record")


def test_headers_of_the_common_settings_are_sent(tmp_path):
    """Secret ones come from the environment."""
    headers = {"X-Region": {"values": ["eu", "us"]}, "X-Token": {"secrets": ["hunter22"]}}
    found = module(tmp_path, {**HTTP, "http": {"http_headers": headers}}, "https://shop.example")
    assert found.check["headers"]["X-Region"] == "eu"
    assert set(found.check["headers"]["X-Token"]) == {"env"}
    assert found.told("X-Region: us", found.line_of("values"))


PROMETHEUS = """
global: {scrape_interval: 2m, scrape_timeout: 7s}
scrape_configs:
  - job_name: sites
    metrics_path: /probe
    scrape_interval: 15s
    params: {module: [m]}
    static_configs:
      - targets: ["https://a.example"]
        labels: {team: web}
    relabel_configs:
      - {source_labels: [__address__], target_label: __param_target}
      - {source_labels: [__param_target], target_label: instance}
      - {target_label: __address__, replacement: "127.0.0.1:9115"}
  - job_name: files
    metrics_path: /probe
    params: {module: [m]}
    file_sd_configs: [{files: ["targets/*.json", "none.yml"], refresh_interval: 5m}]
    consul_sd_configs: [{server: localhost}]
  - {job_name: itself, static_configs: [{targets: ["localhost:9090"]}]}
"""


def test_targets_in_prometheus_have_their_interval_and_labels(tmp_path):
    """Every check was made each minute, whatever it said; files of targets were not read."""
    beside = {
        "prometheus.yml": PROMETHEUS,
        "targets/b.json": '[{"targets": ["https://b.example"], "labels": {"team": "ops"}}]',
    }
    found = bring("blackbox", {"modules": {"m": HTTP}}, tmp_path, beside=beside)
    first, second = found.checks.values()
    assert (first["url"], first["interval"], first["timeout"]) == ("https://a.example", "15s", "7s")
    assert first["tags"] == ["m", "team=web"]
    assert (second["url"], second["interval"], second["tags"]) == ("https://b.example", "2m", ["m", "team=ops"])
    assert found.told("job files: the key consul_sd_configs", 19)
    assert found.told("there is no file none.yml (line 18 of prometheus.yml)")
    assert len(found.left) == 2


def test_a_rule_that_is_none_of_the_usual_ones_is_told(tmp_path):
    """It could drop targets, or make others of them."""
    rule = "      - {source_labels: [team], regex: ops, action: drop}\n"
    text = PROMETHEUS.replace("    relabel_configs:\n", f"    relabel_configs:\n{rule}")
    found = bring("blackbox", {"modules": {"m": HTTP}}, tmp_path, beside={"prometheus.yml": text})
    assert found.told("relabel_configs", 12)


def test_an_unknown_prober_is_told_once(tmp_path):
    """With its line."""
    found = module(tmp_path, {"prober": "grpc", "grpc": {"service": "x"}}, "rpc.example:1")
    assert found.left == ["rpc.example:1 (m): the prober grpc (line 3)"]

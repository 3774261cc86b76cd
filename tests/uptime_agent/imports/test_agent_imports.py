"""Files of other monitors become one of ours, which `check` accepts; what could not be carried over is told."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from foreign_monitors import bring, kuma
from uptime_agent.config.config import parse_config
from uptime_agent.imports import IMPORTERS, NotImported, imported
from uptime_agent.output import problems_of

SAMPLES = Path(__file__).parent
FILES = {"gatus": "gatus.yaml", "blackbox": "blackbox.yml", "kuma": "kuma.json", "heartbeat": "heartbeat.yml"}
SECRET = "hunter22"


def result_of(monitor, targets=None):
    drafts, left = IMPORTERS[monitor](SAMPLES / FILES[monitor], targets or {})
    return imported(monitor, drafts, left, problems_of)


def checks_of(found):
    return {each["name"]: each for each in tomllib.loads(found.text)["check"]}


@pytest.mark.parametrize("monitor", FILES)
def test_a_sample_becomes_a_file_that_check_accepts(monitor, tmp_path):
    """As somebody would do it who comes from there: the command, and then `check`."""
    command = [sys.executable, "-m", "uptime_agent"]
    run = subprocess.run(
        [*command, "import", monitor, SAMPLES / FILES[monitor]], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert SECRET not in run.stdout + run.stderr
    (tmp_path / "uptime.toml").write_text(run.stdout)
    variables = {line.partition("set ")[2].partition(":")[0]: "Basic abc" for line in run.stderr.splitlines()}
    environment = {name: value for name, value in variables.items() if name}
    checked = subprocess.run(
        [*command, "check", tmp_path / "uptime.toml"], env=environment, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr


def test_gatus_endpoints_are_what_they_were():
    """With their conditions, as far as there is such a thing here."""
    found = checks_of(result_of("gatus"))
    website = found["core/website"]
    assert (website["url"], website["interval"], website["timeout"]) == ("https://shop.example/health", "5m", "3s")
    assert website["headers"] == {"Authorization": {"env": "CORE_WEBSITE_AUTHORIZATION"}, "X-Region": "eu"}
    assert (website["expect_status"], website["degraded_above"]) == (200, "300ms")
    assert "redirects" not in website
    assert (found["page"]["contains"], found["page"]["expect_status"]) == ("<h1>Welcome", [200, 204])
    assert (found["page"]["verify"], found["page"]["redirects"]) == (False, 5)
    assert found["posts"]["expect_status"] == "100-299"
    assert found["redis"]["enabled"] is False
    assert found["mail"]["dialogue"][-1] == {"starttls": True}
    assert (found["names"]["url"], found["names"]["answers"]) == ("dns://192.0.2.53/shop.example?type=A", ["192.0.2.7"])


def test_what_gatus_has_and_we_have_not_is_told():
    """Each with the check that it belongs to, and with its line."""
    left = "\n".join(result_of("gatus").left)
    assert "core/website: the condition len([BODY].users) > 0 (line 21)" in left
    assert "core/website: the key alerts: all but failure-threshold 3 (see [[channel]]) (line 22)" in left
    assert "core/website: set CORE_WEBSITE_AUTHORIZATION: the header Authorization" in left
    assert "alerting (see [[channel]]) (line 4)" in left
    assert "names (2): a check of udp:// (line 39)" in left


def test_blackbox_modules_find_their_targets_in_prometheus():
    """Those that have none are told with the option that would give them one."""
    result = result_of("blackbox")
    found = checks_of(result)
    assert set(found) == {
        "https://shop.example (http_2xx)",
        "shop.example:8080/x (http_2xx)",
        "git.example:22 (ssh_banner)",
    }
    assert found["https://shop.example (http_2xx)"]["ip"] == "4"
    assert found["shop.example:8080/x (http_2xx)"]["url"] == "http://shop.example:8080/x"
    steps = found["git.example:22 (ssh_banner)"]["dialogue"]
    assert steps[1] == {"send": "SSH-2.0-blackbox-ssh-check\n"}
    assert "module pings: no target is known (give --target pings=URL) (line 35)" in result.left


def test_blackbox_modules_take_targets_that_are_given():
    """Then Prometheus is not asked."""
    targets = {
        "http_post_2xx": ["https://shop.example"],
        "smtp_starttls": ["mail.example:25"],
        "pings": ["gw.example"],
        "names": ["192.0.2.53"],
        "calls": ["rpc.example:1"],
        "nobodys": ["h.example"],
    }
    result = result_of("blackbox", targets)
    found = checks_of(result)
    post = found["https://shop.example (http_post_2xx)"]
    assert (post["expect_status"], post["verify"]) == ([200, 201], False)
    assert post["headers"]["Authorization"] == {"env": "HTTPS_SHOP_EXAMPLE_HTTP_POST_2XX_AUTHORIZATION"}
    smtp = found["mail.example:25 (smtp_starttls)"]["dialogue"]
    assert [next(iter(each)) for each in smtp] == ["expect", "send", "expect", "send", "expect", "starttls"]
    assert found["192.0.2.53 (names)"]["transport"] == "tcp"
    assert found["gw.example (pings)"]["url"] == "icmp://gw.example"
    assert any("calls" in each and "grpc" in each for each in result.left)
    assert "targets of nobodys: there is no such module" in result.left


def test_kuma_monitors_are_what_they_were():
    """Retries are attempts, each after its interval."""
    result = result_of("kuma")
    found = checks_of(result)
    website = found["website"]
    assert (website["max_attempts"], website["retry_interval"], website["tags"]) == (3, "20s", ["prod"])
    assert website["headers"]["X-Token"] == {"env": "WEBSITE_X_TOKEN"}
    assert (found["website (2)"]["contains"], found["website (2)"]["enabled"]) == ("Imprint", False)
    assert found["database"]["url"] == "tcp://[2001:db8::5]:5432"
    assert found["names"]["url"] == "dns://192.0.2.53/shop.example?type=AAAA"
    assert "gateway" not in found
    left = "\n".join(result.left)
    assert "gateway: upside down: it would be up here when it was down there (line 15)" in left
    assert "game: a monitor of type steam (line 18)" in left
    assert "1 notifications (see [[channel]]) (line 3)" in left


def test_what_is_left_out_of_a_check_stands_above_it():
    """And of a check that is not there at all at the top."""
    lines = result_of("gatus").text.splitlines()
    above = lines[: lines.index('name = "core/website"')]
    assert "# Not carried over: the condition len([BODY].users) > 0 (line 21)" in above
    assert "# Not carried over: names (2): a check of udp:// (line 39)" in lines[: lines.index("[[check]]")]


@pytest.mark.parametrize("monitor", FILES)
@pytest.mark.parametrize("content", ["", "[]", "3", "{", "a: [b", "\x00", '{"endpoints": 1}', '{"modules": []}', "é"])
def test_a_file_of_nobody_is_refused_in_words(monitor, content, tmp_path):
    """With the file, or the place in it, and no traceback."""
    file = tmp_path / "some.file"
    file.write_text(content)
    with pytest.raises(NotImported) as raised:
        IMPORTERS[monitor](file, {})
    assert str(raised.value)
    assert "Traceback" not in str(raised.value)


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 700) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(["name", "url", "type", "headers", "interval", "maxretries", "tags", "hostname"]), anything)
def test_no_value_of_a_monitor_makes_a_file_that_is_refused(tmp_path_factory, key, value):
    """It is carried over, or left out and told, or the file is refused in words."""
    content = json.loads((SAMPLES / FILES["kuma"]).read_text())
    content["monitorList"] = [{**content["monitorList"][0], key: value}]
    file = tmp_path_factory.mktemp("kuma") / "kuma.json"
    file.write_text(json.dumps(content))
    try:
        drafts, left = IMPORTERS["kuma"](file, {})
    except NotImported:
        return
    found = imported("kuma", drafts, left, problems_of)
    if found.checks:
        parse_config(found.text, "uptime.toml", {}, needs_secrets=False)
    else:
        assert found.left


SITE = {"type": "http", "url": "https://shop.example/", "accepted_statuscodes": ["200-299"], "maxredirects": 5}


def test_what_all_of_many_checks_have_in_common_is_said_once(tmp_path):
    """In [defaults], so that a large file stays one that can be read."""
    found = bring("kuma", kuma(*({**SITE, "interval": 30, "timeout": 7} for _ in range(25))), tmp_path)
    assert found.tables["defaults"] == {"interval": "30s", "timeout": "7s"}
    assert not any({"interval", "timeout"} & each.keys() for each in found.checks.values())

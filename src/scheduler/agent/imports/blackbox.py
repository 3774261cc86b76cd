"""blackbox_exporter: its modules, as its documentation of 0.28 describes them, each with its targets.

The exporter's own file names no targets. They stand in Prometheus: so they are given on the command line, or read out
of the scrape configuration beside it, where `static_configs` has the targets and `params` the module.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from .draft import Draft, NotImported, list_of, table_of
from .reading import read_yaml

TIMEOUT: Final = "10s"
INTERVAL: Final = "60s"
REDIRECTS: Final = 5
_OF_HTTP: Final = {
    "method",
    "headers",
    "body",
    "valid_status_codes",
    "follow_redirects",
    "fail_if_body_matches_regexp",
    "fail_if_body_not_matches_regexp",
    "tls_config",
    "basic_auth",
    "preferred_ip_protocol",
    "ip_protocol_fallback",
}
_FAMILIES: Final = {"ip4": "4", "ip6": "6"}


def read_blackbox(file: Path, targets: Mapping[str, list[str]]) -> tuple[list[Draft], list[str]]:
    """Read a file of modules: a draft for each target of each, and the modules that have none.

    `targets`: by module, as given; without any those of a prometheus.yml beside the file.
    """
    tables = table_of(read_yaml(file), str(file))
    modules = table_of(tables.get("modules"), "modules")
    if not modules:
        raise NotImported(f"{file}: there are no modules, so it is no configuration of blackbox_exporter")
    targets = targets or _targets_beside(file)
    drafts = [
        _draft(name, table_of(module, f"module {name}"), target)
        for name, module in modules.items()
        for target in targets.get(name, ())
    ]
    left = [
        f"module {name}: no target is known (give --target {name}=URL)" for name in modules if not targets.get(name)
    ]
    left += [f"targets of {name}: there is no such module" for name in targets if name not in modules]
    return drafts, left


def _targets_beside(file: Path) -> dict[str, list[str]]:
    prometheus = file.with_name("prometheus.yml")
    if not prometheus.exists():
        return {}
    found: dict[str, list[str]] = {}
    for job in list_of(table_of(read_yaml(prometheus), str(prometheus)).get("scrape_configs"), "scrape_configs"):
        config = table_of(job, "scrape_configs")
        for module in list_of(table_of(config.get("params"), "params").get("module"), "module"):
            for static in list_of(config.get("static_configs"), "static_configs"):
                given = list_of(table_of(static, "static_configs").get("targets"), "targets")
                found.setdefault(str(module), []).extend(str(each) for each in given)
    return found


def _draft(name: str, module: Mapping[str, Any], target: str) -> Draft:
    prober = str(module.get("prober", ""))
    draft = Draft(f"{target} ({name})", target)
    draft.options |= {"interval": INTERVAL, "timeout": str(module.get("timeout", TIMEOUT)), "tags": [name]}
    options = table_of(module.get(prober), f"{prober} of module {name}")
    match prober:
        case "http":
            draft.url = target if "://" in target else f"http://{target}"
            _take_http(draft, options)
        case "tcp":
            draft.url = f"tcp://{target.removeprefix('tcp://')}"
            _take_tcp(draft, options)
        case "icmp":
            draft.url = f"icmp://{target}"
        case "dns":
            _take_dns(draft, options, target)
        case _:
            draft.leave(f"the prober {prober}")
            draft.url = ""
    if (family := options.get("preferred_ip_protocol")) in _FAMILIES and options.get("ip_protocol_fallback") is False:
        draft.options["ip"] = _FAMILIES[family]
    return draft


def _take_http(draft: Draft, options: Mapping[str, Any]) -> None:
    codes = list_of(options.get("valid_status_codes"), "valid_status_codes")
    draft.options["expect_status"] = codes or "200-299"
    draft.options["redirects"] = REDIRECTS if options.get("follow_redirects", True) else 0
    if "method" in options:
        draft.options["method"] = str(options["method"]).upper()
    if options.get("body"):
        draft.options["body"] = str(options["body"])
    headers = table_of(options.get("headers"), "headers")
    draft.take_headers(headers)
    if options.get("basic_auth"):
        hidden = draft.hide("Authorization", "Basic and the credentials of basic_auth in base64")
        draft.options.setdefault("headers", {})["Authorization"] = hidden
    patterns = [str(each) for each in list_of(options.get("fail_if_body_not_matches_regexp"), "a pattern")]
    if patterns:
        draft.options["regex"] = patterns[0]
    for pattern in patterns[1:]:
        draft.leave(f"fail_if_body_not_matches_regexp {pattern}: a check has one regex")
    for pattern in list_of(options.get("fail_if_body_matches_regexp"), "a pattern"):
        draft.leave(f"fail_if_body_matches_regexp {pattern} (see not_contains)")
    _take_tls(draft, table_of(options.get("tls_config"), "tls_config"))
    _leave_others(draft, options, _OF_HTTP)


def _take_tcp(draft: Draft, options: Mapping[str, Any]) -> None:
    steps: list[dict[str, Any]] = []
    for each in list_of(options.get("query_response"), "query_response"):
        step = table_of(each, "query_response")
        if step.get("expect"):
            steps.append({"expect": _without_anchor(draft, str(step["expect"]))})
        if step.get("starttls"):
            steps.append({"starttls": True})
        if step.get("send") is not None:
            steps.append({"send": f"{step['send']}\n"})
    if steps:
        draft.options["dialogue"] = steps
    if options.get("tls"):
        draft.options["tls"] = True
    _take_tls(draft, table_of(options.get("tls_config"), "tls_config"))
    _leave_others(
        draft, options, {"query_response", "tls", "tls_config", "preferred_ip_protocol", "ip_protocol_fallback"}
    )


def _without_anchor(draft: Draft, pattern: str) -> str:
    """A pattern that says nothing but how a line begins, as ours says it."""
    text = pattern.removeprefix("^").removesuffix(".*")
    if any(each in text for each in r"\()[]{}|+?*^$."):
        draft.leave(f"expect {pattern}: a pattern; the longest plain part of it is looked for")
        text = max(_plain_parts(text), key=len)
    return text


def _plain_parts(pattern: str) -> list[str]:
    parts = [""]
    for letter in pattern:
        if letter in r"\()[]{}|+?*^$.":
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _take_dns(draft: Draft, options: Mapping[str, Any], target: str) -> None:
    name, kind = str(options.get("query_name", "")).rstrip("."), options.get("query_type", "ANY")
    draft.url = f"dns://{target}/{name}?type={kind}"
    if codes := list_of(options.get("valid_rcodes"), "valid_rcodes"):
        draft.options["rcode"] = [str(each) for each in codes]
    if options.get("transport_protocol") == "tcp":
        draft.options["transport"] = "tcp"
    known = {"query_name", "query_type", "valid_rcodes", "transport_protocol"}
    _leave_others(draft, options, known | {"preferred_ip_protocol", "ip_protocol_fallback"})


def _take_tls(draft: Draft, tls: Mapping[str, Any]) -> None:
    if tls.get("insecure_skip_verify"):
        draft.options["verify"] = False
    if tls.get("ca_file"):
        draft.options["ca_file"] = str(tls["ca_file"])
    _leave_others(draft, tls, {"insecure_skip_verify", "ca_file"})


def _leave_others(draft: Draft, options: Mapping[str, Any], known: set[str]) -> None:
    for key in options:
        if key not in known:
            draft.leave(f"the key {key}")

"""A file of blackbox_exporter."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ..foreign import Draft, ForeignTable, NotImported, bracketed, public_name, read_yaml, table_of, take_url
from .dialogue import take_dialogue
from .http import take_http, take_tls
from .prometheus import INTERVAL, PrometheusTarget, Scraped, targets_beside

TIMEOUT: Final = "10s"
_FAMILIES: Final = {"ip4": "4", "ip6": "6"}
_PROBERS: Final = ("http", "tcp", "icmp", "dns")
_NO_RECORD: Final = frozenset({"ANY", "AXFR", "IXFR"})


def read_blackbox(file: Path, targets: Mapping[str, list[str]]) -> tuple[list[Draft], list[str]]:
    """Read a draft for each target of each module, and losses. Raises NotImported.

    `targets`: by module; by default from a prometheus.yml next to the file.
    """
    top = table_of(read_yaml(file), str(file))
    modules = top.table("modules")
    if not modules.of.values:
        raise NotImported(f"{file}: there are no modules, so it is no configuration of blackbox_exporter")
    given = {name: [PrometheusTarget(each, INTERVAL) for each in places] for name, places in targets.items()}
    scraped = Scraped(given) if given else targets_beside(file)
    drafts: list[Draft] = []
    for name in modules:
        places = scraped.of.get(name, ())
        if not places:
            modules.table(name).skip()
            top.lose(f"module {name}: no target is known (give --target {name}=URL)", modules.line_of(name))
            continue
        drafts += [_draft(name, ForeignTable(modules.table(name).of), each) for each in places]
        modules.table(name).skip()
    top.rest()
    left = [*scraped.left, *top.losses]
    left += [f"targets of {name}: there is no such module" for name in scraped.of if name not in modules]
    return drafts, left


def _draft(name: str, module: ForeignTable, target: PrometheusTarget) -> Draft:
    draft = Draft(f"{public_name(target.place)} ({name})", source=module)
    timeout = module.text("timeout") or target.timeout or TIMEOUT
    draft.options |= {"interval": target.interval, "timeout": timeout, "tags": [name, *target.tags]}
    draft.lines |= {"timeout": module.line_of("timeout")}
    prober = module.text("prober")
    if prober not in _PROBERS:
        draft.drop(f"the prober {prober}", module.line_of("prober"))
        return draft
    options = module.table(prober)
    place = target.place
    match prober:
        case "http":
            take_url(draft, place if "://" in place else f"http://{bracketed(place)}")
            take_http(draft, options)
        case "tcp":
            take_url(draft, f"tcp://{place.removeprefix('tcp://')}")
            _take_tcp(draft, options)
        case "icmp":
            draft.url = f"icmp://{bracketed(place)}"
        case _:
            _take_dns(draft, options, place)
    _take_family(draft, options)
    module.rest()
    return draft


def _take_tcp(draft: Draft, options: ForeignTable) -> None:
    take_dialogue(draft, options)
    if options.flag("tls"):
        draft.put("tls", value=True, line=options.line_of("tls"))
    take_tls(draft, options)


def _take_dns(draft: Draft, options: ForeignTable, place: str) -> None:
    name, kind = options.text("query_name").rstrip("."), options.text("query_type", "ANY").upper()
    draft.url = f"dns://{bracketed(place)}/{name}?type={kind}"
    if kind in _NO_RECORD:
        draft.drop(f"query_type {kind}: a check asks for one type of record", options.line_of("query_type"))
    if codes := options.texts("valid_rcodes"):
        draft.put("rcode", codes, options.line_of("valid_rcodes"))
    if options.text("transport_protocol", "udp") == "tcp":
        draft.options["transport"] = "tcp"
    elif options.text("transport_protocol", "udp") != "udp":
        draft.leave(f"transport_protocol {options.text('transport_protocol')}", options.line_of("transport_protocol"))
    if (asked := options.text("query_class", "IN")) != "IN":
        draft.drop(f"query_class {asked}", options.line_of("query_class"))
    if not options.flag("recursion_desired", default=True):
        draft.leave("the key dns.recursion_desired", options.line_of("recursion_desired"))


def _take_family(draft: Draft, options: ForeignTable) -> None:
    family, falls_back = options.text("preferred_ip_protocol"), options.flag("ip_protocol_fallback", default=True)
    if not falls_back:
        draft.put("ip", _FAMILIES.get(family, "6"), options.line_of("ip_protocol_fallback"))
    elif family:
        line = options.line_of("preferred_ip_protocol")
        draft.leave(f"preferred_ip_protocol {family}: all addresses are tried here (see ip)", line)

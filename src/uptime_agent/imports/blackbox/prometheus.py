"""Targets in a prometheus.yml: of `static_configs`, and of files in `file_sd_configs`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from attrs import field, frozen

from ..foreign import ForeignTable, Items, Mapped, NotImported, files_like, read_json, read_yaml, table_of

INTERVAL: Final = "1m"
"""Prometheus' default."""

_USUAL: Final = frozenset({"__param_target", "instance", "__address__"})


@frozen
class PrometheusTarget:
    """A target. `timeout`: Prometheus' own."""

    place: str
    interval: str = INTERVAL
    timeout: str | None = None
    tags: tuple[str, ...] = ()


@frozen
class Scraped:
    """Targets by module, and losses."""

    of: dict[str, list[PrometheusTarget]] = field(factory=dict)
    left: list[str] = field(factory=list)


def targets_beside(file: Path) -> Scraped:
    """Read a prometheus.yml next to a file."""
    prometheus = file.with_name("prometheus.yml")
    found = Scraped()
    if not prometheus.exists():
        return found
    top = table_of(read_yaml(prometheus), str(prometheus))
    top.place = f" of {prometheus.name}"
    usual = top.table("global")
    for job in top.tables("scrape_configs"):
        _read_job(job, usual, prometheus, found)
    found.left.extend(top.losses)
    return found


def _read_job(job: ForeignTable, usual: ForeignTable, file: Path, found: Scraped) -> None:
    modules, path = job.table("params").texts("module"), job.text("metrics_path")
    if not modules and path == "/probe":
        modules = ["http_2xx"]  # which the exporter takes then
    if not modules:
        return
    name = job.text("job_name") or f"on line {job.line}"
    interval = job.text("scrape_interval") or usual.text("scrape_interval", INTERVAL)
    timeout = job.text("scrape_timeout") or usual.text("scrape_timeout") or None
    for places, labels in _groups(job, file):
        tags = tuple(f"{key}={labels.text(key)}" for key in labels)
        for module in modules:
            found.of.setdefault(module, []).extend(PrometheusTarget(each, interval, timeout, tags) for each in places)
    _take_relabelling(job)
    job.take("scheme")
    job.rest()
    found.left.extend(f"job {name}: {each}" for each in job.losses)


def _groups(job: ForeignTable, file: Path) -> Iterator[tuple[list[str], ForeignTable]]:
    for static in job.tables("static_configs"):
        yield static.texts("targets"), static.table("labels")
        static.rest()
        job.losses.update(static.losses)
    for config in job.tables("file_sd_configs"):
        config.take("refresh_interval")  # a running agent follows its own file
        for pattern, line in config.lined("files"):
            yield from _of_files(job, file.parent, pattern, line)
        config.rest()
        job.losses.update(config.losses)


def _of_files(job: ForeignTable, folder: Path, pattern: str, line: int) -> Iterator[tuple[list[str], ForeignTable]]:
    files = files_like(folder, pattern)
    if not files:
        job.lose(f"file_sd_configs: there is no file {pattern}", line)
    for each in files:
        try:
            groups = read_json(each) if each.suffix == ".json" else read_yaml(each)
        except NotImported as exc:
            job.lose(f"file_sd_configs: {exc}", line)
            continue
        yield from _of_file(job, groups, each.name, line)


def _of_file(job: ForeignTable, groups: Any, name: str, line: int) -> Iterator[tuple[list[str], ForeignTable]]:
    if not isinstance(groups, Items):
        job.lose(f"file_sd_configs: {name} is no list of groups", line)
        return
    for group in groups.values:
        if not isinstance(group, Mapped):
            job.lose(f"file_sd_configs: {name} has something that is no group", line)
            continue
        table = ForeignTable(group, place=f" of {name}")
        yield table.texts("targets"), table.table("labels")
        table.rest()
        job.losses.update(table.losses)


def _take_relabelling(job: ForeignTable) -> None:
    for rule in job.tables("relabel_configs"):
        if rule.text("target_label") not in _USUAL or rule.text("action", "replace") != "replace":
            job.lose("the key relabel_configs: a rule that is none of the usual three", rule.line)

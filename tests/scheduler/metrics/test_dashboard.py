"""The dashboard for Grafana names metrics and labels that exist."""

import json
import re
from pathlib import Path

import pytest

from scheduler.metrics import METRICS, MetricKind

DASHBOARD = Path(__file__).resolve().parents[3] / "docs" / "grafana.json"
LABELS = {name: {*metric.labels, "instance"} for metric in METRICS for name in metric.names}
LABELS |= {metric.names[0]: {*metric.labels, "instance", "le"} for metric in METRICS if len(metric.names) > 1}


@pytest.fixture(scope="module")
def dashboard():
    """The file as Grafana reads it."""
    return json.loads(DASHBOARD.read_text("utf-8"))


def targets(dashboard):
    """List each query with the text under its line."""
    return [(each["expr"], each["legendFormat"]) for panel in dashboard["panels"] for each in panel.get("targets", [])]


def names(query):
    """Return the metrics that a query names."""
    return set(re.findall(r"\btimerqueue_[a-z_]+", query))


def test_each_metric_of_the_dashboard_exists(dashboard):
    """A renamed metric would leave an empty panel, and Grafana says nothing of it."""
    queries = [expression for expression, _ in targets(dashboard)]
    queries += [each.get("definition", "") for each in dashboard["templating"]["list"]]
    assert set().union(*map(names, queries)) <= LABELS.keys()
    assert len(set().union(*map(names, queries))) > 15


def test_each_label_of_the_dashboard_exists(dashboard):
    """In groups, in conditions and in the texts under the lines."""
    for query, legend in targets(dashboard):
        used = set(re.findall(r"\{\{(\w+)\}\}", legend)) | set(re.findall(r"[{,]\s*(\w+)\s*=~?", query))
        used |= {label for group in re.findall(r"by \(([^)]*)\)", query) for label in group.split(", ")}
        for name in names(query):
            assert used <= LABELS[name], query


def test_counters_are_asked_for_their_rate_and_gauges_are_not(dashboard):
    """A counter by itself only grows; the rate of a gauge means nothing."""
    counters = {name for metric in METRICS if metric.kind is not MetricKind.GAUGE for name in metric.names}
    for query, _ in targets(dashboard):
        rated = {name for each in re.findall(r"(?:rate|increase)\(([^\[]*)\[", query) for name in names(each)}
        assert rated == names(query) & counters, query


def test_panels_lie_side_by_side(dashboard):
    """Two panels at one place hide each other."""
    cells = [
        (column, row)
        for place in (panel["gridPos"] for panel in dashboard["panels"])
        for column in range(place["x"], place["x"] + place["w"])
        for row in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(column for column, _ in cells) < 24
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])

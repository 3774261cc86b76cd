"""What a text of metrics says, as the parser of prometheus_client reads it."""

from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as families


def exposed(text, *, openmetrics=False):
    """Return the value of each series by its name and its labels. No series may be there twice."""
    read = openmetrics_families if openmetrics else families
    found = [
        ((sample.name, frozenset(sample.labels.items())), sample.value)
        for family in read(text.decode())
        for sample in family.samples
    ]
    assert len(dict(found)) == len(found)
    return dict(found)


def series(name, **labels):
    """Return the key of a series in what `exposed` returns."""
    return name, frozenset(labels.items())

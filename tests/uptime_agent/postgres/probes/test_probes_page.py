"""The tables in docs/postgres-probes.md are made from the catalogue.

After a change of it: `python tests/uptime_agent/postgres/probes/test_probes_page.py --write`.
"""

import sys
from pathlib import Path

import pytest

from uptime_agent.postgres.contract import NEWEST_PROVEN, OLDEST_SUPPORTED, Role, Scope, pick
from uptime_agent.postgres.probes import CATALOGUE

PAGE = Path(__file__).resolve().parents[4] / "docs" / "postgres-probes.md"
BEGIN = "<!-- made from uptime_agent/postgres/probes by test_probes_page.py: begin -->"
END = "<!-- end -->"
VERSIONS = range(OLDEST_SUPPORTED, NEWEST_PROVEN + 2)
EXTENSIONS = {15: "1.10", 16: "1.10", 17: "1.11", 18: "1.12", 19: "1.12"}
"""The version of pg_stat_statements that each server brings."""


def rendered():
    """Render the table of all probes, and one of columns for each."""
    rows = [
        f"| [{probe.name}](#{probe.name}) | {probe.purpose} | {where(probe)} | {length(probe.every)} |"
        for probe in CATALOGUE.values()
    ]
    head = ["| probe | tells | where | every |", "|---|---|---|---|"]
    return "\n".join([*head, *rows, *(line for probe in CATALOGUE.values() for line in described(probe))])


def where(probe):
    """Say on what it runs."""
    scope = "server" if probe.scope is Scope.SERVER else "each database"
    return {Role.ANY: scope, Role.PRIMARY: "primary", Role.STANDBY: "standby"}[probe.role]


def length(seconds):
    """Spell an interval as the configuration does."""
    for unit, name in ((3600, "h"), (60, "min")):
        if seconds % unit == 0:
            return f"{seconds // unit:.0f} {name}"
    return f"{seconds:.0f} s"


def described(probe):
    """Yield the lines about one probe."""
    yield from ("", f"### {probe.name}", "")
    yield f"{probe.purpose[0].upper()}{probe.purpose[1:]}. {' '.join(remarks(probe))}".rstrip()
    yield from ("", "| column | type | unit | |", "|---|---|---|---|")
    for column in probe.columns:
        kind = "key" if column.is_key else "counter" if column.is_counter else ""
        said = "; ".join(filter(None, (kind, since(probe, column), column.note)))
        yield f"| `{column.name}` | {column.type.value} | {column.unit or ''} | {said} |"


def remarks(probe):
    """Yield what there is to say about what it needs and keeps."""
    if not probe.is_enabled:
        yield "Off until you turn it on."
    first = next((version for version in VERSIONS if chosen(probe, version) or probe.call), OLDEST_SUPPORTED)
    if first > OLDEST_SUPPORTED:
        yield f"From PostgreSQL {first} on."
    if probe.extension:
        yield f"Needs the extension {probe.extension}."
    if probe.setting:
        yield f"Needs `{probe.setting}`."
    if probe.grants:
        yield f"Rights: {probe.grants}."
    if probe.on_change:
        yield "Stored when it changes."
    if any(" LIMIT " in variant.sql for variant in probe.variants):
        yield f"At most {probe.most_rows} rows."


def chosen(probe, version):
    """Return the variant for a version with the extensions that it brings."""
    return pick(probe, version * 10_000, EXTENSIONS[version])


def since(probe, column):
    """Say on which versions a column is more than NULL, unless it is on all."""
    lacking = f"(NULL)::{column.type.value} AS {column.name}"
    there = [version for version in VERSIONS if (variant := chosen(probe, version)) and lacking not in variant.sql]
    first = next((version for version in VERSIONS if chosen(probe, version)), OLDEST_SUPPORTED)
    return f"from {there[0]} on" if there and there[0] > first else ""


def replaced(page, text):
    """Put `text` between the markers of a page."""
    before, rest = page.split(BEGIN)
    after = rest.split(END, 1)[1]
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def test_the_page_shows_the_probes_that_there_are():
    """A table by hand would soon be of columns that nobody stores."""
    page = PAGE.read_text("utf-8")
    assert page == replaced(page, rendered()), "run `python test_probes_page.py --write`"


@pytest.mark.parametrize("probe", CATALOGUE.values(), ids=CATALOGUE)
def test_each_column_is_on_the_page(probe):
    """With its unit, where it has one."""
    lines = list(described(probe))
    for column in probe.columns:
        (line,) = (line for line in lines if line.startswith(f"| `{column.name}` |"))
        assert column.type.value in line
        assert (column.unit or "") in line


@pytest.mark.parametrize(
    ("probe", "column", "said"),
    [
        ("tables", "last_seq_scan", "from 16 on"),
        ("slots", "inactive_since", "from 17 on"),
        ("statements", "stats_since", "from 17 on"),
        ("wal", "wal_fpi_bytes", "from 19 on"),
        ("io", "reads", ""),
        ("wal", "wal_bytes", ""),
    ],
)
def test_a_column_says_from_which_version_on_it_is_there(probe, column, said):
    """And nothing where all have it that have the probe."""
    (column,) = (each for each in CATALOGUE[probe].columns if each.name == column)
    assert since(CATALOGUE[probe], column) == said


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(f"usage: python {sys.argv[0]} --write")
    PAGE.write_text(replaced(PAGE.read_text("utf-8"), rendered()), "utf-8")

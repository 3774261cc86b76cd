"""Files of other monitors, brought over: a test gives what stands in a file, and gets our file as tables."""

import json
import tomllib

import yaml

from uptime_agent.imports import IMPORTERS, imported
from uptime_agent.output import problems_of

NAMES = {"gatus": "config.yaml", "blackbox": "blackbox.yml", "kuma": "backup.json", "heartbeat": "heartbeat.yml"}


def written(monitor, content):
    """Write what a file of that monitor says: as it is, or a value in YAML or JSON, a key on each line."""
    if isinstance(content, str):
        return content
    return (
        json.dumps(content, indent=1) if monitor == "kuma" else yaml.safe_dump(content, sort_keys=False, width=10_000)
    )


class Brought:
    """What came of a file: our tables by name, and what was left, with the file's own text to find lines in."""

    def __init__(self, source, result):
        self.source = source
        self.text = result.text
        self.left = list(result.left)
        self.tables = tomllib.loads(result.text)
        self.checks = {each["name"]: each for each in self.tables.get("check", [])}

    @property
    def check(self):
        """The only check."""
        (only,) = self.checks.values()
        return only

    def told(self, word, line=None):
        """Tell whether something was told with that word in it, and with that line."""
        place = "" if line is None else f"(line {line}"
        return any(word in each and place in each for each in self.left)

    def lines_of(self, key):
        """The lines of the file in which a part of that key stands, which has dots between them."""
        lines = enumerate(self.source.replace('"', "").splitlines(), 1)
        return [number for number, line in lines if any(f"{part}:" in line for part in key.split("."))]

    def line_of(self, text):
        """The first line of the file in which a text stands."""
        return next(number for number, each in enumerate(self.source.splitlines(), 1) if text in each)


def bring(monitor, content, folder, *, targets=None, beside=None):
    """Import a file; `beside`: others in its folder, by name."""
    for name, other in (beside or {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(written(monitor, other))
    file = folder / NAMES[monitor]
    file.write_text(written(monitor, content))
    drafts, left = IMPORTERS[monitor](file, targets or {})
    result = imported(monitor, drafts, left, problems_of)
    if result.checks:
        assert problems_of(result.text) == ()
    return Brought(file.read_text(), result)


def gatus(*endpoints, **others):
    """Write a file of Gatus with these endpoints."""
    return {"endpoints": [{"name": f"e{at}", **each} for at, each in enumerate(endpoints)], **others}


def kuma(*monitors):
    """Write a backup of Kuma with these monitors."""
    return {
        "version": "1.23.16",
        "monitorList": [{"id": at, "name": f"m{at}", **each} for at, each in enumerate(monitors, 1)],
    }

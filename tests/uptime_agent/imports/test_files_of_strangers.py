"""Forty files in the style of those who run other monitors: what of them is lost is told, and nothing else is.

Each line that is to be told ends in `# told`, and `# -> key = value` says which line ours has for it. In JSON it is
`//`. What has neither is carried over by other lines, or says nothing.
"""

import re
from pathlib import Path

import pytest

from foreign_monitors import NAMES, bring

FOLDER = Path(__file__).parent / "strangers"
HEADS = re.compile(r"^=== (.*)\n", re.MULTILINE)
TARGET = re.compile(r" (\w+)=(\S+)")
OF_JSON = re.compile(r"\s*// (?:told|->).*$", re.MULTILINE)
LOST = re.compile(r"\(line ([0-9]+)(?: of ([\w.]+))?\)$")
WANTED = re.compile(r"(?:#|//) -> (.*)$", re.MULTILINE)


def strangers():
    """Yield a monitor, the name of a file in its style, its text, and what stands in other files beside it."""
    for file in sorted(FOLDER.glob("*.txt")):
        _, *parts = HEADS.split(file.read_text())
        for head, text in zip(parts[::2], parts[1::2], strict=True):
            own, _, beside = text.partition("+++ prometheus.yml\n")
            yield pytest.param(file.stem, head, own, beside, id=f"{file.stem}: {TARGET.sub('', head)}")


def marked(text):
    """The numbers of the lines that are to be told."""
    return {number for number, line in enumerate(text.splitlines(), 1) if re.search(r"(?:#|//) told", line)}


def test_there_are_forty():
    """Twelve of Gatus, ten of Uptime Kuma, nine each of the others."""
    assert len(list(strangers())) == 40


@pytest.mark.parametrize(("monitor", "head", "text", "beside"), list(strangers()))
def test_all_that_is_lost_of_a_file_is_told_and_nothing_else(monitor, head, text, beside, tmp_path):
    """With its line; and what is carried over means the same."""
    pytest.importorskip("re2")
    targets = {name: [place] for name, place in TARGET.findall(head)}
    content = OF_JSON.sub("", text) if monitor == "kuma" else text
    found = bring(monitor, content, tmp_path, targets=targets, beside={"prometheus.yml": beside} if beside else None)
    lost = [(int(each[1]), each[2]) for each in map(LOST.search, found.left) if each]
    assert {line for line, file in lost if file in {None, NAMES[monitor]}} == marked(text), found.left
    assert {line for line, file in lost if file == "prometheus.yml"} == marked(beside), found.left
    lines = found.text.splitlines()
    assert [each for each in WANTED.findall(text + beside) if each not in lines] == []

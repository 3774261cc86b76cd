"""The picture in README.md is the table of the demo, and asks for nothing from elsewhere."""

import html
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PICTURE = ROOT / "docs" / "live-table.svg"


@pytest.fixture
def picture(monkeypatch):
    """The script that draws it."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "make"))
    import picture  # noqa: PLC0415 - it lies beside the pages that are made

    return picture


def words(svg):
    """Return what a reader sees in a picture."""
    texts = ("".join(each.itertext()) for each in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"))
    return html.unescape(" ".join(texts)).replace("\xa0", " ")


def test_the_picture_shows_each_target_of_the_demo():
    """A target that is new, or called otherwise: `python docs/make/picture.py`."""
    checks = tomllib.loads((ROOT / "examples" / "uptime.toml").read_text("utf-8"))["check"]
    shown = words(PICTURE.read_text("utf-8"))
    assert [each["name"] for each in checks if each["name"] not in shown] == []


def test_the_picture_asks_for_nothing_from_elsewhere():
    """A font of another server would tell that server who reads the page."""
    text = PICTURE.read_text("utf-8")
    assert "@font-face" not in text
    assert "url(http" not in text
    assert "href" not in text


def test_the_last_table_of_the_output_is_drawn(picture):
    """What scrolled by above it, and the summary below it, are left out."""
    again = "\x1b[1A\x1b[2K" * 2
    output = (
        f"a notice\r\n\x1b[?25lname next checks\r\nshop 1s 1{again}name next checks\r\nshop \x1b[31m2s\x1b[0m 2\r\n"
    )
    output += "\x1b[?25hstopped after 20s\r\n"
    table = picture.last_table(output)
    assert table.splitlines() == ["name next checks", "shop \x1b[31m2s\x1b[0m 2"]
    assert "shop 2s 2" in " ".join(words(picture.drawn(table)).split())


def test_a_demo_without_a_table_is_an_error(picture):
    """A picture of nothing would be noticed by readers only."""
    with pytest.raises(ValueError, match="has drawn no table: 'no such file'"):
        picture.last_table("no such file")

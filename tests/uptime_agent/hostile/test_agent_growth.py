"""What reads foreign text costs in proportion to its length: steps are counted, no time is taken."""

import re
from itertools import product

import h11._readers
import pytest

from kit import lines_of
from steps_of_patterns import Steps
from uptime_agent.checks.contract.trouble import CheckFailed
from uptime_agent.checks.http import exchange, options as http_options, redirects
from uptime_agent.checks.http.http_check import SCHEMES
from uptime_agent.text import redact, url

# Letters that mean something to one reader or another, alone and in pairs that end what began.
UNITS = 'a 9 . - / // ? ?a &a = =a & # @ : % %2 %25 [ ] ( " ; , é 漢 ß xn--'.split()
UNITS += [" ", "\t", "\n", "\x00", "; ", "\u200d", "\u0300", "\u3002"]
BEFORE = ["", "?", "http://", "http://h/?k=", "http://["]
AFTER = ["", "@", "\n"]
SHORT = 60
FEW = 40
"""Letters for a pattern, whose steps are played one by one: the square of it is far beyond what passes."""
LARGE = 100_000

BASE = url.parse_url("http://h/a/b?c", SCHEMES)
PATTERNS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": found
    for module in (url, redact, http_options, exchange, redirects)
    for name, found in vars(module).items()
    if isinstance(found, re.Pattern)
}
READERS = {
    "parse_url": lambda text: url.parse_url(text, SCHEMES),
    "masked": url.masked,
    "secrets_in": url.secrets_in,
    "host_name": url.host_name,
    "sounds_secret": url.sounds_secret,
    "next_url": lambda text: redirects.next_url(BASE, text.encode(), SCHEMES),
    "is_public": redirects.is_public,
    "head": lambda text: exchange.HeadGuard().look(b"HTTP/1.1 200 OK\r\n" + text.encode()),
    "redactor": redact.Redactor(["hunter22", "//", "?"]).clean,
}


def texts(size):
    """Make a text of each kind of letter, with what may stand before and after it."""
    rows = product(BEFORE, UNITS, AFTER)
    return [(before, unit, after, before + unit * (size // len(unit)) + after) for before, unit, after in rows]


@pytest.mark.parametrize("name", PATTERNS)
def test_no_pattern_over_foreign_text_takes_more_steps_than_in_proportion(name):
    """Twice the text costs twice the steps. What begins anew at each letter and reads to the end costs four times."""
    pattern = PATTERNS[name]
    for short, long in zip(texts(FEW), texts(2 * FEW), strict=True):
        steps, more = (Steps(pattern, each[-1]).run() for each in (short, long))
        assert more <= 2.5 * steps + 50, short[:3]


@pytest.mark.parametrize("name", READERS)
def test_no_reader_of_foreign_text_runs_more_lines_than_in_proportion(name):
    """Its own loops, and those of the standard library that it calls."""
    for short, long in zip(texts(SHORT), texts(2 * SHORT), strict=True):
        once, twice = (
            lines_of(READERS[name], each[-1], suppressing=(ValueError, CheckFailed)) for each in (short, long)
        )
        assert twice <= 2.5 * once + 200, short[:3]


@pytest.mark.parametrize("name", READERS)
def test_a_hundred_kilobytes_of_anything_are_read_or_refused(name):
    """A refusal is an error of a few words. What grows with the square of the length would not come to an end."""
    longest = 0
    for *_, text in texts(LARGE)[::4]:
        try:
            READERS[name](text)
        except (ValueError, CheckFailed) as exc:
            longest = max(longest, len(str(exc)))
    assert longest < 500


LINES_OF_H11 = {
    name: found for name, found in vars(h11._readers).items() if isinstance(found, re.Pattern) and name != "obs_fold_re"
}


@pytest.mark.parametrize("name", LINES_OF_H11)
def test_what_h11_is_shown_of_a_header_costs_it_no_more_than_in_proportion(name):
    """Its pattern for a line takes the square of the blanks in one that makes no sense: such a one it does not get."""
    pattern = LINES_OF_H11[name]
    refused = 0
    for before, unit, after in product(
        ["", "a:", "a: b", "HTTP/1.1 200 ", "5;"], UNITS, ["", "\n", "\x00", "\r \n", " \r\n"]
    ):
        line = [before + unit * (count // len(unit)) + after for count in (SHORT, 2 * SHORT)]
        once, twice = (each.encode() for each in line)
        inside = once.removesuffix(b"\r\n") if name == "chunk_header_re" else once  # it is given one line at a time
        if exchange._NOT_IN_A_HEAD.search(once) or b"\n" in inside:
            refused += 1
            continue
        steps, more = (Steps(pattern, each).run_from_start() for each in (once, twice))
        assert more <= 2.5 * steps + 50, (before, unit, after)
    assert refused

"""URLs: most are plain and read in a quick way, which reads them as the long one does."""

import pytest
from hypothesis import example, given, strategies as st

from uptime_agent.text.url import _PLAIN, _read_any, _read_plain

PORTS = {"http": 80, "https": 443, "tcp": None, "domain": 0}


def read(reader, text):
    """Read a text: the URL, or what was said of it."""
    try:
        return reader(text, PORTS)
    except ValueError as exc:
        return str(exc)


@given(st.from_regex(_PLAIN, fullmatch=True) | st.builds("{}://{}".format, st.sampled_from([*PORTS]), st.text()))
@example("http://127.0.0.1:80/")
@example("http://a..b/")
@example("http://-/")
@example(f"http://{'a' * 64}/")
@example(f"http://{'a.' * 200}a/")
@example("https://h:0/")
@example("https://h:99999/")
@example("https://h:00443//a/../b")
@example("tcp://h:1")
@example("domain://example.org")
@example("http://h/?q")
def test_a_plain_url_is_read_as_any_url_is(text):
    """With the same host, port and target, or the same words about what is wrong."""
    if read(_read_plain, text) is not None:
        assert read(_read_plain, text) == read(_read_any, text)


@pytest.mark.parametrize("text", ["http://host-1.example:4000/health/17", "https://example.org", "http://10.0.0.1/"])
def test_most_urls_are_plain(text):
    """These at least."""
    assert _read_plain(text, PORTS) is not None

"""Keys that are pressed while a filter is typed."""

import pytest

from uptime_agent.show.keys import ShownPart, keys_in

ROWS, PAGE = 100, 10


def pressed(keys):
    part = ShownPart()
    for each in keys_in(keys):
        part.press(each, PAGE)
    return part


@pytest.mark.parametrize(
    "key", ["\x1b[A", "\x1bOA", "\x1b[B", "\x1bOB", "\x1b[5~", "\x1b[6~", "\x1b[H", "\x1b[1~", "\x1b[F", "\x1b[4~"]
)
def test_a_key_without_a_character_scrolls_and_types_nothing(key):
    """Up typed a k into the filter, and Page Down a space."""
    part = pressed(f"/db{key}")
    assert (part.words, part.is_typing) == ("db", True)
    assert part.start(ROWS, PAGE) == pressed(f"/db\n{key}").start(ROWS, PAGE)


@pytest.mark.parametrize("key", ["\x1b[3~", "\x1bOP", "\x1b[1;5C"])
def test_a_key_without_a_meaning_types_nothing(key):
    """As Delete, F1 and Ctrl-Right."""
    assert pressed(f"/db{key}").words == "db"


def test_letters_that_scroll_are_text_while_a_filter_is_typed():
    """The scrolling begins again after Enter."""
    part = pressed("/jk b")
    assert (part.words, part.first) == ("jk b", 0)

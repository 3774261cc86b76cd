"""Large texts cost what their length says, whatever is in them."""

import pytest

from scheduler import InvalidJob
from scheduler._shape import read_json
from scheduler._shape.json_text import _object

MANY = 500


class Counted(str):
    """A key that counts how often it is compared."""

    __slots__ = ()
    __hash__ = str.__hash__
    comparisons = 0

    def __eq__(self, other):
        Counted.comparisons += 1
        return str.__eq__(self, other)


def test_a_repeated_key_costs_no_more_than_the_text_is_long():
    """To count each key among all keys took minutes for 1 MiB, and the event loop stood still."""
    Counted.comparisons = 0
    with pytest.raises(ValueError, match="the key '499' comes twice"):
        _object([(Counted(number), 0) for number in [*range(MANY), MANY - 1]])
    assert Counted.comparisons < 5 * MANY


def test_the_first_repeated_key_is_named():
    """And no more of it than a reader needs."""
    with pytest.raises(InvalidJob, match="the key 'b' comes twice"):
        read_json('{"a": {"c": 1}, "b": 1, "b": 2, "a": 3}')
    with pytest.raises(InvalidJob, match=f"the key '{'x' * 100}' comes twice"):
        read_json(f'{{"{"x" * 999}": 1, "{"x" * 999}": 2}}')

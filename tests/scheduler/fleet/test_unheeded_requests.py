"""Requests for jobs that stand in a queue: whoever has asked fetches them, and somebody else once that one is gone."""

from scheduler._fleet.other_nodes import Unheeded
from scheduler.stores import Act, StoredRequest


def requests(*numbers):
    """Make requests of these numbers."""
    return [StoredRequest(number, "job", Act.RUN.value, None) for number in numbers]


def test_a_request_that_is_still_there_the_next_time_is_unheeded():
    """It counts as new after that, so that it is fetched again should the fetch fail."""
    unheeded = Unheeded()
    assert unheeded.still(requests(1, 2)) == []
    assert unheeded.still(requests(2, 3)) == requests(2)
    assert unheeded.still(requests(2, 3)) == requests(3)
    assert unheeded.still(requests(2)) == requests(2)


def test_what_was_done_by_whoever_has_asked_is_not_remembered():
    """An agent that sees a thousand requests of others in passing keeps none of them."""
    unheeded = Unheeded()
    for number in range(1_000):
        assert unheeded.still(requests(number)) == []
    assert unheeded.still([]) == []
    assert unheeded.still(requests(*range(1_000))) == []

"""The line of work that needs no named limit: against a sorted list."""

from hypothesis import given, strategies as st

from timerqueue._limits.plain_line import COMPACT_ABOVE, PlainLine


class Waits:
    """Work that waits until it is cancelled."""

    def __init__(self, rank):
        self.rank = rank
        self.is_waiting = True


def emptied(line):
    """All that waits, in the order in which it comes out."""
    found = []
    while line:
        work = line.pop()
        if work is not None:
            found.append(work.rank)
    return found


@given(st.lists(st.one_of(st.integers(0, 9), st.none(), st.just("cancel")), max_size=60))
def test_the_best_comes_first_whatever_the_order(steps):
    """A number comes in with that rank, None takes out the best, and "cancel" cancels the newest."""
    line, model = PlainLine(), []
    for sequence, step in enumerate(steps):
        if step is None:
            taken = line.pop()
            while taken is None and line:
                taken = line.pop()
            assert (None if taken is None else taken.rank) == (
                min(model, key=lambda work: work.rank).rank if model else None
            )
            model = [work for work in model if work is not taken]
        elif step == "cancel":
            if model:
                model.pop().is_waiting = False
                line.cancelled()
        else:
            work = Waits((float(step), sequence))
            line.push(work.rank, work)
            model.append(work)
    assert emptied(line) == sorted(work.rank for work in model)
    assert not line


def test_the_head_is_the_best():
    """Also when it has overtaken what came in order."""
    line = PlainLine()
    for rank in [(2.0, 1), (3.0, 2), (1.0, 3)]:
        line.push(rank, Waits(rank))
    assert line.head() == (1.0, 3)
    line.pop()
    assert line.head() == (2.0, 1)


def test_an_empty_line_gives_nothing():
    """It need not be asked first."""
    assert PlainLine().pop() is None


def test_cancelled_work_does_not_pile_up():
    """The line lets go of it when there is more of it than of what waits."""
    line = PlainLine()
    kept = Waits((0.0, 0))
    line.push(kept.rank, kept)
    for number in range(1, 10 * COMPACT_ABOVE):
        work = Waits((float(number % 7), number))
        line.push(work.rank, work)
        work.is_waiting = False
        line.cancelled()
    assert len(line._in_order) + len(line._overtaking) <= 2 * COMPACT_ABOVE + 2
    assert emptied(line) == [kept.rank]


def test_clearing_answers_what_waited():
    """And not what was cancelled."""
    line = PlainLine()
    works = [Waits((float(number % 3), number)) for number in range(9)]
    for work in works:
        line.push(work.rank, work)
    works[4].is_waiting = False
    line.cancelled()
    assert set(line.clear()) == set(works) - {works[4]}
    assert not line

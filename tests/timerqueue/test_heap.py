"""`TimerHeap` against a sorted list, and row by row."""

import gc
import tracemalloc
import weakref
from operator import attrgetter

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from kit import examples
from timerqueue import Entry, TimerHeap, _heap

WIDTHS = [0.25, 1.0, 0.1, 0.001, 1_000.0]
ENOUGH_TO_COMPACT = 2_500

# Multiples of an eighth meet each other and the borders of slots; the others meet nobody.
meeting = st.integers(-4, 8).map(lambda eighths: eighths / 8)
times = st.one_of(meeting, meeting, meeting, st.floats(-1e6, 1e6))


class Named(Entry):
    """An entry that shows who it is, and that a weak reference can watch."""

    __slots__ = ("__weakref__", "name")

    def __init__(self, name=None):
        super().__init__()
        self.name = name

    def __repr__(self):
        return f"<{self.name}>"


def filled(*dues, width=0.25):
    """Make a heap with an entry for each due time, named by its position."""
    heap = TimerHeap(width)
    entries = [Named(position) for position in range(len(dues))]
    for entry, due in zip(entries, dues, strict=True):
        heap.push(entry, due)
    return heap, entries


def names(batch):
    """Tell who came out, in order."""
    return [entry.name for entry in batch]


class SortedList:
    """The heap beside a list sorted by (due, order of pushes): whatever is done to both, they answer alike."""

    def __init__(self, width):
        self.heap = TimerHeap(width)
        self.entries = [Named(position) for position in range(8)]
        self.waiting = {}
        self.pushes = 0
        self.is_exact = True

    def push(self, position, due):
        entry = self.entries[position]
        if entry in self.waiting:
            return self.reschedule(position, due)
        self.heap.push(entry, due)
        return self.expect(entry, due)

    def cancel(self, position):
        entry = self.entries[position]
        assert self.heap.cancel(entry) is (self.waiting.pop(entry, None) is not None)
        assert not self.heap.cancel(entry)
        self.is_exact = False

    def reschedule(self, position, due):
        entry = self.entries[position]
        assert self.heap.reschedule(entry, due) is (entry in self.waiting)
        if entry in self.waiting:
            self.expect(entry, due)
        self.is_exact = False

    def pop_due(self, now, at_most):
        due = [entry for entry in self.in_order() if entry.due <= now][:at_most]
        assert self.heap.pop_due(now, at_most) == due
        for entry in due:
            del self.waiting[entry]

    def next_due(self):
        bound = self.heap.next_due()
        assert (bound is None) is (not self.waiting)
        if bound is not None:
            earliest = min(self.waiting.values())[0]
            assert bound == earliest if self.is_exact else bound <= earliest

    def churn(self, start, step):
        gone = [Named() for _ in range(ENOUGH_TO_COMPACT)]
        for position, entry in enumerate(gone):
            self.heap.push(entry, start + position * step)
        assert all(self.heap.cancel(entry) for entry in gone)
        self.is_exact = False

    def expect(self, entry, due):
        self.waiting[entry] = (due, self.pushes)
        self.pushes += 1

    def in_order(self):
        return sorted(self.waiting, key=self.waiting.__getitem__)

    def check(self):
        assert len(self.heap) == len(self.waiting)
        assert all(entry.is_waiting is (entry in self.waiting) for entry in self.entries)
        assert all(entry.due == due for entry, (due, _) in self.waiting.items())


positions = st.integers(0, 7)
moves = st.one_of(
    st.tuples(st.just("push"), positions, times),
    st.tuples(st.just("push"), positions, times),
    st.tuples(st.just("cancel"), positions),
    st.tuples(st.just("reschedule"), positions, times),
    st.tuples(st.just("pop_due"), times, st.none() | st.integers(0, 4)),
    st.tuples(st.just("next_due")),  # asked now and then, because asking clears away what was cancelled
)
churns = st.tuples(st.just("churn"), times, st.sampled_from([0.0, 0.01, 0.125, 7.0]))


@pytest.fixture(params=[64, 0], ids=["slots are searched", "marks are left"])
def small(request, monkeypatch):
    """Have entries that are cancelled taken out of their slots, or nearly always left there as marks."""
    monkeypatch.setattr(_heap, "SMALL", request.param)


def follow(moves, width):
    """Make the same moves on both, then empty both."""
    both = SortedList(width)
    for move, *arguments in moves:
        getattr(both, move)(*arguments)
        both.check()
    both.pop_due(1e7, None)
    both.next_due()


@pytest.mark.usefixtures("small")
@settings(max_examples=examples(400), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=st.lists(moves, min_size=10, max_size=80), width=st.sampled_from(WIDTHS))
def test_the_heap_answers_as_a_sorted_list_does(moves, width):
    """Pushes, cancellations, moves there and back, ties and batches in any order."""
    follow(moves, width)


@settings(max_examples=15)
@given(moves=st.lists(moves | churns, min_size=10, max_size=40), width=st.sampled_from(WIDTHS))
def test_the_heap_answers_as_a_sorted_list_does_while_it_compacts(moves, width):
    """The same, with so many cancelled entries in between that they are cleared away."""
    follow(moves, width)


def test_ties_leave_in_the_order_they_were_pushed():
    """Nobody may depend on chance for what is due at one instant."""
    heap, _ = filled(2.0, 1.0, 2.0, 1.0, 2.0)
    assert names(heap.pop_due(2.0)) == [1, 3, 0, 2, 4]


def test_due_now_is_due():
    """Heartbeat took out only what was due strictly before."""
    heap, _ = filled(1.0)
    assert names(heap.pop_due(0.999999)) == []
    assert names(heap.pop_due(1.0)) == [0]


@given(due=times, width=st.sampled_from(WIDTHS))
def test_an_entry_leaves_at_its_time_and_not_before(due, width):
    """Slots may not show: neither early nor late, wherever a time lies between two borders."""
    heap, _ = filled(due, width=width)
    before = due - max(abs(due), 1.0) * 1e-9
    assert heap.pop_due(before) == []
    assert heap.next_due() == due
    assert names(heap.pop_due(due)) == [0]


@given(slots=st.integers(-10_000, 10_000), width=st.sampled_from(WIDTHS))
def test_the_border_of_a_slot_belongs_to_one_side(slots, width):
    """Times beside a border keep their order, computed with whatever rounding."""
    border = slots * width
    heap, _ = filled(border + width / 8, border, border - width / 8, border, width=width)
    assert names(heap.pop_due(border)) == [2, 1, 3]
    assert names(heap.pop_due(border + width)) == [0]


def test_at_most_so_many_leave_and_the_rest_stays():
    """A burst is cut into pieces without losing its order."""
    heap, _ = filled(*[1.0] * 5)
    assert [names(heap.pop_due(1.0, 2)) for _ in range(4)] == [[0, 1], [2, 3], [4], []]


def test_what_is_taken_back_at_once_is_let_go_at_once():
    """Most timeouts are: the heap keeps nothing of them until their time, and the others stay."""
    heap, _ = filled(1.0, 1.1)
    entry = Named("timeout")
    watched = weakref.ref(entry)
    heap.push(entry, 1.2)
    assert heap.cancel(entry)
    del entry
    assert watched() is None
    assert names(heap.pop_due(2.0)) == [0, 1]


@pytest.mark.parametrize(
    ("dues", "taken_back"),
    [
        pytest.param([1.0], 0, id="alone in its slot"),
        pytest.param([1.2, 1.0, 1.1, 1.0], 2, id="in a small slot without order"),
        pytest.param([1 + position / 1e6 for position in range(10_000)], 9_000, id="in a big slot that is in order"),
        pytest.param([*[1.0] * 100, 1.1, *[1.2] * 100], 100, id="between equals"),
    ],
)
def test_what_is_taken_back_later_is_let_go_at_once_too(dues, taken_back):
    """The timeouts of runs that have ended, and jobs that were removed: a collection would look at each of them."""
    heap, entries = filled(*dues, width=1.0)
    entry = entries.pop(taken_back)
    watched = weakref.ref(entry)
    assert heap.cancel(entry)
    del entry
    assert watched() is None
    assert len(heap) == len(entries)
    assert heap.pop_due(2.0) == sorted(entries, key=attrgetter("due"))


def test_one_that_is_taken_out_and_pushed_again_counts_from_its_last_push():
    """An earlier place in the same slot, from before it was moved away, is not taken for the new one."""
    heap, (first, second, third) = filled(1.0, 1.0, 1.0)
    heap.reschedule(first, 9.0)
    heap.reschedule(first, 1.0)
    heap.cancel(second)
    heap.push(second, 1.0)
    assert heap.pop_due(2.0) == [third, first, second]


def test_cancelled_entries_leave_no_more_slots_than_there_are_entries():
    """Each slot that stayed kept a block of a MiB, in which Python had room for what was removed."""
    heap, _ = filled(1.0, 1.0, 1.0)
    for position in range(100):
        entry = Named()
        heap.push(entry, 3600.0 + position)
        assert heap.cancel(entry)
    assert len(heap._slots) <= 4


def test_cancelled_entries_do_not_count_towards_at_most():
    """A batch that comes back short or empty says that nothing more is due."""
    heap, entries = filled(*[1.0] * 5)
    assert names(heap.pop_due(1.0, 1)) == [0]
    assert heap.cancel(entries[1])
    assert heap.cancel(entries[2])
    assert names(heap.pop_due(1.0, 2)) == [3, 4]


def test_an_entry_that_moves_away_and_back_leaves_once():
    """Its first reference still lies in the slot that it returns to."""
    heap, (moved, _) = filled(1.0, 1.1)
    assert heap.reschedule(moved, 50.0)
    assert heap.reschedule(moved, 1.2)
    assert names(heap.pop_due(60.0)) == [1, 0]
    assert len(heap) == 0


@pytest.mark.parametrize("due", [0.5, 1.0, 1.1, 1.4, 9.0])
def test_an_entry_cancelled_after_its_slot_was_opened_can_be_pushed_again(due):
    """The opened list still refers to it, with the old due time."""
    heap, (_, cancelled, _) = filled(1.0, 1.1, 1.2)
    assert names(heap.pop_due(1.0)) == [0]
    assert heap.cancel(cancelled)
    assert not cancelled.is_waiting
    heap.push(cancelled, due)
    assert sorted(names(heap.pop_due(10.0))) == [1, 2]


def test_an_entry_cancelled_many_times_among_equals_leaves_once():
    """Every one of its equals stands in the way of finding the old reference."""
    heap, entries = filled(*[1.0] * 7)
    assert names(heap.pop_due(1.0, 1)) == [0]
    for _ in range(3):
        assert heap.cancel(entries[4])
        heap.push(entries[4], 1.0)
    assert names(heap.pop_due(1.0)) == [1, 2, 3, 5, 6, 4]


def test_what_arrives_for_an_opened_time_takes_its_place_in_order():
    """A push into the past or into the present slot is inserted behind its equals."""
    heap, _ = filled(1.0, 1.1, 1.2)
    assert names(heap.pop_due(1.0)) == [0]
    for name, due in {"last": 1.2, "first": 0.3, "middle": 1.1, "negative": -5.0}.items():
        heap.push(Named(name), due)
    assert heap.next_due() == -5.0
    assert names(heap.pop_due(1.2)) == ["negative", "first", 1, "middle", 2, "last"]


def test_a_rescheduled_entry_goes_behind_what_is_already_due_then():
    """Even if its due time does not change."""
    heap, (first, _) = filled(1.0, 1.0)
    assert heap.reschedule(first, 1.0)
    assert names(heap.pop_due(1.0)) == [1, 0]


def test_cancel_and_reschedule_of_what_does_not_wait_say_so():
    """Never pushed, popped and cancelled are one and the same to the heap."""
    heap, (popped, cancelled) = filled(1.0, 2.0)
    heap.pop_due(1.0)
    heap.cancel(cancelled)
    for entry in (Named(), popped, cancelled):
        assert not heap.cancel(entry)
        assert not heap.reschedule(entry, 3.0)
    assert len(heap) == 0


def test_the_bound_leads_to_the_next_entry_also_after_cancelling():
    """Whoever waits until `next_due` and asks again gets there in a few steps."""
    heap, entries = filled(*[slot / 4 for slot in range(20)])
    for entry in entries[:-1]:
        heap.cancel(entry)
    looks = 0
    while not (batch := heap.pop_due(heap.next_due())):
        looks += 1
        assert looks <= len(entries)
    assert names(batch) == [19]
    assert heap.next_due() is None


def test_a_heap_of_nothing_but_cancelled_entries_is_empty():
    """Marks are no entries."""
    heap, entries = filled(1.0, 2.0, 300.0)
    for entry in entries:
        heap.cancel(entry)
    assert len(heap) == 0
    assert heap.next_due() is None
    assert heap.pop_due(1e9) == []


def test_two_heaps_do_not_share_state():
    """Each test above would lie otherwise."""
    one, _ = filled(1.0)
    other, _ = filled(1.0)
    assert names(one.pop_due(1.0)) == [0]
    assert len(other) == 1


def test_compaction_keeps_the_order_of_what_lives():
    """Dropping thousands of marks may not stir the rest, opened or not."""
    heap, entries = filled(*[position % 100 / 10 for position in range(10_000)])
    opened = heap.pop_due(3.0)
    rest = sorted((entry for entry in entries if entry.is_waiting), key=attrgetter("due"))
    cancelled = [entry for entry in rest if entry.name % 7]
    for entry in cancelled:
        assert heap.cancel(entry)
    survivors = [entry for entry in rest if not entry.name % 7]
    assert len(opened) == 3_100
    assert len(heap) == len(survivors)
    assert heap.pop_due(100.0) == survivors


def test_popped_entries_are_not_kept_alive():
    """Heartbeat kept ten of ten in the array behind its slice."""
    heap, entries = filled(*[position / 10 for position in range(10)])
    watched = [weakref.ref(entry) for entry in entries]
    del entries
    assert len(heap.pop_due(10.0)) == 10
    gc.collect()
    assert [ref() for ref in watched] == [None] * 10


@pytest.mark.parametrize("popped_first", [False, True])
def test_50_000_removed_entries_are_let_go(popped_first):
    """Heartbeat kept each removed job's entry until its due time."""
    heap, entries = filled(*[3600.0 + position / 1e6 for position in range(50_000)])
    watched = [weakref.ref(entry) for entry in entries]
    if popped_first:
        heap.pop_due(3600.0)
    for entry in entries:
        heap.cancel(entry)
    del entries, entry
    gc.collect()
    assert sum(ref() is not None for ref in watched) <= 2_000


def test_the_heap_shrinks_after_50_000_removals():
    """What removed entries cost is given back, not only the entries."""
    heap, entries = TimerHeap(), [Named() for _ in range(50_000)]
    tracemalloc.start()
    try:
        for position, entry in enumerate(entries):
            heap.push(entry, 3600.0 + position)
        full, _ = tracemalloc.get_traced_memory()
        for entry in entries:
            heap.cancel(entry)
        empty, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert empty < full / 5


@given(st.lists(st.tuples(times, st.booleans()), max_size=40), st.floats(-2, 2), st.sampled_from(WIDTHS))
def test_pushing_all_at_once_is_pushing_each(pushes, opened_until, width):
    """Also what is due in a slot that is open, and what has been cancelled there."""
    both = []
    for at_once in (False, True):
        heap, entries = filled(*(due for due, _ in pushes), width=width)
        batch = heap.pop_due(opened_until)
        for entry, (_, is_cancelled) in zip(entries, pushes, strict=True):
            if is_cancelled and entry not in batch:
                heap.cancel(entry)
        again = [(entry, pushes[entry.name][0] + 0.5) for entry in entries if not entry.is_waiting]
        if at_once:
            heap.push_all([entry for entry, _ in again], [due for _, due in again])
        else:
            for entry, due in again:
                heap.push(entry, due)
        both.append((len(heap), [entry.name for entry in heap.pop_due(1e9)]))
    assert both[0] == both[1]

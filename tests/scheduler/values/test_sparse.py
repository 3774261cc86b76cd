"""Attributes that nearly always have their usual value cost nothing then; else they are like any other attribute."""

from hypothesis import given, strategies as st

from scheduler._values.sparse import Sparse


class Thing:
    """Something with two rare attributes and nothing else."""

    __slots__ = ("sparse",)

    count = Sparse(0)
    note = Sparse[str | None](None)

    def __init__(self):
        self.sparse = None


def test_a_rare_attribute_has_its_usual_value_and_takes_no_room_for_it():
    """Also when it has been set to that."""
    thing = Thing()
    thing.note = None
    assert (thing.count, thing.note, thing.sparse) == (0, None, None)


def test_what_is_as_usual_again_leaves_nothing_behind():
    """One look at `sparse` tells that nothing is the matter."""
    thing = Thing()
    thing.count, thing.note = 2, "late"
    assert (thing.count, thing.note) == (2, "late")
    thing.count = 0
    assert (thing.count, thing.sparse) == (0, {"note": "late"})
    thing.note = None
    assert (thing.note, thing.sparse) == (None, None)


def test_the_attribute_of_the_class_is_its_description():
    """As with any descriptor, so that tools can look at it."""
    assert isinstance(Thing.count, Sparse)


@given(st.lists(st.tuples(st.sampled_from(["count", "note"]), st.sampled_from([0, 1, None, "x"]))))
def test_rare_attributes_hold_what_was_set_last(changes):
    """Like a dict of the values that differ from the usual ones."""
    thing, model = Thing(), {"count": 0, "note": None}
    for name, value in changes:
        setattr(thing, name, value)
        model[name] = value
        assert {name: getattr(thing, name) for name in model} == model
    usual = {"count": 0, "note": None}
    assert (thing.sparse is None) == all(model[name] is usual[name] for name in model)

"""Names for callables: what a stored job may run."""

import threading

import pytest

from scheduler import InvalidJob, UnknownTask
from scheduler._jobs.tasks import Tasks
from scheduler._journal.reading import read
from scheduler.stores import StoredJob


def work():
    """Do nothing; a task like any other."""


async def other():
    """Do nothing either."""


class Robot:
    """An object whose method is a task, and which cannot be hashed."""

    __hash__ = None

    def __call__(self):
        """Work."""

    def walk(self):
        """Work too."""


def test_a_name_stands_for_a_callable_and_back():
    """A row holds the name, the scheduler wants the callable."""
    tasks = Tasks()
    tasks.register("nightly.backup", work)
    tasks.register("Other_2", other, inline=True)
    assert tasks.get("nightly.backup") is work
    assert tasks.name_of(other) == "Other_2"
    assert tasks.name_of(print) is None
    assert tasks.names() == ["Other_2", "nightly.backup"]
    assert [tasks.task(name).inline for name in tasks.names()] == [True, False]
    assert len(tasks) == 2


def test_a_method_is_found_again_although_each_look_at_it_makes_another():
    """`robot.walk is robot.walk` is false, and the methods of two robots are two."""
    tasks, robot = Tasks(), Robot()
    tasks.register("walk", robot.walk)
    tasks.register("robot", robot)
    assert tasks.name_of(robot.walk) == "walk"
    assert tasks.name_of(robot) == "robot"
    assert tasks.name_of(Robot().walk) is tasks.name_of(Robot()) is None


@pytest.mark.parametrize(
    "name",
    [
        "", " ", "os:system", "builtins:eval", "a.b:__class__", "__import__", "_private", ".hidden", "-flag", "a b",
        "work ", "work\n", "w\u043erk", "wörk", "work\u200b", "\uff37ORK", "٣", "a" * 129, "a/b", "a\0", "\ud800",
        "work()", "lambda: 0", None, 5, b"work", work,
    ],
)  # fmt: skip
def test_a_name_that_could_be_anything_else_is_refused(name):
    """No paths to import, no look-alikes (the second work has a Cyrillic letter), nothing that a blank can hide."""
    tasks = Tasks()
    with pytest.raises(InvalidJob, match="begin with a letter or a digit"):
        tasks.register(name, work)
    with pytest.raises(UnknownTask, match="there is no task"):
        tasks.get(name)
    assert len(tasks) == 0


@pytest.mark.parametrize("name", ["a", "9", "a" * 128, "A-b_c.d", "WORK"])
def test_short_plain_names_are_taken(name):
    """Upper and lower case are two names."""
    tasks = Tasks()
    tasks.register(name, work)
    assert tasks.get(name) is work
    with pytest.raises(UnknownTask):
        tasks.get(name.swapcase() if name != "9" else "8")


def test_a_long_wrong_name_is_not_shown_in_full():
    """An error may be logged."""
    with pytest.raises(UnknownTask) as caught:
        Tasks().get("x" * 100_000)
    assert len(str(caught.value)) < 1_000


def test_an_unknown_name_is_answered_with_a_similar_one():
    """A typing error in a table of jobs, or a registration that was forgotten."""
    tasks = Tasks()
    with pytest.raises(UnknownTask, match="register it before"):
        tasks.get("backup")
    tasks.register("backup", work)
    with pytest.raises(UnknownTask, match="did you mean 'backup'"):
        tasks.get("bakcup")


def test_only_what_can_be_called_is_registered():
    """Found at once and not in the night."""
    with pytest.raises(InvalidJob, match="can be called"):
        Tasks().register("work", "os.system")


def test_a_name_is_given_to_another_callable_only_on_demand():
    """Two parts of a program that took one name by accident would run each other's work."""
    tasks = Tasks()
    tasks.register("work", work)
    tasks.register("work", work)
    for changed in ({"func": other}, {"func": work, "inline": True}):
        with pytest.raises(InvalidJob, match="replace=True"):
            tasks.register("work", **changed)
    assert tasks.get("work") is work
    tasks.register("work", other, replace=True)
    assert tasks.get("work") is other
    assert tasks.name_of(work) is None
    assert tasks.name_of(other) == "work"


def test_a_callable_may_have_several_names():
    """When a task is renamed the rows of the old name go on. New rows have the first name that is still its own."""
    tasks = Tasks()
    tasks.register("old", work)
    tasks.register("new", work)
    assert tasks.get("old") is tasks.get("new") is work
    assert tasks.name_of(work) == "old"
    tasks.register("old", other, replace=True)
    assert tasks.name_of(work) == "new"


def test_of_threads_that_register_one_name_one_wins():
    """The others are told."""
    tasks, refused = Tasks(), []
    start = threading.Barrier(8)

    def register():
        start.wait()
        for number in range(100):
            try:
                tasks.register(f"task-{number}", lambda: None)
            except InvalidJob:
                refused.append(number)

    threads = [threading.Thread(target=register) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tasks) == 100
    assert len(refused) == 700
    assert all(tasks.name_of(tasks.get(name)) == name for name in tasks.names())


def test_a_row_that_names_a_generator_function_has_an_error_and_raises_none():
    """Its job is parked; the other rows are read on."""

    def yields():
        yield

    tasks = Tasks()
    tasks.register("odd", yields)
    tasks.register("good", work)
    assert "generator function" in read(StoredJob("a", "odd", "@every 1m"), tasks).error
    assert read(StoredJob("b", "good", "@every 1m"), tasks).error is None

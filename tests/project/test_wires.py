"""No part sets an attribute of another to say whom it is to call: who is made is given that, or has a verb for it."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
EXCUSED = {
    "begins": "a pool and its workers are one thing in two files",
    "cancelling": "of a worker, which its pool makes",
    "hint": "the data of a MemoryStore outlive its agents, and belong to whoever has opened them last",
    "is_idle": "the clock of a simulation is made before the scheduler of which it asks that",
    "is_ending": "as is_idle",
    "below": "the status of a target is told its rules anew whenever the file changes",
    "holds": "as below",
    "acts": "as below",
    "marks": "as below; those of a batch are rows",
    "cause": "of a run an enum",
    "done": "of a batch a list",
    "options": "of a draft the keys of its table",
    "plan": "of a group and of a probe a value",
}


def callables(trees):
    """Name all attributes that are declared to be called, and the aliases by which that is said."""
    aliases = {
        target.id
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.Assign) and is_callable(node.value, ())
        for target in node.targets
    }
    return {
        node.target.attr if isinstance(node.target, ast.Attribute) else node.target.id
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign) and is_callable(node.annotation, aliases)
    }


def is_callable(annotation, aliases):
    """Tell whether an annotation says Callable, perhaps None, or a name for that."""
    match annotation:
        case ast.BinOp():
            return is_callable(annotation.left, aliases) or is_callable(annotation.right, aliases)
        case ast.Subscript():
            return ast.unparse(annotation.value) == "Callable"
        case ast.Name():
            return annotation.id in aliases
    return False


def wires(tree, called):
    """Name each attribute of somebody else that is set to what is to be called."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or not may_be_called(node.value):
            continue
        for target in (each for one in node.targets for each in ast.walk(one)):
            if not isinstance(target, ast.Attribute) or not isinstance(target.ctx, ast.Store):
                continue
            is_ours = isinstance(target.value, ast.Name) and target.value.id in {"self", "cls"}
            if not is_ours and (target.attr.startswith("on_") or target.attr in called):
                yield target.attr


def may_be_called(value):
    """Tell whether a value may be a function: what a call returns is none, but for a partial one, and no sum is."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id == "partial"
    return not isinstance(value, (ast.Constant, ast.BinOp))


@pytest.fixture(scope="module")
def trees():
    """Read every module of ours, by its path. Only here: each process that runs tests imports all of them."""
    return {
        file.relative_to(SOURCE).as_posix(): ast.parse(file.read_text("utf-8")) for file in sorted(SOURCE.rglob("*.py"))
    }


@pytest.fixture(scope="module")
def called(trees):
    return callables(trees.values())


@pytest.mark.parametrize(
    "line",
    ["shards.on_news = polling.hint", "self.lease.on_burial = self.buried", "a.begins, a.now = tell, partial(b, c)"],
)
def test_a_wire_is_seen(line, called):
    """However it is written."""
    assert list(wires(ast.parse(line), called))


@pytest.mark.parametrize(
    "line", ["self.on_news = hint", "target.url = url", "event.on_call = None", "a.now = b.c()", "a.now = 1 + 1"]
)
def test_what_is_no_wire_is_not(line, called):
    """Who is made keeps what it was given, and values are no wires."""
    assert not list(wires(ast.parse(line), called))


def test_no_part_sets_whom_another_calls(trees, called):
    """What is excused is excused by name, with the reason, and is still there."""
    found = {(file, wire) for file, tree in trees.items() for wire in wires(tree, called)}
    assert {wire for _, wire in found} == EXCUSED.keys(), sorted(found)

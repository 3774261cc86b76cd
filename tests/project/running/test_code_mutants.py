"""Mutants of the code, by which tests are judged: each is another program, and a seed draws the same ones each time."""

import ast

import pytest

import code_mutants
from code_mutants import ROOT, mutations


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("a < b", ["(a <= b)"]),
        ("a is None and b", ["(a is None or b)", "(a is not None)"]),
        ("not a", ["(a)"]),
        ("a + 1", ["(a - 1)", "(2)"]),
        ("a + 'text'", []),
        ("a += b", ["a -= b"]),
        ("return a", ["return None"]),
        ("return True", ["False"]),
        ("a()", ["pass"]),
        ("logger.warning(a)", []),
        ("raise ValueError(f'{a + b}')", []),
    ],
)
def test_what_a_person_could_have_written_by_mistake(code, found):
    """Texts and logs are left alone: few tests read them, and few users depend on them."""
    assert [instead for _, instead in mutations(ast.parse(f"def f():\n    {code}"))] == found


def test_each_mutant_is_a_program():
    """One that cannot be read would be caught by whatever runs first, and prove nothing."""
    for mutant in code_mutants.sample(ROOT, 80, seed=1):
        source = (ROOT / mutant.file).read_bytes()
        assert source[mutant.start : mutant.end].decode() == mutant.text
        ast.parse(source[: mutant.start] + mutant.instead.encode() + source[mutant.end :])


def test_a_seed_draws_the_same_mutants_each_time():
    """So that two versions of the tests are compared by the same defects."""
    drawn = code_mutants.sample(ROOT, 80, seed=1)
    assert drawn == code_mutants.sample(ROOT, 80, seed=1) != code_mutants.sample(ROOT, 80, seed=2)
    assert {code_mutants.part_of(mutant.file) for mutant in drawn} == {"stores", "limits", "turn", "outbox"}


def test_each_mutated_file_has_tests():
    """A mutant without tests would pass for one that nobody catches."""
    named = {name for file in code_mutants.files(ROOT) for name in code_mutants.tests_of(file).split()}
    assert [name for name in named if not [*(ROOT / "tests").rglob(name)]] == []

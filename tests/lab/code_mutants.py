"""How many small defects the tests catch: in the stores, the limits, the turn of the loop and the outbox.

A sample of mutants is drawn by lot. Each is planted in a copy of the checkout, and the fast tests of its module run.

    .venv-X.Y/bin/python tests/lab/code_mutants.py --sample 300 --seed 1

It prints each mutant that no test has caught, and the counts of each part. `--tests all` has the slow tests and the
second backend run as well, and `--source` takes another checkout.
"""

import argparse
import ast
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 1_800.0
"""Seconds after which a mutant counts as caught: it hangs. pytest gives up on a single test long before."""

STORES = "src/scheduler/stores"
TESTS = {
    "src/timerqueue/_limit": "test_limits.py test_pool.py test_held_work.py test_limits_of_jobs.py",
    "src/scheduler/_loop/turn": "scheduler/loop/test_*.py scheduler/starts/test_*.py scheduler/runs/**/test_*.py",
    "src/uptime_agent/notify/outbox": "test_agent_outbox*.py test_agent_digests.py",
    f"{STORES}/_sqlite": "test_conformance.py test_sqlite_*.py",
    f"{STORES}/sqlite": "test_conformance.py test_sqlite_*.py",
    f"{STORES}/_memory": "test_execution_conformance.py test_conformance.py test_nothing_stays_taken.py",
    f"{STORES}/memory": "test_conformance.py test_memory_store.py",
    f"{STORES}/_shards": "scheduler/fleet/shards/test_*.py scheduler/fleet/lease/test_*.py test_labels_of_shards.py",
    f"{STORES}/_units": "scheduler/fleet/lending/test_*.py test_units_of_agents.py",
    f"{STORES}/_postgres/visits": "test_audit_from_outside.py test_watchdog_on_servers.py",
    f"{STORES}/_visit": "test_audit_from_outside.py",
    f"{STORES}/_postgres/voting": "test_voting.py",
    STORES: "test_conformance.py test_execution_conformance.py test_postgres_*.py test_connections.py test_sharing.py "
    "test_requests.py test_agents_that_share.py test_verbs_elsewhere.py",
}
"""The files of tests of each module, quickest first. The first line that a file begins with counts."""

OTHER = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult,
}  # fmt: skip
"""What each operator is mistaken for."""


class Mutant(NamedTuple):
    """A defect: what stands from one byte of a file to another, and what is written there instead."""

    file: str
    line: int
    start: int
    end: int
    text: str
    instead: str

    def __str__(self):
        return f"{self.file}:{self.line}: {' '.join(self.text.split())}  ->  {self.instead}"


def files(root):
    """Return the files that are mutated, from the root on."""
    found = (file.relative_to(root).as_posix() for file in sorted((root / "src").rglob("*.py")))
    return [name for name in found if tests_of(name) and not name.endswith("__init__.py")]


def tests_of(name):
    """Return which tests are about a file, or nothing."""
    return next((tests for prefix, tests in TESTS.items() if name.startswith(prefix)), "")


def mutants_of(root, name):
    """Yield every mutant of a file."""
    source = (root / name).read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node, instead in mutations(ast.parse(source)):
        start, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        yield Mutant(name, node.lineno, start, end, source[start:end].decode(), instead)


def mutations(tree):
    """Yield (node, text to write in its place). What only people or type checkers read is left alone."""
    for node in within_functions(tree):
        instead = another_operator(node) or another_value(node)
        if instead:
            yield node, instead


def another_operator(node):
    """Return the expression with the operator that it could be mistaken for, or nothing."""
    match node:
        case ast.Compare(left, [op], [right]) if type(op) in OTHER:
            return f"({ast.unparse(ast.Compare(left, [OTHER[type(op)]()], [right]))})"
        case ast.BoolOp(op, values):
            return f"({ast.unparse(ast.BoolOp(OTHER[type(op)](), values))})"
        case ast.UnaryOp(ast.Not(), operand):
            return f"({ast.unparse(operand)})"
        case ast.BinOp(left, op, right) if type(op) in OTHER and not is_text(left) and not is_text(right):
            return f"({ast.unparse(ast.BinOp(left, OTHER[type(op)](), right))})"
        case ast.AugAssign(target, op, value) if type(op) in OTHER:
            return ast.unparse(ast.AugAssign(target, OTHER[type(op)](), value))
    return ""


def another_value(node):
    """Return another constant, a return of nothing, or `pass` in the place of a call; or nothing."""
    match node:
        case ast.Constant(bool() as value):
            return str(not value)
        case ast.Constant(int() | float() as value):
            return f"({value + 1})"
        case ast.Return(value) if value is not None and not isinstance(value, ast.Constant):
            return "return None"
        case ast.Expr(ast.Call() | ast.Await()) if not is_told(node.value):
            return "pass"
    return ""


def within_functions(tree):
    """Yield the nodes of the bodies of functions, without annotations, defaults and texts."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in function.body:
                yield from nodes_of(statement)


def nodes_of(node):
    """Yield a node and those below it, but for texts, annotations and functions, which are found by themselves."""
    yield node
    for name, value in ast.iter_fields(node):
        below = value if isinstance(value, list) else [value]
        for each in below:
            skipped = (ast.JoinedStr, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assert)
            if isinstance(each, ast.AST) and name != "annotation" and not isinstance(each, skipped):
                yield from nodes_of(each)


def is_text(node):
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def is_told(call):
    """Tell whether a call writes a log, which few tests read."""
    return ast.unparse(call).startswith("logger.")


def sample(root, count, seed, only=""):
    """Draw so many mutants by lot, as many of each part; the same ones each time."""
    parts = defaultdict(list)
    for name in files(root):
        parts[part_of(name)] += mutants_of(root, name) if only in part_of(name) else ()
    kept = [part for part in parts.values() if part]
    return [mutant for part in kept for mutant in random.Random(seed).sample(part, min(count // len(kept), len(part)))]


def part_of(name):
    """Name the part of the code that a file belongs to."""
    return "stores" if name.startswith(STORES) else "limits" if "_limit" in name else Path(name).stem


class Copies:
    """Copies of a checkout in which mutants are planted, one for each that is tried at a time."""

    def __init__(self, source, count, folder):
        self.free = SimpleQueue()
        for number in range(count):
            copy = Path(folder, str(number))
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns(".*", "__pycache__"))
            (copy / ".venv-postgres").symlink_to(source / ".venv-postgres")
            self.free.put(copy)

    def is_caught(self, mutant, python, tier):
        """Tell whether the tests of its module fail with this mutant."""
        copy = self.free.get()
        target = copy / mutant.file
        before = target.read_bytes()
        try:
            target.write_bytes(before[: mutant.start] + mutant.instead.encode() + before[mutant.end :])
            return run_tests(copy, tests_of(mutant.file), python, tier) != 0
        finally:
            target.write_bytes(before)
            self.free.put(copy)


def run_tests(copy, tests, python, tier):
    """Run them until the first failure; return the exit status, or that of a hang."""
    paths = [path for each in tests.split() for path in sorted((copy / "tests").rglob(each))]
    command = [python, "-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider", *map(str, dict.fromkeys(paths))]
    env = os.environ | {"PYTHONPATH": str(copy / "src"), "TESTS": tier, "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        command, cwd=copy, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        return process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="a part: stores, limits, turn or outbox")
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--tests", choices=["fast", "all"], default="fast")
    parser.add_argument("--source", type=Path, default=ROOT, help="another checkout")
    options = parser.parse_args()
    drawn = sample(options.source, options.sample, options.seed, options.only)
    caught, every = Counter(), Counter()
    with (
        tempfile.TemporaryDirectory(prefix="timerqueue-mutants-") as folder,
        ThreadPoolExecutor(options.at_once) as pool,
    ):
        copies = Copies(options.source, options.at_once, folder)
        results = pool.map(lambda mutant: copies.is_caught(mutant, sys.executable, options.tests), drawn)
        for mutant, is_caught in zip(drawn, results, strict=True):
            every[part_of(mutant.file)] += 1
            caught[part_of(mutant.file)] += is_caught
            print("caught  " if is_caught else "SURVIVED", mutant, flush=True)  # noqa: T201 - speaks to a terminal
    for part in sorted(every):
        print(f"{part}: {caught[part]} of {every[part]} caught")  # noqa: T201
    print(f"all: {caught.total()} of {every.total()} caught")  # noqa: T201


if __name__ == "__main__":
    main()

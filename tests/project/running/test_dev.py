"""dev.py: what it needs, what it installs and when, and what it says when it cannot."""

import ast
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def dev():
    """Load dev.py anew, so that a test may change its names."""
    spec = importlib.util.spec_from_file_location("dev", ROOT / "dev.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def checkout(dev, tmp_path, monkeypatch):
    """Stand in for a checkout, in which making an environment and installing are only noted down."""
    (tmp_path / "pyproject.toml").write_text('[dependency-groups]\ntest = ["pytest"]\n')
    done = []

    def create(folder):
        done.append("create")
        for stale in folder.glob("*"):
            if stale.is_file():
                stale.unlink()
        python = folder / dev.BIN / dev.EXE
        python.parent.mkdir(parents=True, exist_ok=True)
        python.touch()

    monkeypatch.setattr(dev, "ROOT", tmp_path)
    monkeypatch.setattr(dev, "create", create)
    monkeypatch.setattr(dev, "pip", lambda _folder, _what, *args: done.append(args[-1]))
    return done


def wheel_of(tmp_path, *names):
    """Write a wheel with these files, all empty."""
    built = tmp_path / "timerqueue-0-py3-none-any.whl"
    with zipfile.ZipFile(built, "w") as archive:
        for name in names:
            archive.writestr(name, "")
    return built


def whole(dev):
    """List the files that a wheel must hold."""
    return [f"{package}/{file}" for package in dev.PACKAGES for file in ("__init__.py", "py.typed")]


def test_it_needs_nothing_but_python():
    """It runs before anything is installed."""
    tree = ast.parse((ROOT / "dev.py").read_text("utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in imported} <= sys.stdlib_module_names


def test_a_group_brings_what_it_includes(dev):
    """Python 3.11's own pip knows no dependency groups, so dev.py reads them."""
    assert set(dev.requirements("test")) < set(dev.requirements("dev"))


def test_an_environment_is_made_once(dev, checkout):
    """The second start of a command installs nothing."""
    for _ in range(2):
        dev.environment("test", extra="agent", group="test")
    assert checkout == ["create", "pytest"]


def test_changed_dependencies_are_installed_into_the_same_environment(dev, checkout):
    """Only pyproject.toml has changed, so what is already there can stay."""
    dev.environment("test", extra="agent", group="test")
    (dev.ROOT / "pyproject.toml").write_text('[dependency-groups]\ntest = ["pytest", "trio"]\n')
    dev.environment("test", extra="agent", group="test")
    assert checkout == ["create", "pytest", "trio"]


def test_a_copied_checkout_makes_its_environment_anew(dev, checkout, tmp_path, monkeypatch):
    """The copied environment would still import from the folder that it was copied from."""
    dev.environment("test", extra="agent", group="test")
    copy = tmp_path.with_name(tmp_path.name + "-copy")
    tmp_path.rename(copy)
    monkeypatch.setattr(dev, "ROOT", copy)
    dev.environment("test", extra="agent", group="test")
    assert checkout == ["create", "pytest", "create", "pytest"]


def test_a_failed_installation_is_tried_again(dev, checkout, monkeypatch):
    """The stamp is written after the work, so half a job leaves none."""

    def broken(*_):
        raise dev.Failed("no network")

    with monkeypatch.context() as patched:
        patched.setattr(dev, "pip", broken)
        with pytest.raises(dev.Failed):
            dev.environment("test", extra="agent", group="test")
    dev.environment("test", extra="agent", group="test")
    assert checkout == ["create", "pytest"]


def test_a_step_shows_what_it_begins_and_not_the_small_print(dev, capsys):
    """Minutes of silence look like a program that hangs."""
    output = """
Collecting a
  Downloading a-1.whl (9 MB)
  Using cached b-2.whl
WARNING: c is ignored
  Building a: started
  Building a: finished with status 'done'
Installing collected packages: a, b
Successfully installed a-1 b-2"""
    dev.run_step("a step", [sys.executable, "-c", f"print({output!r})"], dict(os.environ))
    begun = ["Downloading a-1.whl (9 MB)", "Using cached b-2.whl", "Building a", "Installing 2 packages"]
    first, *shown, last = capsys.readouterr().err.splitlines()
    assert (first, shown) == ("dev.py: a step ...", [f"dev.py:   {line}" for line in begun])
    assert last.startswith("dev.py: a step: done in ")


def test_a_step_that_fails_shows_everything(dev):
    """The line that says why is among those that nobody wanted to see before."""
    with pytest.raises(dev.Failed, match="no such package\na step failed with status 3"):
        dev.run_step("a step", [sys.executable, "-c", "print('no such package'); exit(3)"], dict(os.environ))


@pytest.fixture
def debian(dev, tmp_path, monkeypatch):
    """Stand in for a machine with an apt-get, whose calls are returned, and with all programs but PgBouncer."""
    calls = tmp_path / "calls"
    for name in {*dev.PROGRAMS} - {"pgbouncer"}:
        (tmp_path / name).touch(0o755)
    (tmp_path / "apt-get").write_text(f'#!/bin/sh\necho "$@" >> {calls}\n')
    (tmp_path / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(dev, "SYSTEM", str(tmp_path / "sbin"))
    return calls


def test_root_has_missing_programs_installed(dev, debian, monkeypatch):
    """A test that is left out for want of a server is a test that nobody runs."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    dev.provide_programs()
    assert debian.read_text().splitlines() == ["update -qq", "install -y -qq --no-install-recommends pgbouncer"]


def test_programs_that_nobody_may_install_are_named_in_one_line(dev, debian, monkeypatch, capsys):
    """With the command that installs them: without sudo their tests are left out."""
    monkeypatch.setattr(os, "geteuid", lambda: 1_000)
    dev.provide_programs()
    told = "dev.py: no pgbouncer here, so tests are left out: apt-get install pgbouncer\n"
    assert (debian.exists(), capsys.readouterr().err) == (False, told)


def test_a_failed_installation_of_programs_leaves_their_tests_out(dev, debian, monkeypatch, capsys):
    """Without a network all other tests run."""
    debian.with_name("apt-get").write_text("#!/bin/sh\necho no network; exit 100\n")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    dev.provide_programs()
    told = capsys.readouterr().err
    assert "no network" in told
    assert told.endswith("so tests are left out: apt-get install pgbouncer\n")


def test_where_all_programs_are_nothing_is_installed(dev, debian, monkeypatch, capsys):
    """Nor is anything said."""
    debian.with_name("pgbouncer").touch(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    dev.provide_programs()
    assert (debian.exists(), capsys.readouterr().err) == (False, "")


def test_each_package_that_a_test_asks_for_is_installed(dev):
    """Or that test would be left out on every fresh machine."""
    tests = [file.read_text("utf-8") for file in (ROOT / "tests").rglob("*.py") if file != Path(__file__)]
    asked = {
        name for text in tests for name in re.findall(r'(?:reason=|skip\(|return )"[^"]*apt-get install ([\w-]+)', text)
    }
    assert asked
    assert asked <= {*dev.PROGRAMS.values()}


def test_a_missing_ensurepip_is_named_with_its_remedy(dev, tmp_path, monkeypatch):
    """Debian's python3 has none until python3-venv is installed."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(dev, "install", lambda *_: False)
    with pytest.raises(dev.Failed, match="apt-get install python3-venv") as caught:
        dev.create(tmp_path / "venv")
    assert caught.value.status == 2


@pytest.mark.parametrize("args", [["tset"], ["check", "src"]])
def test_a_wrong_call_says_what_is_right(dev, capsys, args):
    """Status 2 tells a wrong call from a failed check."""
    assert dev.main(args) == 2
    assert args[0] in capsys.readouterr().err


def test_what_pythonpath_holds_does_not_come_before_ours(dev, tmp_path, monkeypatch):
    """A PYTHONPATH with `src` on it would let the tests of the wheel pass without the wheel."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    assert "PYTHONPATH" not in dev.variables(tmp_path)


def test_a_whole_wheel_passes(dev, tmp_path):
    """Three typed packages and the distribution's own folder are what a wheel may hold."""
    dev.inspect(wheel_of(tmp_path, *whole(dev), "timerqueue-0.dist-info/METADATA"))


def test_a_wheel_without_its_marker_is_refused(dev, tmp_path):
    """Users' type checkers would see nothing but Any."""
    with pytest.raises(dev.Failed, match=r"lacks schedule/py\.typed"):
        dev.inspect(wheel_of(tmp_path, *(name for name in whole(dev) if name != "schedule/py.typed")))


def test_a_wheel_with_a_fourth_package_is_refused(dev, tmp_path):
    """A stray `tests` folder at top level would land in the user's environment."""
    with pytest.raises(dev.Failed, match="not ours to install: tests"):
        dev.inspect(wheel_of(tmp_path, *whole(dev), "tests/conftest.py"))


def test_what_benchmarks_take_from_the_tests_can_be_imported_where_only_they_are_installed():
    """Ten scenarios failed in an environment that `dev.py bench` had made, for want of hypothesis."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"]
    folders = [ROOT / folder for folder in settings["pythonpath"]]
    helpers = {path.stem for folder in folders for path in folder.glob("*.py")}
    trees = [ast.parse(path.read_bytes()) for path in (ROOT / "benchmarks").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    taken = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    taken |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    names = sorted(taken & helpers)
    assert {"fleet_members", "proxy"} <= set(names)
    missing = ("hypothesis", "time_machine", "trio", "cronsim", "apscheduler", "xdist")
    code = f"import sys; sys.modules.update(dict.fromkeys({missing})); import {', '.join(names)}"
    path = os.pathsep.join([*map(str, folders), os.environ.get("PYTHONPATH", "")])
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, check=True)

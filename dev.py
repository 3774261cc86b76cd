"""Everything that one does in this repository, with nothing but Python and git on the machine.

    python3 dev.py demo  [args]   run examples/demo.py
    python3 dev.py test  [args]   run the tests that find most, on every core; args go to pytest
    python3 dev.py test --all     run every test, and try more examples of each property
    python3 dev.py check          lint, format, types, imports
    python3 dev.py wheel [args]   build the wheel and run the tests against it; args go to pytest
    python3 dev.py docs  [args]   make the pages of docs/ that are made from the code; --check says which differ
    python3 dev.py bench [args]   run the benchmarks; args go to `python -m benchmarks`
    python3 dev.py crash [args]   kill an agent 200 times and check what is left; args go to crash_loop.py
    python3 dev.py chaos [args]   trouble a fleet of agents for ten minutes; args go to tests/lab/fleet/fleet_chaos.py
    python3 dev.py outages [args] a table of what outages cost a fleet; args go to tests/lab/outages/fleet_outages.py
    python3 dev.py beside [args]  give agents 10,000 hostile inputs of each kind; args go to beside_healthy.py
    python3 dev.py soak [args]    have an agent check hostile targets for ten minutes; args go to hostile_soak.py
    python3 dev.py mutants [args] plant small defects in the code and count what tests catch; args go to code_mutants.py

Each version of Python has an environment of its own, `.venv-X.Y`, made when first needed and installed into anew
when pyproject.toml or the place of this folder has changed. Delete it at will.

What the tests need of Debian is installed by apt-get, if this is root or sudo asks for no password.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - whoever runs this with an older Python should read why it fails
    print(
        "dev.py: needs Python 3.11 or newer, and this is {}.{}.{} ({}): "
        "run it with a newer one, as in `python3.12 dev.py`".format(*sys.version_info[:3], sys.executable),
        file=sys.stderr,
    )
    sys.exit(2)

import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent
PACKAGES = ("timerqueue", "schedule", "scheduler", "uptime_agent")
EXTRAS = "agent,beanstalkd,metrics,postgres"
EXTRAS += ",regex" if sys.version_info < (3, 15) else ""  # no wheel for newer ones yet
BIN, EXE = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")
PROGRAMS = {
    "beanstalkd": "beanstalkd",
    "curl": "curl",
    "faketime": "faketime",
    "ip": "iproute2",
    "openssl": "openssl",
    "pgbouncer": "pgbouncer",
    "systemd-analyze": "systemd",
}
"""Programs that tests start, and the package of Debian that brings each."""
SYSTEM = "/usr/sbin"
"""Where Debian puts servers, which is not on every PATH."""
CHECKS = (
    ("ruff", "check", "."),
    ("ruff", "format", "--check", "."),
    ("mypy",),
    ("lint-imports", "--no-cache", "--no-logo"),
)


class Failed(Exception):
    """Ends the command: what went wrong, for the terminal, and the exit status."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


def demo(args: list[str]) -> None:
    hand_over(environment("demo", extra="agent"), [str(ROOT / "examples" / "demo.py"), *args])


def test(args: list[str]) -> None:
    provide_programs()
    folder = environment("test", extra=EXTRAS, group="test")
    os.chdir(ROOT)
    if "--all" in args:
        os.environ["TESTS"] = "all"  # tests/kit/collecting/tiers.py reads it
    named = [arg for arg in args if arg != "--all"]
    hand_over(folder, ["-m", "pytest", "--durations=10", "--durations-min=1", *named])


def check(args: list[str]) -> None:
    refuse("check", args)
    folder = environment("check", extra=EXTRAS, group="check")
    failed = [" ".join(command) for command in CHECKS if not passes(folder, command)]
    if failed:
        raise Failed("failed: " + ", ".join(failed))
    say("check: all passed")


def wheel(args: list[str]) -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"]
    helpers = os.pathsep.join(str(ROOT / folder) for folder in settings["pythonpath"])
    with tempfile.TemporaryDirectory(prefix="timerqueue-wheel-") as name:
        folder = Path(name, "venv")
        create(folder)
        pip(folder, "building the wheel", "wheel", "--no-deps", "--wheel-dir", name, str(ROOT))
        (built,) = Path(name).glob("*.whl")
        inspect(built)
        wanted = [f"{built}[{EXTRAS}]", *requirements("test")]
        pip(folder, f"installing {built.name} and the test tools", "install", *wanted)
        say(f"testing {built.name}")
        tested = subprocess.run(
            [folder / BIN / EXE, "-m", "pytest", *args],
            cwd=ROOT,
            env=variables(folder) | {"PYTHONPATH": helpers},  # for the programs that tests start
            check=False,
        )
    if tested.returncode:
        raise Failed(f"the tests fail against {built.name}", tested.returncode)


def bench(args: list[str]) -> None:
    folder = environment("bench", extra=EXTRAS, group="bench")
    os.chdir(ROOT)
    hand_over(folder, ["-m", "benchmarks", *args])


def docs(args: list[str]) -> None:
    folder = environment("test", extra=EXTRAS, group="test")
    hand_over(folder, [str(ROOT / "docs" / "make"), *args])


def program(name: str) -> Callable[[list[str]], None]:
    """Return the command that runs a program of the tests."""

    def command(args: list[str]) -> None:
        folder = environment("test", extra=EXTRAS, group="test")
        hand_over(folder, [str(ROOT / "tests" / name), *args])

    return command


COMMANDS: Mapping[str, Callable[[list[str]], None]] = {
    "demo": demo,
    "test": test,
    "check": check,
    "wheel": wheel,
    "docs": docs,
    "bench": bench,
    "crash": program("lab/crash/crash_loop.py"),
    "beside": program("lab/beside/beside_healthy.py"),
    "soak": program("lab/soak/hostile_soak.py"),
    "chaos": program("lab/fleet/fleet_chaos.py"),
    "outages": program("lab/outages/fleet_outages.py"),
    "mutants": program("lab/code_mutants.py"),
}


def provide_programs() -> None:
    """Install the programs that tests start, or say which tests are left out for want of them."""
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), SYSTEM))
    missing = [name for name in PROGRAMS if shutil.which(name, path=path) is None]
    packages = sorted({PROGRAMS[name] for name in missing})
    if missing and not install(*packages):
        say(f"no {', '.join(missing)} here, so tests are left out: apt-get install {' '.join(packages)}")


def install(*packages: str) -> bool:
    """Install packages of Debian if that is possible here; return whether it was."""
    sudo = before_root_commands()
    if sudo is None or shutil.which("apt-get") is None:
        return False
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        run_step("reading Debian's lists", [*sudo, "apt-get", "update", "-qq"], env)
        wanted = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
        run_step(f"installing {' '.join(packages)}", [*sudo, *wanted], env)
    except Failed as failure:
        say(str(failure))
        return False
    importlib.invalidate_caches()  # ensurepip may be among them
    return True


def before_root_commands() -> list[str] | None:
    """Return the words before a command for root: none, or a sudo that asks for no password; None without either."""
    if os.name != "posix" or os.geteuid() == 0:
        return []
    sudo = ["sudo", "--non-interactive"]
    if shutil.which("sudo") is None:
        return None
    allowed = subprocess.run([*sudo, "true"], check=False, stderr=subprocess.DEVNULL).returncode == 0
    return sudo if allowed else None


def environment(purpose: str, *, extra: str, group: str | None = None) -> Path:
    """Return a virtual environment in which this checkout, its extras and its dependency group are installed.

    A stamp per purpose holds what was installed from; it is written last, so that a break leaves work to be redone.
    """
    folder = ROOT / ".venv-{}.{}".format(*sys.version_info)
    here = digest(str(ROOT), sys.version, sys.base_prefix)
    if not stamped(folder / "created", here) or not (folder / BIN / EXE).exists():
        create(folder)
        stamp(folder / "created", here)
    inputs = digest((ROOT / "pyproject.toml").read_text("utf-8"), extra, str(group))
    installed = folder / f"installed-for-{purpose}"
    if not stamped(installed, inputs):
        wanted = ["--editable", f"{ROOT}[{extra}]", *(requirements(group) if group else ())]
        pip(folder, f"installing into {folder.name} for {purpose}", "install", *wanted)
        stamp(installed, inputs)
    return folder


def create(folder: Path) -> None:
    if not has_ensurepip() and not (install("python3-venv") and has_ensurepip()):
        raise Failed(
            f"{sys.executable} cannot make virtual environments, its ensurepip is missing: "
            "install it (Debian, Ubuntu: apt-get install python3-venv) and try again",
            status=2,
        )
    run_step(f"making {folder.name}", [sys.executable, "-m", "venv", "--clear", str(folder)], dict(os.environ))


def has_ensurepip() -> bool:
    return importlib.util.find_spec("ensurepip") is not None


def pip(folder: Path, what: str, *args: str) -> None:
    command, *rest = args
    options = ("--no-input", "--disable-pip-version-check", "--progress-bar", "off")
    run_step(what, [str(folder / BIN / EXE), "-m", "pip", command, *options, *rest], variables(folder))


def run_step(what: str, command: list[str], env: dict[str, str]) -> None:
    """Run the command, showing what pip begins while it begins it, and all of the output when the command fails."""
    say(f"{what} ...")
    began = time.monotonic()
    output = []
    with subprocess.Popen(
        command, env=env, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        for line in process.stdout or ():
            output.append(line)
            if begun := what_begins(line):
                say(f"  {begun}")
    if process.returncode:
        told = "".join(output).rstrip()
        raise Failed(f"{told}\n{what} failed with status {process.returncode}: {' '.join(command)}")
    say(f"{what}: done in {time.monotonic() - began:.0f} s")


def what_begins(line: str) -> str:
    """Return what pip begins at this line of its output: a package, a part of a build, or nothing that takes time."""
    words = line.strip()
    if words.endswith(": started"):
        return words.removesuffix(": started")
    if words.startswith("Installing collected packages: "):
        return f"Installing {words.count(',') + 1} packages"
    if words.startswith(("Downloading ", "Using cached ", "Processing ")):
        return words
    return ""


def requirements(group: str) -> Iterator[str]:
    """Yield the requirements of a dependency group, which the pip of Python 3.11 cannot read itself."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    for entry in groups[group]:
        if isinstance(entry, str):
            yield entry
        else:
            yield from requirements(entry["include-group"])


def inspect(built: Path) -> None:
    """Raise Failed unless the wheel holds our typed packages and no other top-level name."""
    names = zipfile.ZipFile(built).namelist()
    missing = {f"{package}/{file}" for package in PACKAGES for file in ("__init__.py", "py.typed")} - set(names)
    if missing:
        raise Failed(f"{built.name} lacks {', '.join(sorted(missing))}")
    strange = {name.split("/")[0] for name in names if ".dist-info/" not in name} - set(PACKAGES)
    if strange:
        raise Failed(f"{built.name} holds what is not ours to install: {', '.join(sorted(strange))}")


def passes(folder: Path, command: tuple[str, ...]) -> bool:
    say(" ".join(command))
    program = str(folder / BIN / command[0])
    return subprocess.run([program, *command[1:]], cwd=ROOT, env=variables(folder), check=False).returncode == 0


def hand_over(folder: Path, args: list[str]) -> NoReturn:
    """Become the environment's Python, so that signals and the exit status are its own."""
    command = [str(folder / BIN / EXE), *args]
    sys.stdout.flush()
    if os.name == "nt":
        sys.exit(subprocess.run(command, env=variables(folder), check=False).returncode)
    os.execve(command[0], command, variables(folder))  # noqa: S606 - no shell is wanted


def variables(folder: Path) -> dict[str, str]:
    """Return os.environ as inside the environment.

    Left out is what could put other packages before ours, and that no bytecode be kept: the tests start hundreds of
    processes, each of which would compile all that it imports.
    """
    left_out = {"PYTHONHOME", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE"}
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    path = os.pathsep.join((str(folder / BIN), kept.get("PATH", os.defpath)))
    return kept | {"VIRTUAL_ENV": str(folder), "PATH": path}


def refuse(command: str, args: list[str]) -> None:
    if args:
        raise Failed(f"{command} takes no arguments, got {' '.join(args)}", status=2)


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def stamped(file: Path, content: str) -> bool:
    return file.exists() and file.read_text("utf-8") == content


def stamp(file: Path, content: str) -> None:
    file.write_text(content, "utf-8")


def say(line: str) -> None:
    print(f"dev.py: {line}", file=sys.stderr, flush=True)


def main(args: list[str]) -> int:
    """Run one command and return the exit status: 0 done, 1 failed, 2 called wrongly or something is missing."""
    if not args or args[0] in {"-h", "--help", "help"}:
        print(__doc__)
        return 0 if args else 2
    command = COMMANDS.get(args[0])
    if command is None:
        say(f"no command {args[0]!r}: one of {', '.join(COMMANDS)}")
        return 2
    try:
        command(args[1:])
    except Failed as failure:
        say(str(failure))
        return failure.status
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

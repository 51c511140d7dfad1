"""What the doctor examines. Nothing but the standard library is imported before it has been seen to be there."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, entry_points, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet

OLDEST_PYTHON = (3, 11)

EXTRAS = {
    "torch": "vendor torch_cpu, diopi_torch and trace",
    "fuzz": "the fuzzer",
    "dask": "runs on many machines",
}
"""Extras whose packages are looked for, and what for."""

COMPILERS = (("C compiler", "CC", ["cc", "gcc", "clang"]), ("C++ compiler", "CXX", ["c++", "g++", "clang++"]))
"""What a compiler is called, the variable of the environment that names one, and the names that are tried else."""

DISK = 2 * 2**30
"""Bytes that baselines of all levels take, about."""

MEMORY = 2**30
"""Bytes a process with a vendor takes, about; large cases take more."""


class State(StrEnum):
    """How something was found: as it is needed, lacking what is not needed for everything, or needed and missing."""

    ok = "ok"
    note = "note"
    missing = "missing"


@final
@dataclass(frozen=True)
class Finding:
    """What was found of one thing, and what is to be done."""

    state: State
    subject: str
    told: str
    advice: str = ""


def examine(vendors: Sequence[str] = ()) -> Iterator[Finding]:
    """All findings, in an order in which each needs the ones before; of these vendors, or all that are registered."""
    yield _python()
    yield from _packages()
    yield from _compiler()
    runtime = _runtime()
    yield runtime
    if runtime.state is State.ok:
        yield from _vendors(vendors)
        yield _baseline()
    yield _disk()
    yield from _memory()


def _python() -> Finding:
    found = f"{platform.python_version()}, {sys.executable}"
    if sys.version_info < OLDEST_PYTHON:  # pragma: no cover - nothing here runs on it
        return Finding(State.missing, "Python", found, "install Python 3.11 or later")
    return Finding(State.ok, "Python", found)


def _packages() -> Iterator[Finding]:
    try:
        needed = requires("diopi") or []
        from packaging.requirements import Requirement
    except (PackageNotFoundError, ImportError) as error:
        yield Finding(State.missing, "packages", f"diopi is not installed as a whole: {error}", "pip install .")
        return
    requirements = [Requirement(one) for one in needed]
    found: list[str] = []
    for one in requirements:
        if one.marker is not None and not one.marker.evaluate({"extra": ""}):
            continue
        told, is_right = _installed(one.name, one.specifier)
        if is_right:
            found.append(f"{one.name} {told}")
        else:
            yield Finding(State.missing, one.name, f"{told}, {one.specifier} is needed", f"pip install '{one}'")
    yield Finding(State.ok, "packages", ", ".join(found))
    for extra, use in EXTRAS.items():
        own = [one for one in requirements if one.marker is not None and _is_of(one, extra) and one.name != "diopi"]
        said = [(one.name, *_installed(one.name, one.specifier)) for one in own]
        told = ", ".join(f"{name} {text}" for name, text, _ in said)
        is_right = all(right for *_, right in said)
        advice = "" if is_right else f"for {use}: pip install 'diopi[{extra}]'"
        yield Finding(State.ok if is_right else State.note, f"extra {extra}", told, advice)


def _is_of(requirement: Requirement, extra: str) -> bool:
    marker = requirement.marker
    return marker is not None and marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""})


def _installed(name: str, wanted: SpecifierSet) -> tuple[str, bool]:
    """The version of a package that is installed, and whether it is a wanted one."""
    try:
        found = version(name)
    except PackageNotFoundError:
        return "not installed", False
    return found, wanted.contains(found.partition("+")[0], prereleases=True)


def _compiler() -> Iterator[Finding]:
    use = "needed to build vendors in C or C++, and for `diopi-test export`"
    for subject, variable, usual in COMPILERS:
        names = os.environ.get(variable, "").split()[:1] or usual
        command = next((name for name in names if shutil.which(name)), None)
        if command is None:
            yield Finding(State.note, subject, f"none of {', '.join(names)}", f"{use}: install one")
            continue
        done = subprocess.run([command, "--version"], capture_output=True, text=True, check=False)
        yield Finding(State.ok, subject, f"{command}, {done.stdout.partition(chr(10))[0]}")
    if shutil.which("cmake") is None:
        yield Finding(State.note, "CMake", "not found", "used to build vendors in C or C++: pip install cmake")


def _runtime() -> Finding:
    remedy = "pip install . in the source tree, or build it there: cmake -S . -B build && cmake --build build"
    try:
        from lib_rt import library
    except (ImportError, OSError, RuntimeError) as error:
        return Finding(State.missing, "runtime library", str(error), remedy)
    return Finding(State.ok, "runtime library", str(library.path))


def _vendors(named: Sequence[str]) -> Iterator[Finding]:
    from diopi_impl.plugins import ENTRY_POINT_GROUP

    known = sorted(point.name for point in entry_points(group=ENTRY_POINT_GROUP))
    if not known and not named:
        yield Finding(State.missing, "vendors", "none is registered, not even jax_cpu", "pip install .")
    for name in named or known:
        yield _vendor(name)


def _vendor(name: str) -> Finding:
    """Whether a vendor starts, in a process of its own, as in a run."""
    from diopi_impl import VendorError
    from diopi_test.harness.isolation.executor import Executor
    from diopi_test.harness.isolation.fork_server import ForkServerError

    subject = f"vendor {name}"
    try:
        with Executor(name, 1) as executor:
            description = executor.describe()
    except (VendorError, ForkServerError, OSError) as error:
        if name == "torch_cpu" and not _is_there("torch"):
            return Finding(State.note, subject, "it needs PyTorch", "pip install 'diopi[torch]'")
        return Finding(
            State.missing, subject, " ".join(str(error).split()), "docs/running.md says what a vendor must do to start"
        )
    return Finding(
        State.ok, subject, f"{description.name} {description.version} starts, and copies 1 MiB there and back"
    )


def _is_there(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


def _baseline() -> Finding:
    from diopi_test.baseline.errors import BaselineError
    from diopi_test.baseline.level import open_level
    from diopi_test.baseline.location import folder_to_read

    folder = folder_to_read("smoke")
    try:
        level = open_level(folder)
        level.verify(level.functions)
    except (BaselineError, OSError) as error:
        return Finding(State.missing, "baseline", str(error), "diopi-test gen-data, or pip install . again")
    cases = sum(len(level.cases(function)) for function in level.functions)
    told = f"level smoke whole and of this version, {cases:,} cases of {len(level.functions)} functions, in {folder}"
    return Finding(State.ok, "baseline", told)


def _disk() -> Finding:
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute()
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(there).free
    told = f"{_gib(free)} free in {folder}"
    if free < DISK:
        advice = f"the levels full, large and models take up to {_gib(DISK)}: make room, or name a folder with --data"
        return Finding(State.note, "disk", told, advice)
    return Finding(State.ok, "disk", told)


def _memory() -> Iterator[Finding]:
    try:
        lines = Path("/proc/meminfo").read_text("utf-8").splitlines()
    except OSError:
        return  # this system does not say
    sizes = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}
    free, workers = sizes.get("MemAvailable", 0), os.cpu_count() or 1
    told = f"{_gib(free)} available, {workers} CPUs"
    if free < MEMORY * workers:
        advice = f"fewer processes than CPUs: diopi-test run -n {max(1, free // MEMORY)}"
        yield Finding(State.note, "memory", told, advice)
    else:
        yield Finding(State.ok, "memory", told)


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"

"""The checks of `diopi-test doctor`. A package is imported only after the check that it is installed.

Each function `_python` to `_memory` checks one part of the installation, and returns or yields the results.
"""

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
"""The oldest version of Python that the package supports, as in pyproject.toml."""

EXTRAS = {
    "torch": "vendor torch_cpu, diopi_torch and trace",
    "fuzz": "the fuzzer",
    "dask": "runs on many machines",
}
"""The extras that are checked, and which features need each of them."""

COMPILERS = (("C compiler", "CC", ["cc", "gcc", "clang"]), ("C++ compiler", "CXX", ["c++", "g++", "clang++"]))
"""The compilers: title, the environment variable that names the compiler, and the default commands."""

DISK = 2 * 2**30
"""The approximate size in bytes of the baselines of all levels."""

MEMORY = 2**30
"""The approximate memory in bytes of a worker; large cases need more."""


class State(StrEnum):
    """The result of a check: passed, something optional is missing, or something required is missing."""

    ok = "ok"
    note = "note"
    missing = "missing"


@final
@dataclass(frozen=True, kw_only=True)
class InstallationCheck:
    """The result of checking one part of the installation.

    Attributes:
        state: whether the part is usable.
        subject: the name of the part, as the command prints it.
        details: the version, the path or the problem.
        advice: what to do; empty if there is nothing to do.
    """

    state: State
    subject: str
    details: str
    advice: str = ""


def examine(vendors: Sequence[str] = ()) -> Iterator[InstallationCheck]:
    """Check the installation, the basic parts first, because the other checks need them.

    Args:
        vendors: the vendors to check; all registered vendors if empty.

    Yields:
        The result of each check.
    """
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


def _python() -> InstallationCheck:
    """Check that the version of Python is supported."""
    details = f"{platform.python_version()}, {sys.executable}"
    if sys.version_info < OLDEST_PYTHON:  # pragma: no cover - nothing here runs on it
        return InstallationCheck(
            state=State.missing, subject="Python", details=details, advice="install Python 3.11 or later"
        )
    return InstallationCheck(state=State.ok, subject="Python", details=details)


def _packages() -> Iterator[InstallationCheck]:
    """Check the versions of the required packages and of the packages of each optional group (extra)."""
    try:
        required = requires("diopi") or []
        from packaging.requirements import Requirement
    except (PackageNotFoundError, ImportError) as error:
        details = f"the installation of diopi is incomplete: {error}"
        yield InstallationCheck(state=State.missing, subject="packages", details=details, advice="pip install .")
        return
    requirements = [Requirement(text) for text in required]
    satisfied: list[str] = []
    for requirement in requirements:
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        installed, is_suitable = _compare_installed(requirement.name, requirement.specifier)
        if is_suitable:
            satisfied.append(f"{requirement.name} {installed}")
        else:
            yield InstallationCheck(
                state=State.missing,
                subject=requirement.name,
                details=f"{installed}, {requirement.specifier} is needed",
                advice=f"pip install '{requirement}'",
            )
    yield InstallationCheck(state=State.ok, subject="packages", details=", ".join(satisfied))
    for extra_name, use in EXTRAS.items():
        packages = [
            (requirement.name, *_compare_installed(requirement.name, requirement.specifier))
            for requirement in requirements
            if _belongs_to_extra(requirement, extra_name) and requirement.name != "diopi"
        ]
        details = ", ".join(f"{name} {installed}" for name, installed, _ in packages)
        is_complete = all(is_suitable for *_, is_suitable in packages)
        advice = "" if is_complete else f"for {use}: pip install 'diopi[{extra_name}]'"
        yield InstallationCheck(
            state=State.ok if is_complete else State.note, subject=f"extra {extra_name}", details=details, advice=advice
        )


def _belongs_to_extra(requirement: Requirement, extra_name: str) -> bool:
    """Return whether a requirement of the package is installed with this extra, and not without it."""
    marker = requirement.marker
    return marker is not None and marker.evaluate({"extra": extra_name}) and not marker.evaluate({"extra": ""})


def _compare_installed(name: str, specifier: SpecifierSet) -> tuple[str, bool]:
    """Return the installed version of a package, and whether the specifier accepts it."""
    try:
        installed = version(name)
    except PackageNotFoundError:
        return "not installed", False
    return installed, specifier.contains(installed.partition("+")[0], prereleases=True)


def _compiler() -> Iterator[InstallationCheck]:
    """Check that CMake and compilers for C and C++ are installed. A missing one is only noted: runs do not need it."""
    use = "required to build vendors in C or C++ and for `diopi-test export`"
    for subject, variable, usual in COMPILERS:
        names = os.environ.get(variable, "").split()[:1] or usual
        command = next((name for name in names if shutil.which(name)), None)
        if command is None:
            yield InstallationCheck(
                state=State.note, subject=subject, details=f"none of {', '.join(names)}", advice=f"{use}: install one"
            )
            continue
        process = subprocess.run([command, "--version"], capture_output=True, text=True, check=False)
        yield InstallationCheck(
            state=State.ok, subject=subject, details=f"{command}, {process.stdout.partition(chr(10))[0]}"
        )
    if shutil.which("cmake") is None:
        yield InstallationCheck(
            state=State.note,
            subject="CMake",
            details="not found",
            advice="builds vendors in C or C++: pip install cmake",
        )


def _runtime() -> InstallationCheck:
    """Check that the runtime library exists and can be loaded."""
    remedy = "in the source tree, pip install . or build it: cmake -S . -B build && cmake --build build"
    try:
        from lib_rt import library
    except (ImportError, OSError, RuntimeError) as error:
        return InstallationCheck(state=State.missing, subject="runtime library", details=str(error), advice=remedy)
    return InstallationCheck(state=State.ok, subject="runtime library", details=str(library.path))


def _vendors(named: Sequence[str]) -> Iterator[InstallationCheck]:
    """Check the named vendors, or else all registered vendors."""
    from diopi_impl.plugins import ENTRY_POINT_GROUP

    registered = sorted(point.name for point in entry_points(group=ENTRY_POINT_GROUP))
    if not registered and not named:
        yield InstallationCheck(
            state=State.missing,
            subject="vendors",
            details="no vendor is registered, not even jax_cpu",
            advice="pip install .",
        )
    for name in named or registered:
        yield _vendor(name)


def _vendor(name: str) -> InstallationCheck:
    """Check that a vendor starts in a separate process, as in a run."""
    from diopi_impl import VendorError
    from diopi_test.run.isolation.executor import Executor
    from diopi_test.run.isolation.fork_server import ForkServerError

    subject = f"vendor {name}"
    try:
        with Executor(name, 1) as executor:
            description = executor.describe()
    except (VendorError, ForkServerError, OSError) as error:
        if name == "torch_cpu" and not _is_installed("torch"):
            return InstallationCheck(
                state=State.note,
                subject=subject,
                details="this vendor needs PyTorch",
                advice="pip install 'diopi[torch]'",
            )
        return InstallationCheck(
            state=State.missing,
            subject=subject,
            details=" ".join(str(error).split()),
            advice="docs/running.md describes what a vendor must do to start",
        )
    return InstallationCheck(
        state=State.ok,
        subject=subject,
        details=f"{description.name} {description.version} starts and copies 1 MiB to the device and back",
    )


def _is_installed(package: str) -> bool:
    """Return whether a distribution of this name is installed."""
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


def _baseline() -> InstallationCheck:
    """Check the stored baseline of the smoke level."""
    from diopi_proto.messages import pluralize
    from diopi_test.baseline.errors import BaselineError
    from diopi_test.baseline.level import open_level
    from diopi_test.baseline.location import folder_to_read

    folder = folder_to_read("smoke")
    try:
        level = open_level(folder)
        level.verify(level.functions)
    except (BaselineError, OSError) as error:
        return InstallationCheck(
            state=State.missing,
            subject="baseline",
            details=str(error),
            advice="run diopi-test gen-data, or pip install . again",
        )
    cases = sum(len(level.cases(function)) for function in level.functions)
    size = f"{pluralize(cases, 'case')} of {pluralize(len(level.functions), 'function')}"
    details = f"level smoke is complete and of this version, {size}, in {folder}"
    return InstallationCheck(state=State.ok, subject="baseline", details=details)


def _disk() -> InstallationCheck:
    """Check that the cache folder has enough free space for the larger levels."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute()
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    details = f"{_gib(free)} free in {folder}"
    if free < DISK:
        advice = f"levels full, large and models need up to {_gib(DISK)}: free disk space, or pass a folder as --data"
        return InstallationCheck(state=State.note, subject="disk", details=details, advice=advice)
    return InstallationCheck(state=State.ok, subject="disk", details=details)


def _memory() -> Iterator[InstallationCheck]:
    """Check that the available memory suffices for one worker per CPU."""
    try:
        lines = Path("/proc/meminfo").read_text("utf-8").splitlines()
    except OSError:
        return  # this system has no /proc/meminfo
    sizes = {name: int(value.split()[0]) * 1024 for name, _, value in (line.partition(":") for line in lines)}
    free, workers = sizes.get("MemAvailable", 0), os.cpu_count() or 1
    details = f"{_gib(free)} available, {workers} CPUs"
    if free < MEMORY * workers:
        advice = f"use fewer workers than CPUs: diopi-test run -n {max(1, free // MEMORY)}"
        yield InstallationCheck(state=State.note, subject="memory", details=details, advice=advice)
    else:
        yield InstallationCheck(state=State.ok, subject="memory", details=details)


def _gib(size: int) -> str:
    """Return a number of bytes in GiB as text."""
    return f"{size / 2**30:.1f} GiB"

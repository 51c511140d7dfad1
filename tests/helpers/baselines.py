"""Generate baselines of a few functions as `diopi-test gen-data` does, but in the process of the tests.

A level is a folder with one file of cases per function and a manifest, which lists the cases.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from diopi_test.baseline.generate import generate_function
from diopi_test.baseline.manifest_writer import ManifestWriter
from diopi_test.execution.listing import list_cases

Item = TypeVar("Item")
Result = TypeVar("Result")


def make_level(folder: Path, *functions: str) -> Path:
    """Generate the baseline of `functions` in `folder`, which has the name of a level; return the folder."""
    for function in functions:
        generate_function(function, folder.name, folder)
    enter(folder, *functions)
    return folder


def map_in_this_process(work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[Item, Result]]:
    """Yield each item with the result of `work(item)`, as a `ParallelMap` does, without starting a process."""
    return ((item, work(item)) for item in items)


def enter(folder: Path, *functions: str) -> None:
    """Write the entries of the files of `functions` to the manifest of the level in `folder`."""
    manifest = ManifestWriter(folder, folder.name, list_cases)
    for function in functions:
        manifest.add_file(function)
    manifest.save()


def create_huge_file(path: Path) -> None:
    """Create a sparse file that claims 1 PiB, or 8 TiB or 1 GiB if the file system allows no more."""
    with path.open("wb") as file:
        for exponent in (50, 43, 30):  # a file system may have a limit below 1 PiB
            try:
                file.truncate(2**exponent)
            except OSError:
                continue
            return

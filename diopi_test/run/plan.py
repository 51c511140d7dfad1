"""Plan files: several runs in TOML that are performed one after another and have one summary."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from diopi_impl import IEEE, NumericsError, find_numerics
from diopi_proto.types import Dtype
from diopi_test.cases.selection import INDEPENDENT_LEVELS, LEVELS
from diopi_test.run.limits import DEFAULT_TIMEOUT
from diopi_test.run.selection import Selection
from diopi_test.waivers.rules import Waivers
from diopi_test.waivers.tables import TableError, TableKind, read_tables


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """One run of a plan; its keys correspond to options of `diopi-test run`.

    Attributes:
        name: the name of the run, for people; names are unique within a plan.
        vendor: the vendor, in the form that `diopi_impl.find_vendor` accepts.
        level: the level of the baseline.
        data: the folder of the baselines; None for the baseline in the package or in the user's cache.
        waivers: files of waivers.
        numerics: the name or the file of the declared arithmetic; None for the arithmetic that the vendor declares.
        functions, families, dtypes: the selected names; the prefix `no-` excludes a name.
        expression: a pytest keyword expression that selects cases, or None.
        timeout: the maximum number of seconds for a case.
        shuffle: the seed of the order of the cases; None for the order of the files.
        sample: the number of functions in the random sample; None for all functions.
    """

    name: str
    vendor: str
    level: str = "smoke"
    data: Path | None = None
    waivers: tuple[Path, ...] = ()
    numerics: str | None = None
    functions: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    expression: str | None = None
    timeout: float = DEFAULT_TIMEOUT
    shuffle: int | None = None
    sample: int | None = None

    @property
    def selection(self) -> Selection:
        """Return the selection and the order of the run's cases; raise SelectionError if a name is unknown."""
        return Selection(
            functions=self.functions,
            families=self.families,
            dtypes=self.dtypes,
            expression=self.expression,
            seed=self.shuffle,
            sample=self.sample,
        )


def read_plan(path: Path) -> tuple[PlannedRun, ...]:
    """Read the runs of a plan file, at least one, in order.

    Args:
        path: The plan file; paths in it are relative to its folder.

    Returns:
        The runs.

    Raises:
        TableError: The file, or a waiver file that it names, is invalid; the message lists all problems.
    """
    tables = read_tables(path, {"run": TableKind(PlannedRun, "name", _problems)})
    runs = tuple(_located(run, path.parent) for run in tables["run"])
    if problems := list(_problems_of_all(path, runs)):
        raise TableError("\n".join(problems))
    return runs


def _located(run: PlannedRun, folder: Path) -> PlannedRun:
    """Return the run with its paths relative to `folder`."""
    return replace(
        run,
        vendor=str(folder / run.vendor) if run.vendor.endswith(".so") else run.vendor,
        data=None if run.data is None else folder / run.data,
        waivers=tuple(folder / file for file in run.waivers),
        numerics=_locate_numerics(run.numerics, folder),
    )


def _locate_numerics(name: str | None, folder: Path) -> str | None:
    """Return where to find a declared arithmetic.

    Args:
        name: The name of a declaration that ships with the package, or the path of a TOML file, or None.
        folder: The folder that a path is relative to.

    Returns:
        The path, relative to `folder`, as a path that can be opened; a name, or None, unchanged.
    """
    return str(folder / name) if name is not None and name.endswith(".toml") else name


def _problems(run: PlannedRun) -> Iterator[str]:
    """Yield a message for each invalid key of a run."""
    for key in ("name", "vendor"):
        if not getattr(run, key):
            yield f"{key}: expected a name, found ''"
    if run.level not in LEVELS:
        yield f"level: expected one of {', '.join(INDEPENDENT_LEVELS)}, found {run.level!r}"
    for name in run.dtypes:
        if name.removeprefix("no-") not in Dtype.__members__:
            yield f"dtypes: expected names of element types such as float16 or no-float16, found {name!r}"
    if not 1 <= run.timeout < math.inf:
        yield f"timeout: expected at least 1 second, found {run.timeout:g}"
    if run.sample is not None and run.sample < 1:
        yield f"sample: expected at least 1 function, found {run.sample}"
    if run.sample is not None and run.shuffle is None:
        yield "sample: expected shuffle as well, which is the seed of the random sample"


def _problems_of_all(path: Path, runs: Sequence[PlannedRun]) -> Iterator[str]:
    """Yield the problems that concern several runs of a plan, and unreadable waiver files."""
    if not runs:
        yield f"{path}: expected at least one table [[run]]"
    for name, number in Counter(run.name for run in runs).items():
        if number > 1:
            yield f"{path}: {number} runs have the name {name!r}"
    for file in dict.fromkeys(file for run in runs for file in run.waivers):
        try:
            Waivers.read([file])
        except TableError as error:
            yield str(error)
    for run in runs:
        try:
            find_numerics(run.numerics or IEEE.name)
        except NumericsError as error:
            yield f"{path}: run {run.name!r}: {error}"

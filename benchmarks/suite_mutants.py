"""Mutate the code of the suite and report which mutants the project's own tests kill.

    python benchmarks/suite_mutants.py [--seed N] [--sample 60] [--jobs 2] [--chapter checks --chapter run …]

A mutant is the source tree with one change: a comparison or a condition flipped, `and` and `or` exchanged, `+` and `-`
exchanged, a constant changed, a statement removed. For each mutant, the script runs the tests of the changed module:

- the test file with the same name, and the test files of the same chapter that import the module
- without such a file, the tests of the modules that import the changed module
- without those, all tests of the chapter

A mutant is killed if a test fails or the tests take ten times as long as without it.

The sample depends on the seed and on the text and the function of each possible change, but not on line numbers,
folders or the tests. So you can compare two versions of the tests on the same mutants. The exit status is 0 whatever
survives.
"""

from __future__ import annotations

import ast
import hashlib
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]

CHAPTERS = ("checks", "oracle", "execution", "run", "results", "waivers")
"""The folders of `diopi_test` that decide verdicts; missing folders are skipped."""

REFERENCES = "diopi_test/oracle/reference/"
"""The references, which `diopi-test run --vendor torch_cpu` compares with PyTorch."""

OPPOSITES: dict[type[ast.AST], Any] = {
    **{
        ast.Eq: ast.NotEq,
        ast.NotEq: ast.Eq,
        ast.Is: ast.IsNot,
        ast.IsNot: ast.Is,
        ast.In: ast.NotIn,
        ast.NotIn: ast.In,
    },
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult},
}
"""The operator that replaces each operator."""

REMOVABLE = (ast.AugAssign, ast.Raise, ast.Delete, ast.Continue, ast.Break)
"""The statements that are removed, in addition to calls whose result is not used."""

console = Console(width=180)


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One change of a module: the bytes from `start` to `end` become `text`.

    Attributes:
        module: the path of the module.
        function: the class and function that contain the change, separated by dots.
        line: the number of the line.
        start, end: the position of the replaced bytes.
        text: the new source.
        original: the replaced source.
        occurrence: how many equal changes of the function precede this one.
    """

    module: Path
    function: str
    line: int
    start: int
    end: int
    text: str
    original: str
    occurrence: int

    def rank(self, seed: int) -> bytes:
        """Return the position of the mutant in the random order. It does not change when the code moves."""
        identity = (str(seed), self.module.stem, self.function, self.original, self.text, str(self.occurrence))
        return hashlib.sha256("\0".join(identity).encode()).digest()

    def __str__(self) -> str:
        return f"{self.original} → {self.text}"


class Changes(ast.NodeVisitor):
    """Collects the possible changes of a module.

    Attributes:
        found: the mutants, one per change.
    """

    def __init__(self, module: Path, source: bytes) -> None:
        self.found: list[Mutant] = []
        self._module = module
        self._source = source
        self._line_starts = [0, *(match.end() for match in re.finditer(b"\n", source))]
        self._names: list[str] = []
        self._occurrences: Counter[tuple[str, ...]] = Counter()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Collect the changes of the methods."""
        self._visit_body(node.name, node.body)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Collect the changes of the defaults of parameters and of the body."""
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        self._visit_body(node.name, node.body)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Collect the changes of the assigned value, but not of the annotation."""
        if node.value is not None:
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Ignore the texts of messages."""

    def visit_Compare(self, node: ast.Compare) -> None:
        """Replace the first operator of a comparison."""
        if type(node.ops[0]) in OPPOSITES:
            operator = OPPOSITES[type(node.ops[0])]()
            self._add(node, ast.Compare(node.left, [operator, *node.ops[1:]], node.comparators))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Exchange `and` and `or`."""
        self._add(node, ast.BoolOp(OPPOSITES[type(node.op)](), node.values))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Replace an arithmetic operator."""
        if type(node.op) in OPPOSITES:
            self._add(node, ast.BinOp(node.left, OPPOSITES[type(node.op)](), node.right))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Remove a `not`."""
        if isinstance(node.op, ast.Not):
            self._add(node, node.operand)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        """Negate the condition."""
        if ast.unparse(node.test) != "TYPE_CHECKING":
            self._add(node.test, ast.UnaryOp(ast.Not(), node.test))
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Change a truth value or a number."""
        if isinstance(node.value, bool):
            self._add(node, ast.Constant(not node.value))
        elif isinstance(node.value, int | float):
            self._add(node, ast.Constant(node.value + 1 if 1 <= abs(node.value) < 1000 else 2 * node.value or 1))

    def generic_visit(self, node: ast.AST) -> None:
        """Remove a statement if it is removable, and visit its parts."""
        if isinstance(node, REMOVABLE) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
            self._add(node, ast.Pass())
        super().generic_visit(node)

    def _visit_body(self, name: str, body: list[ast.stmt]) -> None:
        """Visit the body of a class or function, whose name is part of the names of mutants in it."""
        self._names.append(name)
        for statement in body:
            self.visit(statement)
        self._names.pop()

    def _add(self, node: ast.expr | ast.stmt, changed: ast.AST) -> None:
        """Add the mutant that replaces a node by a changed one."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        text = ast.unparse(ast.fix_missing_locations(changed))
        original = ast.unparse(node)
        change = (*self._names, original, text)
        self._occurrences[change] += 1
        mutant = Mutant(
            module=self._module,
            function=".".join(self._names),
            line=node.lineno,
            start=self._line_starts[node.lineno - 1] + node.col_offset,
            end=self._line_starts[node.end_lineno - 1] + node.end_col_offset,
            text=text if isinstance(changed, ast.stmt) else f"({text})",
            original=original,
            occurrence=self._occurrences[change],
        )
        self.found.append(mutant)


def modules(chapters: tuple[str, ...]) -> Iterator[Path]:
    """Yield the modules of the chapters, relative to the root."""
    for chapter in chapters:
        for path in sorted((ROOT / "diopi_test" / chapter).rglob("*.py")):
            if not str(path.relative_to(ROOT)).startswith(REFERENCES):
                yield path.relative_to(ROOT)


def draw_mutants(chapters: tuple[str, ...], seed: int, size: int) -> list[Mutant]:
    """Return a random sample of `size` mutants of the packages `chapters`, sorted by module."""
    mutants = []
    for module in modules(chapters):
        source = (ROOT / module).read_bytes()
        changes = Changes(module, source)
        changes.visit(ast.parse(source))
        mutants += changes.found
    sample = sorted(mutants, key=lambda mutant: mutant.rank(seed))[:size]
    console.print(f"seed {seed}: {len(sample)} of {len(mutants)} mutants")
    return sorted(sample, key=lambda mutant: (mutant.module, mutant.start))


def imports(module: Path) -> re.Pattern[str]:
    """Return a pattern that finds the import of a module."""
    name = r"\.".join(module.with_suffix("").parts).removesuffix(r"\.__init__")
    package, stem = name.rsplit(r"\.", 1)
    return re.compile(rf"^\s*(from {name} import|import {name}\b|from {package} import .*\b{stem}\b)", re.MULTILINE)


def direct_tests_of(module: Path) -> set[Path]:
    """Return the test files of a module: those with its name or the name of its package, and those that import it."""
    folder = ROOT / "tests" / module.parent
    chapter = ROOT / "tests" / Path(*module.parts[:2])
    named = {folder / f"test_{module.stem}.py", folder.parent / f"test_{module.parent.name}.py"}
    pattern = imports(module)
    importing = {path for path in chapter.rglob("test_*.py") if pattern.search(path.read_text("utf-8"))}
    return {path for path in named if path.exists()} | importing


def tests_of(module: Path) -> tuple[str, ...]:
    """Return the test files for a mutant of a module, the one with its name first."""
    tests = direct_tests_of(module)
    if not tests:
        pattern = imports(module)
        importing = [path for path in modules(CHAPTERS) if pattern.search((ROOT / path).read_text("utf-8"))]
        tests = {test for path in importing for test in direct_tests_of(path)}
    if not tests:
        tests = set((ROOT / "tests" / Path(*module.parts[:2])).rglob("test_*.py"))
    ordered = sorted(tests, key=lambda path: (path.stem != f"test_{module.stem}", path))
    return tuple(str(path.relative_to(ROOT)) for path in ordered)


def copy_tree(target: Path) -> Path:
    """Copy what the tests read to the folder `target`, which is returned; link the baseline and the build folder."""
    ignored = shutil.ignore_patterns(".git", "build", "baseline_data", "__pycache__", ".*_cache")
    shutil.copytree(ROOT, target, ignore=ignored, symlinks=True)
    for name in ("baseline_data", "build"):
        (target / name).symlink_to(ROOT / name)
    return target


def run_tests(tree: Path, tests: tuple[str, ...], limit: float) -> tuple[bool, str]:
    """Run tests in a tree; return whether all of them passed within the limit, and the output's last lines."""
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        *tests,
    ]
    with subprocess.Popen(
        command,
        cwd=tree,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return False, "timeout"
    return process.returncode == 0, "\n".join(output.splitlines()[-15:])


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of running the tests of a mutant's module.

    Attributes:
        mutant: the mutant.
        tests: the paths of the tests.
        is_killed: whether a test failed.
    """

    mutant: Mutant
    tests: tuple[str, ...]
    is_killed: bool


class Examination:
    """Trees in which mutants are tried one after the other."""

    def __init__(self, trees: list[Path], limits: dict[tuple[str, ...], float]) -> None:
        self._trees: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for tree in trees:
            self._trees.put(tree)
        self._limits = limits

    def examine(self, mutant: Mutant) -> Outcome:
        """Return the outcome of a mutant: apply it to a tree, run the tests, and restore the tree."""
        tests = tests_of(mutant.module)
        tree = self._trees.get()
        path = tree / mutant.module
        source = path.read_bytes()
        try:
            path.write_bytes(source[: mutant.start] + mutant.text.encode() + source[mutant.end :])
            passed = not tests or run_tests(tree, tests, self._limits[tests])[0]
        finally:
            path.write_bytes(source)
            self._trees.put(tree)
        console.print(f"{'survived' if passed else 'killed':8} {mutant.module}:{mutant.line} {mutant}", markup=False)
        return Outcome(mutant=mutant, tests=tests, is_killed=not passed)


def measure_limits(tree: Path, mutants: list[Mutant]) -> dict[tuple[str, ...], float]:
    """Run the tests without a mutant; return, by test files, the seconds after which a mutant counts as killed."""
    limits: dict[tuple[str, ...], float] = {}
    for mutant in mutants:
        tests = tests_of(mutant.module)
        if tests and tests not in limits:
            start = time.monotonic()
            passed, output = run_tests(tree, tests, 1800)
            if not passed:
                raise click.ClickException(f"the tests of {mutant.module} fail without a mutant:\n{output}")
            limits[tests] = 10 * (time.monotonic() - start) + 10
    return limits


def report(outcomes: list[Outcome], seed: int) -> None:
    """Print the survivors, and the share of killed mutants per chapter."""
    survivors = [outcome for outcome in outcomes if not outcome.is_killed]
    if survivors:
        table = Table("survivor", "change", "tests", title="Survivors")
        for outcome in survivors:
            mutant = outcome.mutant
            place = f"{mutant.module}:{mutant.line} {mutant.function}"
            table.add_row(place, str(mutant), ", ".join(outcome.tests) or "none")
        console.print(table, markup=False)
    for chapter in sorted({outcome.mutant.module.parts[1] for outcome in outcomes}):
        killed = [outcome.is_killed for outcome in outcomes if outcome.mutant.module.parts[1] == chapter]
        console.print(f"{chapter}: {sum(killed)} of {len(killed)} killed")
    killed_count = len(outcomes) - len(survivors)
    console.print(f"seed {seed}: {killed_count} of {len(outcomes)} mutants killed ({killed_count / len(outcomes):.0%})")


@click.command(help=__doc__)
@click.option("--seed", type=int, default=None, help="draws the sample; a random seed by default")
@click.option("--sample", "size", type=int, default=60, show_default=True)
@click.option("--jobs", type=int, default=2, show_default=True)
@click.option("--chapter", "chapters", multiple=True, type=click.Choice(CHAPTERS), help="a folder of diopi_test")
def main(seed: int | None, size: int, jobs: int, chapters: tuple[str, ...]) -> None:
    """Draw mutants, run their tests in `jobs` copies of the source tree, and print the result."""
    seed = random.randrange(10**6) if seed is None else seed
    mutants = draw_mutants(chapters or CHAPTERS, seed, size)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        trees = [copy_tree(Path(folder) / str(number)) for number in range(jobs)]
        examination = Examination(trees, measure_limits(trees[0], mutants))
        report(list(pool.map(examination.examine, mutants)), seed)


if __name__ == "__main__":
    main()

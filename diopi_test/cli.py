"""The command line `diopi-test`: run, gen-data, audit, fingerprint, export, list."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from diopi_impl import BaseVendor, VendorError, find_vendor
from diopi_test.cases import LEVELS

if TYPE_CHECKING:
    from diopi_test.audit import FunctionAudit

console = Console()

T = TypeVar("T")

_COLUMNS = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())


class Unusable(click.ClickException):
    """The baseline can't be used, or there is nothing to run."""

    exit_code = 3


def default_data() -> Path:
    """The folder of the installed baseline."""
    return Path(str(files("baseline_data")))


def default_workers() -> int:
    """One process a CPU this process may use."""
    import os

    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


level_option = click.option(
    "--level", type=click.Choice(LEVELS), default="smoke", show_default=True, help="Which baseline."
)
data_option = click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the baseline, instead of the one that ships.",
)
select_option = click.option(
    "-k", "expression", metavar="EXPR", help="Only what matches this pytest keyword expression."
)
workers_option = click.option("-n", "workers", type=click.IntRange(min=1), help="Processes; by default one a CPU.")


@click.group()
@click.version_option(package_name="diopi")
def main() -> None:
    """DIOPI conformance: check a vendor's operators against the standard."""


@main.command()
@click.option("--vendor", default="jax_cpu", show_default=True, help="Name, module:attribute, or path of a .so.")
@level_option
@data_option
@select_option
@workers_option
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Write the report to this file."
)
@click.option(
    "--timeout", type=click.FloatRange(min=1), default=120, show_default=True, help="Seconds a case may take."
)
def run(
    vendor: str,
    level: str,
    data: Path | None,
    expression: str | None,
    workers: int | None,
    json_file: Path | None,
    timeout: float,
) -> None:
    """Run the suite on a vendor.

    Exit status: 0 all executed cases passed, 1 some did not, 2 usage, 3 nothing was executed or the baseline is
    unusable.
    """
    from diopi_test import runner
    from diopi_test.claims import compare_claims
    from diopi_test.report import Report

    found = _vendor(vendor)
    _check_folder(json_file)
    paths, digest = _open_baseline(data or default_data(), level)
    command = ["diopi-test", "run", "--vendor", vendor, "--level", level, *(["--data", str(data)] if data else [])]
    report = Report({"name": found.name, "version": found.version}, level, digest, command)
    runner.run(runner.RunOptions(vendor, paths, expression, workers or default_workers(), timeout), report, console)
    report.claims = compare_claims(found.claims, report.cases, paths)
    report.show(console)
    if json_file is not None:
        report.write(json_file)
    sys.exit(report.exit_status)


def _vendor(name: str) -> BaseVendor:
    """The vendor called `name`; a usage error if there is none."""
    try:
        return find_vendor(name)
    except VendorError as error:
        raise click.UsageError(str(error)) from error


def _check_folder(json_file: Path | None) -> None:
    """A usage error, before any work is done, if the file could not be written at its end."""
    if json_file is not None and not json_file.absolute().parent.is_dir():
        raise click.UsageError(f"--json: folder {json_file.absolute().parent} does not exist")


def _open_baseline(data: Path, level: str) -> tuple[list[Path], str]:
    """The verified files of a level, and the digest of them all."""
    import hashlib

    from diopi_test.store import SUFFIX, BaselineError, BaselineFile

    folder = data / level
    paths = sorted(folder.glob(f"*{SUFFIX}"))
    if not paths:
        raise Unusable(f"there is no baseline in {folder}; make one with: diopi-test gen-data --level {level}")
    digest = hashlib.sha256()
    for path in paths:
        try:
            baseline = BaselineFile(path)
            baseline.verify()
        except BaselineError as error:
            raise Unusable(str(error)) from error
        digest.update(baseline.digest.encode())
    return paths, digest.hexdigest()


@main.command("gen-data")
@level_option
@data_option
@select_option
@workers_option
def gen_data(level: str, data: Path | None, expression: str | None, workers: int | None) -> None:
    """Make the baseline: data, expected results and error budgets of every case.

    Afterwards list the weak cases: those whose expected results could not tell right from wrong.
    """
    from diopi_test import distrust, generate
    from diopi_test.store import BaselineError

    functions = _select(generate.functions_with_cases(level), expression)
    folder, processes = (data or default_data()) / level, workers or default_workers()
    with Progress(*_COLUMNS, console=console) as progress:

        def advance(task: TaskID) -> Callable[[str, object], None]:
            return lambda function, _: progress.update(task, advance=1, description=function)

        making, doubting = (progress.add_task(text, total=len(functions)) for text in ("making", "doubting"))
        try:
            made = generate.generate(functions, level, folder, processes, advance(making))
            weak = distrust.find_weak_cases(functions, level, folder, processes, advance(doubting))
        except (BaselineError, OSError) as error:
            raise click.ClickException(str(error)) from error
    console.print(f"{made} cases made, {len(functions)} functions are up to date in {folder}")
    for finding in weak:
        console.print(f"weak: {finding}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"{len({finding.case for finding in weak})} weak cases")


def _select(functions: list[str], expression: str | None) -> list[str]:
    """The functions whose name matches a keyword expression as pytest's -k understands it."""
    from _pytest.mark.expression import Expression

    if expression is None:
        return functions
    try:
        matches = Expression.compile(expression)
    except SyntaxError as error:
        raise click.UsageError(f"-k {expression!r}: {error}") from error

    def is_chosen(name: str) -> bool:
        return matches.evaluate(lambda word, /, **_: word.lower() in name.lower())

    chosen = [name for name in functions if is_chosen(name)]
    if not chosen:
        raise click.UsageError(f"-k {expression!r} matches none of the {len(functions)} functions with cases")
    return chosen


@main.command()
@select_option
@workers_option
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Write the matrix to this file."
)
@click.option("--markdown", type=click.Path(path_type=Path, dir_okay=False), help="Write it as a page to this file.")
@click.option(
    "--choose",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write which cases the smoke level needs to catch as much to this file.",
)
def audit(
    expression: str | None, workers: int | None, json_file: Path | None, markdown: Path | None, choose: Path | None
) -> None:
    """Put faults into a correct vendor and show which ones the cases catch.

    Exit status 0 only if every fault that makes a difference is caught. The last line is the count.
    """
    from diopi_test import generate
    from diopi_test.audit import audit_function
    from diopi_test.audit.page import page
    from diopi_test.audit.report import show, to_json

    functions = _select(generate.functions_with_cases("full"), expression)
    ordered = list(_with_progress("auditing", audit_function, functions, workers or default_workers()).values())
    if json_file is not None:
        json_file.write_text(json.dumps(to_json(ordered), indent=1))
    if markdown is not None:
        markdown.write_text(page(ordered), "utf-8")
    if choose is not None:
        _write_telling(ordered, choose)
    show(ordered, console)
    sys.exit(1 if any(one.survivors for one in ordered) else 0)


def _write_telling(audits: Sequence[FunctionAudit], file: Path) -> None:
    """Write the telling cases of these functions; those of others stay as they are."""
    from diopi_test.cases import telling
    from diopi_test.generate import functions_with_cases

    chosen = {**telling(), **{one.function: one.telling for one in audits}}
    labels = {name: chosen[name] for name in functions_with_cases("full") if chosen.get(name)}
    file.write_text(json.dumps(labels, indent=1) + "\n", "utf-8")


def _with_progress(text: str, work: Callable[[str], T], functions: list[str], workers: int) -> dict[str, T]:
    """What `work` gives for each function, in their order, with a bar to watch."""
    from diopi_test.parallel import in_processes

    results = {}
    with Progress(*_COLUMNS, console=console) as progress:
        task = progress.add_task(text, total=len(functions))
        for name, result in in_processes(work, functions, workers):
            results[name] = result
            progress.update(task, advance=1, description=name)
    return {name: results[name] for name in functions}


@main.command()
@click.option("--vendor", default="jax_cpu", show_default=True, help="Name, module:attribute, or path of a .so.")
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Write the fingerprint to this file."
)
def fingerprint(vendor: str, json_file: Path | None) -> None:
    """Show what a vendor's arithmetic is like, found by probing its operators.

    Order and width of sums, subnormal numbers, conversions, multiply-add, NaN, errors of elementary functions.
    """
    from diopi_test.fingerprint import Fingerprint
    from diopi_test.fingerprint.report import show
    from diopi_test.fingerprint.table import FAMILIES

    found = _vendor(vendor)
    _check_folder(json_file)
    with Progress(*_COLUMNS, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("probing", total=sum(map(len, FAMILIES.values())))
        taken = Fingerprint.of(found, progress=lambda function: progress.update(task, advance=1, description=function))
    show(taken, console)
    if json_file is not None:
        json_file.write_text(json.dumps(taken.to_json(), indent=1, ensure_ascii=False), "utf-8")


@main.command()
@click.option("--vendor", default="jax_cpu", show_default=True, help="Name or module:attribute of a Python vendor.")
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder of the library.")
def export(vendor: str, out: Path) -> None:
    """Build a libdiopi_impl.so whose functions call a Python vendor."""
    from diopi_impl.export import ExportError
    from diopi_impl.export import export as build

    try:
        click.echo(build(vendor, out))
    except VendorError as error:
        raise click.UsageError(str(error)) from error
    except (ExportError, OSError) as error:
        raise click.ClickException(str(error)) from error


@main.command("list")
@click.option("--json", "as_json", is_flag=True, help="As a JSON array.")
def list_functions(as_json: bool) -> None:
    """List every standard function: header, family, reference, cases, vendors."""
    from diopi_test.inventory import inventory

    rows = inventory()
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    table = Table("function", "header", "family", "reference", *LEVELS, "vendors")
    for row in rows:
        vendors = ", ".join(name for name, has in row["vendors"].items() if has)
        table.add_row(
            row["function"],
            row["header"],
            row["family"],
            "yes" if row["reference"] else "no",
            *(str(row["cases"][level]) for level in LEVELS),
            vendors,
        )
    console.print(table)


if __name__ == "__main__":
    main()

"""`diopi-test show`: show the call, the expected results and the checks of a case, without a vendor."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from diopi_proto.messages import pluralize
from diopi_test.cli.console import UnusableError, console
from diopi_test.cli.numerics import numerics_option
from diopi_test.cli.options import data_option, level_option

if TYPE_CHECKING:
    from diopi_proto.types import Error
    from diopi_test.execution.verdict import Outcome
    from diopi_test.run.lookup import LoadedCase
    from lib_rt import Context

REJECTION_CHECK = "An error code was returned, and the last error contains the reason."
"""The description of the check of a negative test that the call was rejected."""


@click.command()
@click.argument("words", metavar="CASE")
@level_option
@data_option
@numerics_option
@click.option("--full", is_flag=True, help="Show all elements of all arrays.")
def show(words: str, level: str, data: Path | None, numerics: str | None, full: bool) -> None:
    """Show the call, expected results and checks of a case.

    CASE is an ID, for example diopiAdd[float32-row], or any unique part of an ID.

    Exit status: 0 the case is shown; 2 CASE matches no case or several cases; 3 the baseline can't be used.
    """
    from diopi_test.baseline.descriptions import generation_command
    from diopi_test.baseline.location import folder_to_read
    from diopi_test.baseline.store import SUFFIX, BaselineError
    from diopi_test.run.call_text import case_text
    from diopi_test.run.lookup import CaseLookupError

    folder = data / level if data else folder_to_read(level)
    try:
        _compute(folder, words)
    except BaselineError as error:
        raise UnusableError(str(error)) from error
    paths = sorted(folder.glob(f"*{SUFFIX}"))
    if not paths:
        command = f"diopi-test {generation_command(folder.parent, level)}"
        raise UnusableError(
            f"there is no baseline in {folder}; generate it with {command}, or pass its folder as --data"
        )
    try:
        loaded = _load(paths, words, numerics)
    except CaseLookupError as error:
        raise click.UsageError(str(error)) from error
    except BaselineError as error:
        raise UnusableError(str(error)) from error
    for line in (*case_text(loaded, full=full), *_describe_checks(loaded)):
        click.echo(line)


def _load(paths: Sequence[Path], words: str, numerics: str | None) -> LoadedCase:
    """Return the requested case.

    Args:
        paths: The files of the baseline.
        words: The ID of the case, or a unique part of it.
        numerics: The declared arithmetic whose budgets the case has; None for those of IEEE 754.

    Returns:
        The case.

    Raises:
        CaseLookupError: No case or several cases match.
        BaselineError: The baseline is unusable.
    """
    from diopi_impl import find_numerics
    from diopi_test.baseline.declared import DeclaredCases
    from diopi_test.baseline.level import open_level_of_file
    from diopi_test.baseline.readability import check_readable
    from diopi_test.run.lookup import find_case, load_case

    path, collected = find_case(paths, words)
    listed = open_level_of_file(path)
    check_readable({path: listed.sha256(path.stem)})
    file = listed.open(path.stem)
    loaded = load_case(file, collected)
    if numerics is None or loaded.flaw is not None:
        return loaded
    return replace(loaded, case=DeclaredCases(find_numerics(numerics)).derive(loaded.case, file.digest))


def _compute(folder: Path, words: str) -> None:
    """Compute the missing results of the requested case, if the parent folder describes it."""
    from diopi_test.baseline.descriptions import is_described
    from diopi_test.run.collection import collect_described
    from diopi_test.run.described import compute_results

    data = folder.parent
    if not is_described(data):
        return
    part = words.casefold()
    matching = [case for case in collect_described(data, lambda function: True) if part in case.id.casefold()]
    if len(matching) > 1:
        raise click.UsageError(f"{words!r} matches {len(matching)} cases: {matching[0].id}, {matching[1].id}, …")
    compute_results(data, folder.name, [case.function for case in matching], console)


def _describe_checks(loaded: LoadedCase) -> Iterator[str]:
    """Yield a line for each check of a case.

    The checks are found by running the case on a stub vendor, which returns the expected results.
    """
    from diopi_test import checks
    from diopi_test.execution.verdict import Verdict

    outcome, calls = _run_on_stub_vendor(loaded)
    yield f"checked in {pluralize(calls, 'call')}"
    for finding in outcome.check_results:
        module = getattr(checks, finding.check, None)
        summary = (inspect.getdoc(module) or "").partition("\n")[0] if module else REJECTION_CHECK
        yield f"  {finding.check}: {summary}"
    # a stub vendor can't return the expected random numbers
    if loaded.flaw is None and loaded.case.smoke and outcome.verdict is not Verdict.passed:
        yield "  and further calls, if the first call passes: repeat, order, layout, leaks"


def _run_on_stub_vendor(loaded: LoadedCase) -> tuple[Outcome, int]:
    """Run a case on a stub vendor; return the outcome, and the number of calls that were made."""
    from diopi_impl.host_runtime import HostRuntime
    from diopi_test.quality.stub_vendor import StubVendor
    from diopi_test.run.session import run_loaded_case
    from diopi_test.run.target import LocalTarget

    class CountingStubVendor(StubVendor):
        calls = 0

        def call(self, name: str, context: Context, *arguments: Any) -> Error:
            self.calls += 1
            return super().call(name, context, *arguments)

    vendor = CountingStubVendor("stub", "1", HostRuntime().functions(), host_addressable=True)
    with vendor.open_device() as device:
        outcome = run_loaded_case(LocalTarget(vendor, device), loaded)
    return outcome, vendor.calls

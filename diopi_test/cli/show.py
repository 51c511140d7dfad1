"""`diopi-test show`: one case, the whole call and what is checked of it, without any vendor."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from diopi_test.cli.options import Unusable, console, data_option, level_option

if TYPE_CHECKING:
    from diopi_proto.types import Error
    from diopi_test.execution.verdict import Outcome
    from diopi_test.harness.lookup import MadeCase
    from lib_rt import Context

REFUSED = "An error code was returned, and the last error says why."


@click.command()
@click.argument("words", metavar="CASE")
@level_option
@data_option
@click.option("--full", is_flag=True, help="All elements of all arrays.")
def show(words: str, level: str, data: Path | None, full: bool) -> None:
    """Show what CASE calls, with what, what must come of it, and what is checked.

    CASE is an id, as diopiAdd[float32-row], or a part of one that no other id has.

    Exit status: 0 shown, 2 no case, or more than one, is meant, 3 the baseline is unusable.
    """
    from diopi_test.baseline.described import remedy_for
    from diopi_test.baseline.level import level_of
    from diopi_test.baseline.location import folder_to_read
    from diopi_test.baseline.readable import check_readable
    from diopi_test.baseline.store import SUFFIX, BaselineError
    from diopi_test.harness.call_text import case_text
    from diopi_test.harness.lookup import CaseLookupError, find, make

    folder = data / level if data else folder_to_read(level)
    try:
        _compute(folder, words)
    except BaselineError as error:
        raise Unusable(str(error)) from error
    paths = sorted(folder.glob(f"*{SUFFIX}"))
    if not paths:
        made_by = f"diopi-test {remedy_for(folder.parent, level)}"
        raise Unusable(f"there is no baseline in {folder}; make it with {made_by}, or name its folder with --data")
    try:
        path, collected = find(paths, words)
        listed = level_of(path)
        check_readable({path: listed.sha256(path.stem)})
        made = make(listed.open(path.stem), collected)
    except CaseLookupError as error:
        raise click.UsageError(str(error)) from error
    except BaselineError as error:
        raise Unusable(str(error)) from error
    for line in (*case_text(made, full=full), *_checked(made)):
        click.echo(line)


def _compute(folder: Path, words: str) -> None:
    """Compute the missing results of the case that is meant, if the folder's parent describes it."""
    from diopi_test.baseline.described import is_described
    from diopi_test.harness.collection import collect_described
    from diopi_test.harness.described import compute_results

    data = folder.parent
    if not is_described(data):
        return
    meant = [case for case in collect_described(data, lambda function: True) if words in case.id]
    if len(meant) > 1:
        raise click.UsageError(f"{words!r} is a part of {len(meant)} ids: {meant[0].id}, {meant[1].id}, …")
    compute_results(data, folder.name, [case.function for case in meant], console)


def _checked(made: MadeCase) -> Iterator[str]:
    """Yield a line per check; find the checks by running the case on the stub vendor."""
    from diopi_test import checks
    from diopi_test.execution.verdict import Verdict

    outcome, calls = _run_on_stub_vendor(made)
    yield f"checked in {calls} call{'s' if calls > 1 else ''}"
    for finding in outcome.check_results:
        module = getattr(checks, finding.check, None)
        said = (inspect.getdoc(module) or "").partition("\n")[0] if module else REFUSED
        yield f"  {finding.check}: {said}"
    # the stub vendor fails only the cases whose results are random
    if made.flaw is None and made.case.smoke and outcome.verdict is not Verdict.passed:
        yield "  and further calls, if nothing is wrong in the first: repeat, order, layout, leaks"


def _run_on_stub_vendor(made: MadeCase) -> tuple[Outcome, int]:
    """Return the outcome of a case on the stub vendor, and the number of calls that the case made."""
    from diopi_impl.host_runtime import HostRuntime
    from diopi_test.execution.negative_cases import NegativeCase
    from diopi_test.harness.run_case import run_case
    from diopi_test.harness.run_negative_case import run_negative_case
    from diopi_test.quality.stub_vendor import StubVendor

    class CountingStubVendor(StubVendor):
        calls = 0

        def call(self, name: str, context: Context, *arguments: Any) -> Error:
            self.calls += 1
            return super().call(name, context, *arguments)

    vendor = CountingStubVendor("stub", "1", HostRuntime().functions(), host_addressable=True)
    with vendor.open_device() as device:
        if made.flaw is not None:
            outcome = run_negative_case(vendor, device, NegativeCase(made.case, made.flaw))
        else:
            outcome = run_case(vendor, device, made.case)
    return outcome, vendor.calls

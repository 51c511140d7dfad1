"""`diopi-test evaluate`: evaluate the results that a runner wrote on a target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from diopi_test.cli.console import UnusableError, console

SELECTING = frozenset(
    {"--function", "--family", "--dtype", "--class", "-k", "--case", "--shuffle", "--sample", "--shard"}
)
"""The options of a selection that a bundle can contain; each of them is followed by a value."""


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("cases", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("results", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def evaluate(cases: Path, results: Path, options: tuple[str, ...]) -> None:
    """Evaluate the results of a target.

    CASES is the bundle that `diopi-test bundle` wrote, and RESULTS is the file that `diopi-runner` wrote. The
    evaluation is a run on a vendor that repeats these results: log, reports and exit status are those of
    `diopi-test run`, and all further OPTIONS are passed to it, for example --json FILE or --waivers FILE. The vendor's
    library is never loaded.
    """
    from diopi_test.cli.run import run
    from diopi_test.target.bundle import BundleHeader
    from diopi_test.target.records import TargetFileError
    from diopi_test.target.results import TargetResults

    try:
        header, target_results = BundleHeader(cases), TargetResults(results)
        words = _selecting_words(cases, header.selection)
    except TargetFileError as error:
        raise UnusableError(str(error)) from error
    if header.identity != target_results.identity:
        raise UnusableError(f"{results} has the results of another bundle than {cases}")
    if not target_results.is_complete:
        text = f"{results} is incomplete: the runner did not reach the end of {cases}"
        console.print(text, highlight=False, markup=False, soft_wrap=True)
    words = [*words, "--vendor", str(results), *options]
    _require_same_baseline(cases, header.selection, run.make_context("run", list(words)).params)
    run.main(words, standalone_mode=False)


def _require_same_baseline(path: Path, selection: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Require that the bundle was written from the baseline with which its results are evaluated.

    Args:
        path: The path of the bundle.
        selection: The selection in the bundle.
        options: The options of the run that evaluates the results.

    Raises:
        UnusableError: The digests differ, or the baseline can't be opened.
    """
    from diopi_test.baseline.errors import BaselineError
    from diopi_test.baseline.level import open_level
    from diopi_test.run.selection import Selection
    from diopi_test.run.source import CaseSource

    level, data = options["level"], options["data"]
    source = CaseSource(level=level, data=data, selection=Selection(), huge=False, int32_indices=False)
    if source.is_drawn:  # such a level is stored function by function, so that its digest changes with every run
        return
    try:
        digest = open_level(source.folder).digest
    except BaselineError as error:
        raise UnusableError(str(error)) from error
    if selection.get("digest") != digest:
        raise UnusableError(
            f"{path} was written from another baseline: the digest of level {level} in the bundle is "
            f"{selection.get('digest')}, and in {source.folder} it is {digest}; write the bundle again, or pass --data "
            "with the folder of the baseline from which it was written"
        )


def _selecting_words(path: Path, selection: Mapping[str, Any]) -> Sequence[str]:
    """Return the options that select the cases of a bundle; raise TargetFileError if the bundle has other options."""
    from diopi_test.target.records import TargetFileError

    level, words = selection.get("level"), selection.get("options")
    if not isinstance(level, str) or not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise TargetFileError(f"the selection in {path} is {dict(selection)!r}, expected a level and options")
    if unknown := sorted(set(words[::2]) - SELECTING):
        raise TargetFileError(f"the selection in {path} has the option {unknown[0]}, which selects no cases")
    return ["--level", level, *words]

"""Which version of a vendor a run tests, and the selection of the cases that a change of it can affect."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from diopi_impl import VendorError
from diopi_proto.interface import prototypes
from diopi_test.baseline.cluster import ClusterError
from diopi_test.run.affected import AffectedCases, VendorVersion
from diopi_test.run.case_executor import executor_of
from diopi_test.run.isolation.fork_server import ForkServerError
from diopi_test.run.keywords import SelectionError
from diopi_test.run.options import RunOptions
from diopi_test.run.recorder import LogContent
from diopi_test.run.selection import check_names
from diopi_test.run.vendor_sources import VendorSources


def select_affected(options: RunOptions, functions: Sequence[str], log: Path | None) -> RunOptions:
    """Return the options, which select only the cases that a change can affect.

    Args:
        options: The options of the run.
        functions: The functions that changed; empty to find them by comparing the vendor with `log`.
        log: The log of an earlier run; None if `functions` are given.

    Returns:
        The options with another selection.

    Raises:
        SelectionError: A function is unknown, or the log is of another level.
        LogError: The log can't be read.
        VendorNotFoundError: There is no such vendor.
        BaselineError: The baseline is unusable.
    """
    check_names("--affected-by", functions, lambda: list(prototypes()))
    if log is None:
        affected = AffectedCases.by_functions(functions, _read_sources(options))
    else:
        content = LogContent.read(log)
        if content.header.baseline.level != options.level:
            level = content.header.baseline.level
            raise SelectionError(
                f"{log} is of level {level}, and this run is of level {options.level}: add --level {level}"
            )
        affected = AffectedCases.since(content, _read_version(options))
    return replace(options, selection=replace(options.selection, affected=affected))


def _read_version(options: RunOptions) -> VendorVersion:
    """Return the version of the vendor and of the baseline of a run."""
    library = Path(options.vendor)
    digest = hashlib.sha256(library.read_bytes()).hexdigest() if library.is_file() else ""
    sources = VendorSources() if digest else _read_sources(options)
    return VendorVersion(library=digest, baseline=options.source.collect()[0].digest, sources=sources)


def _read_sources(options: RunOptions) -> VendorSources:
    """Start the vendor in a worker and return its sources; they are empty if the vendor does not start."""
    try:
        with executor_of(options.vendor, options.limits, options.execution, workers=1, dask=options.dask) as executor:
            return VendorSources.read(executor.describe().sources)
    except (VendorError, ForkServerError, ClusterError):
        return VendorSources()  # the run reports why the vendor does not start

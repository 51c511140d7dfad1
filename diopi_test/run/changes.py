"""Which version of a vendor a run tests, and the selection of the cases that a change of it can affect."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from diopi_impl import IEEE, VendorError
from diopi_impl.numerics import read_numerics_of_library
from diopi_proto.interface import prototypes
from diopi_test.baseline.cluster import ClusterError
from diopi_test.run.affected import AffectedCases, VendorVersion
from diopi_test.run.case_executor import executor_of
from diopi_test.run.isolation.description import Description
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
        NumericsError: The declaration next to a library is invalid.
    """
    check_names("--affected-by", functions, lambda: list(prototypes()))
    if log is None:
        description = _describe(options)
        sources = VendorSources() if description is None else VendorSources.read(description.sources)
        affected = AffectedCases.by_functions(functions, sources)
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
    library, baseline = Path(options.vendor), options.source.collect()[0].digest
    if library.is_file():
        digest = hashlib.sha256(library.read_bytes()).hexdigest()
        numerics = options.execution.numerics or read_numerics_of_library(library) or IEEE
        return VendorVersion(library=digest, baseline=baseline, sources=VendorSources(), numerics=numerics.digest)
    description = _describe(options)
    if description is None:
        return VendorVersion(library="", baseline=baseline, sources=VendorSources(), numerics="")
    sources = VendorSources.read(description.sources)
    return VendorVersion(library="", baseline=baseline, sources=sources, numerics=description.numerics.digest)


def _describe(options: RunOptions) -> Description | None:
    """Start the vendor in a worker and return its description; None if the vendor does not start."""
    try:
        with executor_of(options.vendor, options.limits, options.execution, workers=1, dask=options.dask) as executor:
            return executor.describe()
    except (VendorError, ForkServerError, ClusterError):
        return None  # the run reports why the vendor does not start

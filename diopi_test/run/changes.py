"""The version of a vendor that a run tests, and the cases that a change of the vendor can affect."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from diopi_impl import IEEE, Numerics, VendorError
from diopi_impl.numerics import read_numerics_of_library
from diopi_proto.interface import prototypes
from diopi_test.baseline.cluster import ClusterError
from diopi_test.run.affected import AffectedCases, VendorVersion
from diopi_test.run.case_executor import CaseExecutor
from diopi_test.run.isolation.description import Description
from diopi_test.run.isolation.fork_server import ForkServerError
from diopi_test.run.keywords import SelectionError
from diopi_test.run.recorder import LogContent
from diopi_test.run.selection import check_names
from diopi_test.run.source import CaseSource
from diopi_test.run.vendor_sources import VendorSources

StartVendor = Callable[[], CaseExecutor]
"""A function that returns an executor with one worker process of the vendor."""


def find_affected(
    vendor: str,
    source: CaseSource,
    start: StartVendor,
    functions: Sequence[str],
    log: Path | None,
    numerics: Numerics | None = None,
) -> AffectedCases:
    """Return the cases of a run that a change of the vendor can affect.

    Args:
        vendor: The vendor, in the form that `diopi_impl.find_vendor` accepts.
        source: The cases of the run.
        start: Starts the vendor, whose sources are read.
        functions: The functions that changed; empty to find them by comparing the vendor with `log`.
        log: The log of an earlier run; None if `functions` are given.
        numerics: The arithmetic that the run assumes; None for the arithmetic that the vendor declares.

    Returns:
        The affected cases.

    Raises:
        SelectionError: A function is unknown, or the log is of another level.
        LogError: The log can't be read.
        VendorNotFoundError: There is no such vendor.
        BaselineError: The baseline is unusable.
        NumericsError: The declaration next to a library is invalid.
    """
    check_names("--affected-by", "functions", functions, lambda: list(prototypes()))
    if log is None:
        description = _describe(start)
        sources = VendorSources() if description is None else VendorSources.read(description.sources)
        return AffectedCases.by_functions(functions, sources)
    content = LogContent.read(log)
    level = content.header.baseline.level
    if level != source.level:
        raise SelectionError(f"{log} is of level {level}, and this run is of level {source.level}: add --level {level}")
    return AffectedCases.since(content, _read_version(vendor, source.collect()[0].digest, start, numerics))


def _read_version(vendor: str, baseline: str, start: StartVendor, numerics: Numerics | None) -> VendorVersion:
    """Return the present version of the vendor and of the baseline.

    Args:
        vendor: The vendor, as `diopi_impl.find_vendor` takes it. A file is hashed, and not loaded.
        baseline: The digest of the baseline.
        start: Starts a vendor that is not a file.
        numerics: The arithmetic that the run assumes; None for the arithmetic that the vendor declares.
    """
    library = Path(vendor)
    if library.is_file():
        digest = hashlib.sha256(library.read_bytes()).hexdigest()
        assumed = numerics or read_numerics_of_library(library) or IEEE
        return VendorVersion(library=digest, baseline=baseline, sources=VendorSources(), numerics=assumed.digest)
    description = _describe(start)
    if description is None:
        return VendorVersion(library="", baseline=baseline, sources=VendorSources(), numerics="")
    sources = VendorSources.read(description.sources)
    return VendorVersion(library="", baseline=baseline, sources=sources, numerics=description.numerics.digest)


def _describe(start: StartVendor) -> Description | None:
    """Start the vendor in a worker and return its description; None if the vendor does not start."""
    try:
        with start() as executor:
            return executor.describe()
    except (VendorError, ForkServerError, ClusterError):
        return None  # the run reports why the vendor does not start

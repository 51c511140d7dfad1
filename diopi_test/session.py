"""One worker's vendor and device, and the baseline files it has open."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from diopi_impl import BaseVendor, find_vendor
from diopi_test.baseline import BaselineCase
from diopi_test.execution import run_case
from diopi_test.negative import make_negative_case
from diopi_test.refusal import run_negative_case
from diopi_test.runtime_cases import RuntimeCase
from diopi_test.store import BaselineFile
from diopi_test.verdict import Outcome, Verdict
from lib_rt import Device

open_baseline = lru_cache(maxsize=4)(BaselineFile)
"""Baseline files kept in memory: cases come file by file, so a few are enough."""


class Session:
    """A vendor loaded once, its device open for as long as the worker lives."""

    def __init__(self, vendor: BaseVendor) -> None:
        self.vendor = vendor
        self.device: Device = vendor.open_device()

    @classmethod
    def of(cls, vendor_name: str) -> Session:
        """The session of the vendor called `vendor_name`; VendorError if there is none."""
        return cls(find_vendor(vendor_name))

    def run_baseline_case(self, path: Path, label: str) -> Outcome:
        """Run one stored case; BaselineError if its file is damaged."""
        case: BaselineCase = open_baseline(path).case(label)
        return run_case(self.vendor, self.device, case)

    def run_negative_case(self, path: Path, base: str, label: str) -> Outcome:
        """Run the negative case `label` made of the stored case `base`; BaselineError if its file is damaged."""
        return run_negative_case(self.vendor, self.device, make_negative_case(open_baseline(path).case(base), label))

    def run_runtime_case(self, case: RuntimeCase) -> Outcome:
        """Run one case of the runtime functions."""
        try:
            case.run(self.vendor)
        except Exception as error:
            return Outcome(Verdict.failed, f"{type(error).__name__}: {error}")
        return Outcome(Verdict.passed)

    def close(self) -> None:
        """Close the device."""
        self.device.close()

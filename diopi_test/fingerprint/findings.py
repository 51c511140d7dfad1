"""A vendor's fingerprint: the answers to all probes, in their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from diopi_impl import BaseVendor
from diopi_proto.types import Dtype
from diopi_test.fingerprint.probe import Answers, Probe
from diopi_test.fingerprint.table import FAMILIES


@final
@dataclass(frozen=True)
class Finding:
    """The answers to one probe for one variant: an element type, or the source and target of a conversion."""

    family: str
    function: str
    subject: str
    dtypes: tuple[Dtype, ...]
    answers: Answers

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "family": self.family,
            "function": self.function,
            "subject": self.subject,
            "dtypes": [dtype.name for dtype in self.dtypes],
            "answers": dict(self.answers),
        }


@final
@dataclass(frozen=True)
class Fingerprint:
    """What is known of a vendor's arithmetic."""

    vendor: str
    version: str
    findings: Sequence[Finding]

    @classmethod
    def of(
        cls,
        vendor: BaseVendor,
        families: Mapping[str, Sequence[Probe]] = FAMILIES,
        progress: Callable[[str], None] = lambda function: None,
    ) -> Fingerprint:
        """Run all probes on `vendor`; `progress` is called with the function of each finished one."""
        findings = []
        with vendor.open_device() as device:
            for family, probes in families.items():
                for probe in probes:
                    for dtypes in probe.variants:
                        answers = probe.answers(vendor, device, dtypes)
                        findings.append(Finding(family, probe.function, probe.subject, dtypes, answers))
                    progress(probe.function)
        return cls(vendor.name, vendor.version, findings)

    def to_json(self) -> dict[str, Any]:
        """As a JSON object; nothing in it but what was found, so that fingerprints can be compared."""
        return {
            "vendor": {"name": self.vendor, "version": self.version},
            "findings": [finding.to_json() for finding in self.findings],
        }

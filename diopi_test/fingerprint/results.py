"""A vendor's fingerprint: the results of all probes, as `diopi-test fingerprint` measures, prints and stores them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from diopi_impl import BaseVendor
from diopi_proto.types import Dtype
from diopi_test.fingerprint.probe import Observations, Probe
from diopi_test.fingerprint.table import FAMILIES


@final
@dataclass(frozen=True, kw_only=True)
class ProbeResult:
    """The observations of one probe for one variant.

    Attributes:
        family: the family of the probe, a key of `table.FAMILIES`.
        function: the name of the function that was called.
        subject: the property that the probe measures, if the function has several probes; otherwise empty.
        dtypes: the element type, or the source and target type of a conversion.
        observations: the observations by aspect, such as `order`.
    """

    family: str
    function: str
    subject: str
    dtypes: tuple[Dtype, ...]
    observations: Observations

    def to_json(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
        return {
            "family": self.family,
            "function": self.function,
            "subject": self.subject,
            "dtypes": [dtype.name for dtype in self.dtypes],
            "answers": dict(self.observations),
        }


@final
@dataclass(frozen=True)
class Fingerprint:
    """The measured properties of a vendor's arithmetic.

    Attributes:
        vendor: the name of the vendor.
        version: the version of the vendor.
        results: the results of the probes, ordered by family.
    """

    vendor: str
    version: str
    results: Sequence[ProbeResult]

    @classmethod
    def measure(
        cls,
        vendor: BaseVendor,
        families: Mapping[str, Sequence[Probe]] = FAMILIES,
        progress: Callable[[str], None] = lambda function: None,
    ) -> Fingerprint:
        """Run all probes on a vendor.

        Args:
            vendor: the vendor.
            families: the probes by family.
            progress: called with the name of the function after each probe.

        Returns:
            The fingerprint.
        """
        results = []
        with vendor.open_device() as device:
            for family, probes in families.items():
                for probe in probes:
                    for dtypes in probe.variants:
                        observations = probe.observations(vendor, device, dtypes)
                        results.append(
                            ProbeResult(
                                family=family,
                                function=probe.function,
                                subject=probe.subject,
                                dtypes=dtypes,
                                observations=observations,
                            )
                        )
                    progress(probe.function)
        return cls(vendor.name, vendor.version, results)

    def to_json(self) -> dict[str, Any]:
        """Return the fingerprint as a JSON object without times or paths, so that fingerprints can be compared."""
        return {
            "vendor": {"name": self.vendor, "version": self.version},
            "findings": [finding.to_json() for finding in self.results],
        }

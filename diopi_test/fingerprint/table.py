"""The table of all probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diopi_test.fingerprint import (
    accumulation,
    conversions,
    division,
    elementary,
    fusion,
    nans,
    subnormals,
)
from diopi_test.fingerprint.probe import Probe

FAMILIES: Mapping[str, Sequence[Probe]] = {
    "sums": accumulation.SUMS,
    "dot products": accumulation.DOT_PRODUCTS,
    "multiply-add": fusion.PROBES,
    "division": division.PROBES,
    "conversion to floating types": conversions.TO_FLOATS,
    "conversion to integers": conversions.TO_INTEGERS,
    "conversion to bool": conversions.TO_BOOL,
    "subnormal numbers": subnormals.PROBES,
    "NaN": nans.PROBES,
    "elementary functions": elementary.PROBES,
}
"""All probes by family. A family is a table in the printed fingerprint, and the key is its title."""

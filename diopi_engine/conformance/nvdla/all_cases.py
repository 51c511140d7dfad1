"""All cases of NVDLA's driver in the order in which they are run."""

from diopi_engine.conformance.nvdla import cases, layer_cases, memory_cases, result_cases  # noqa: F401 - they enter their cases
from diopi_engine.conformance.nvdla.bench import CASES

__all__ = ["CASES"]

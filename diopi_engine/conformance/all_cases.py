"""All cases of HanGuangRT in the order in which they are run."""

from diopi_engine.conformance import cases, description_cases, result_cases  # noqa: F401 - they enter their cases
from diopi_engine.conformance.bench import CASES

__all__ = ["CASES"]

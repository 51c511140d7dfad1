"""Cases of the nine runtime functions, which run for every vendor in addition to the cases of operators.

A case is a function that receives the vendor and opens a device. It raises `RuntimeCaseError` if the vendor's functions
violate their contract, or `CallError` if one fails. It releases everything that it allocates.
"""

from diopi_test.execution.runtime_cases import copies, memory, missing, streams, texts  # each registers its cases
from diopi_test.execution.runtime_cases.tools import RUNTIME, RUNTIME_CASES, RuntimeCase, RuntimeCaseError

__all__ = [
    "RUNTIME",
    "RUNTIME_CASES",
    "RuntimeCase",
    "RuntimeCaseError",
    "copies",
    "memory",
    "missing",
    "streams",
    "texts",
]

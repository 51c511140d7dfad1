"""Cases of the nine runtime functions, run for every vendor beside the operator cases.

A case is a function that receives the vendor, opens a device of its own, and raises `RuntimeCaseError` when the
vendor's functions violate their contract, or `CallError` when one fails. It leaves nothing allocated.
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

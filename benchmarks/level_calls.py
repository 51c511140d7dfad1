"""Create the calls of the cases of a level, which `model_sizes.py --level` measures, without a stored baseline."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any

from diopi_impl import BaseVendor
from diopi_proto.interface import lookup, prototypes
from diopi_proto.types import Error
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.cases.selection import select_cases
from diopi_test.execution.call import Call
from diopi_test.oracle.evaluation import draw_case_with_zeros
from diopi_test.oracle.records import BaselineCase
from lib_rt import Device


@dataclass(frozen=True)
class CaseCall:
    """The call of a case. Its data is generated when the call is measured.

    Attributes:
        function: the name of the function.
        case: the case.
    """

    function: str
    case: Case

    @property
    def label(self) -> str:
        """Return the function, without "diopi", and the label of the case, such as `Softmax[float16-rows]`."""
        return f"{self.function.removeprefix('diopi')}[{self.case.label}]"

    def draw_inputs(self) -> BaselineCase:
        """Return the case with its arguments, and zeros as results."""
        return draw_case_with_zeros(lookup(self.function), self.case)


def calls_of(level: str, least: int) -> Iterator[CaseCall]:
    """Yield the calls of a level with a tensor of more than `least` elements, except those with huge tensors."""
    for function in prototypes():
        for case in select_cases(function, level):
            if elements(case) > least and not case.is_giant:
                yield CaseCall(function, case)


def elements(case: Case) -> int:
    """Return the number of elements of the largest tensor argument."""
    shapes = [spec.shape for value in case.arguments.values() for spec in TensorSpec.all_in(value)]
    return max(map(prod, shapes), default=0)


@contextmanager
def prepare_call(case: BaselineCase, vendor: BaseVendor, device: Device) -> Iterator[Any]:
    """Yield a function that makes the call once, with new tensors, and returns the error code."""

    def attempt() -> Error:
        with Call(vendor, device, case) as call:
            return call.run_rejected()[0]

    yield attempt

"""Calls of the cases of a level, of which nothing needs to have been made: what `model_sizes.py --level` measures."""

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
    """The call of a case, whose data are drawn when it is due."""

    function: str
    case: Case

    @property
    def label(self) -> str:
        """As a call of `model_calls.py` has one."""
        return f"{self.function.removeprefix('diopi')}[{self.case.label}]"

    def draw_inputs(self) -> BaselineCase:
        """Its arguments, and results of zeros."""
        return draw_case_with_zeros(lookup(self.function), self.case)


def calls_of(level: str, least: int) -> Iterator[CaseCall]:
    """The calls of a level that have a tensor of more than `least` elements, but those whose tensors are huge."""
    for function in prototypes():
        for case in select_cases(function, level):
            if elements(case) > least and not case.is_huge:
                yield CaseCall(function, case)


def elements(case: Case) -> int:
    """Of the largest tensor that is passed."""
    shapes = [spec.shape for value in case.arguments.values() for spec in TensorSpec.all_in(value)]
    return max(map(prod, shapes), default=0)


@contextmanager
def attempts(case: BaselineCase, vendor: BaseVendor, device: Device) -> Iterator[Any]:
    """What makes the call, with tensors made anew each time, and tells how it ended."""

    def attempt() -> Error:
        with Call(vendor, device, case) as call:
            return call.run_rejected()[0]

    yield attempt

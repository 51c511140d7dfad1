"""The stub vendor: returns the expected results of the current case, for measuring the suite's own cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from diopi_impl import Box, Vendor
from diopi_impl.host_runtime import HostRuntime
from diopi_proto.interface import lookup
from diopi_proto.types import Error
from diopi_test.cases.case import CaseClass
from diopi_test.cases.layouts import layout_named
from diopi_test.oracle.records import BaselineCase, Expected
from lib_rt import Context, Tensor
from lib_rt.dtypes import from_numpy, to_numpy


class StubVendor(Vendor):
    """A vendor that implements every function by returning the expected results of the current case.

    Attributes:
        case: the current case; None before the first one.
        failure: the message of the latest call that failed because there were no results to return.
    """

    case: BaselineCase | None = None
    failure = ""

    def take_case(self, case: BaselineCase) -> None:
        """Set the current case, whose expected results the next calls return."""
        self.case = case

    def has(self, name: str) -> bool:
        """Return True: the stub vendor implements every function."""
        return True

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        """Write the expected results of the current case.

        Args:
            name: the name of the called function.
            context: the context, whose stream is synchronized first.
            *arguments: the arguments after the context.

        Returns:
            `Success`; `ErrorOccurred` if the current case has no expected results for this function.
        """
        case = self.case
        if case is None or case.function != name or case.case_class is CaseClass.negative:
            self.failure = f"{name}: the current case has no expected results for this function"
            return Error.ErrorOccurred
        context.stream.synchronize()
        for parameter, value in zip(lookup(name).parameters[1:], arguments, strict=True):
            if parameter.is_result:
                _write_result(context, value, case.expected[parameter.name])
        return Error.Success

    def last_error(self) -> str:
        """Return the message of the latest failed call."""
        return self.failure


def _write_result(context: Context, target: Any, expected: Expected | list[Expected] | None) -> None:
    """Write an expected result to the tensor or box that the caller passes for it."""
    if isinstance(expected, list):
        for element, expected_element in zip(target, expected, strict=True):
            _write_result(context, element, expected_element)
    elif expected is not None:
        with np.errstate(all="ignore"):
            values = expected.values.astype(to_numpy(expected.dtype))
        if isinstance(target, Tensor):
            np.copyto(target.view(), values)
        elif isinstance(target, Box):
            _fill_box(context, target, values, expected)


def _fill_box(context: Context, box: Box, values: Any, expected: Expected) -> None:
    """Create a tensor with the expected values and layout, and store it in a box.

    Args:
        context: the context that owns the tensor.
        box: the box through which the call returns the tensor.
        values: the elements, in the element type of the result.
        expected: the expected result, which has the layout.
    """
    strides = layout_named(expected.layout)(values.shape).strides
    box.value = context.require_tensor(values.shape, from_numpy(values.dtype), strides)
    box.value.write(values)


# found by name: diopi_test.quality.stub_vendor:vendor
vendor = StubVendor("stub", "1", HostRuntime().functions(), host_addressable=True)

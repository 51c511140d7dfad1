"""The common parts of all probes.

A probe measures a property of the arithmetic of one operator, such as the order of its sums. It calls the operator with
chosen arguments and derives the property from the results. The result of a probe is a set of observations: texts, each
about one aspect of the property.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from diopi_impl import BaseVendor
from diopi_proto.interface import lookup
from diopi_proto.parameters import Parameter, Role
from diopi_proto.types import Dtype, Error
from diopi_test.execution.call_arguments import convert_attribute
from lib_rt import Context, Device, Tensor
from lib_rt.dtypes import Array
from lib_rt.errors import GuardError

Observations = Mapping[str, str]
"""What a probe found: texts such as "pairwise", by the name of the aspect, such as `order`."""

NO_RESULT = "no answer"
"""The aspect under which a probe that failed states the reason."""

_REFUSALS = {Error.NoImplement: "not implemented", Error.DtypeNotSupported: "unsupported type"}
"""The reasons that a probe states for error codes. For other codes, the reason is the code and the vendor's message."""


class ProbeFailedError(Exception):
    """A call of a probe failed; the message states the reason."""


@final
class ProbedOperator:
    """An operator of a vendor as a Python function: it takes NumPy arrays, calls the vendor, and returns NumPy arrays.

    Args:
        vendor: the vendor.
        context: the context of the calls.
        name: the name of the function.
    """

    def __init__(self, vendor: BaseVendor, context: Context, name: str) -> None:
        self.name = name
        self._vendor = vendor
        self._context = context
        self._parameters = lookup(name).parameters[1:]

    def __call__(self, *arguments: Any, shape: Sequence[int], dtype: Dtype) -> Array:
        """Call the operator, which has one result.

        Args:
            *arguments: all arguments except the result, in the prototype's order.
            shape: the shape of the result.
            dtype: the element type of the result.

        Returns:
            The result.

        Raises:
            ProbeFailedError: if the call fails or writes outside its tensors.
        """
        (result,) = self.compute_results(*arguments, results=[(shape, dtype)])
        return result

    def compute_results(self, *arguments: Any, results: Sequence[tuple[Sequence[int], Dtype]]) -> list[Array]:
        """Call the operator and return all results.

        Args:
            *arguments: all arguments except the results, in the prototype's order.
            results: shape and element type of each result.

        Returns:
            The results.

        Raises:
            ProbeFailedError: if the call fails or writes outside its tensors.
        """
        left, outputs = iter(arguments), iter(results)
        try:
            with ExitStack() as tensors:
                targets: list[Tensor] = []
                values = [
                    self._result(*next(outputs), targets, tensors)
                    if parameter.role is Role.output
                    else self._value(parameter, next(left), tensors)
                    for parameter in self._parameters
                ]
                code = self._vendor.call(self.name, self._context, *values)
                self._context.stream.synchronize()
                if code is not Error.Success:
                    raise ProbeFailedError(_REFUSALS.get(code, f"{code.name}: {self._vendor.last_error()}"))
                return [target.numpy() for target in targets]
        except GuardError as error:
            raise ProbeFailedError(f"wrote beside a tensor: {error}") from error

    def _result(self, shape: Sequence[int], dtype: Dtype, targets: list[Tensor], tensors: ExitStack) -> Tensor:
        """Allocate a result tensor, append it to `targets`, register its release with `tensors`, and return it."""
        target = tensors.enter_context(Tensor.empty(self._context, shape, dtype))
        targets.append(target)
        return target

    def _value(self, parameter: Parameter, argument: Any, tensors: ExitStack) -> Any:
        """Return an argument as the vendor receives it; register the release of a new tensor with `tensors`."""
        if isinstance(argument, np.ndarray):
            return tensors.enter_context(Tensor.from_numpy(self._context, argument))
        return convert_attribute(parameter, argument)


@final
@dataclass(frozen=True, kw_only=True)
class Probe:
    """A measurement of an operator for several combinations of element types.

    Attributes:
        function: the name of the standard function.
        measure: calls the operator and returns observations of the results. The arguments are the operator and the
            element types of one variant, in order.
        variants: the combinations of element types with which the operator is measured. A variant is usually one type;
            for a conversion, it is the source and the target type.
        subject: the property that is measured, if the function has several probes.
    """

    function: str
    measure: Callable[..., Observations]
    variants: Sequence[tuple[Dtype, ...]]
    subject: str = ""

    def observations(self, vendor: BaseVendor, device: Device, dtypes: Sequence[Dtype]) -> Observations:
        """Measure the operator in a new context of the device.

        Args:
            vendor: the vendor that implements the operator.
            device: the device of the context.
            dtypes: one of `variants`.

        Returns:
            The observations; or only the reason under the key `NO_RESULT`, if the vendor lacks the operator or a call
            fails.
        """
        if not vendor.has(self.function):
            return {NO_RESULT: "not implemented"}
        try:
            with Context(device) as context:
                return self.measure(ProbedOperator(vendor, context, self.function), *dtypes)
        except ProbeFailedError as refusal:
            return {NO_RESULT: str(refusal)}


def single_variants(*dtypes: Dtype) -> list[tuple[Dtype, ...]]:
    """Return a variant of one element type for each of these types; see `Probe.variants`."""
    return [(dtype,) for dtype in dtypes]


def yes_or_no(holds: Any, yes: str, no: str) -> str:
    """Return `yes` if all elements of `holds` are true, `no` if none is, and otherwise text such as `YES in 3 of 8`."""
    flags = np.asarray(holds)
    if flags.all():
        return yes
    return f"{yes} in {np.count_nonzero(flags)} of {flags.size}" if flags.any() else no

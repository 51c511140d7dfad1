"""Probes: questions about one operator each, asked through ordinary calls of it."""

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
from diopi_test.execution.call import convert_attribute
from lib_rt import Context, Device, Tensor
from lib_rt.dtypes import Array
from lib_rt.errors import GuardError

Answers = Mapping[str, str]
"""What a probe found out: by aspect, in words."""

REFUSED = "no answer"
"""The aspect of a question the vendor did not answer: why it did not."""

_REFUSALS = {Error.NoImplement: "not implemented", Error.DtypeNotSupported: "unsupported type"}


class RefusedError(Exception):
    """The vendor did not do what a probe asked it to; the message says why."""


@final
class Operator:
    """One operator of a vendor, called with NumPy arrays for its tensors."""

    def __init__(self, vendor: BaseVendor, context: Context, name: str) -> None:
        self.name = name
        self._vendor = vendor
        self._context = context
        self._parameters = lookup(name).parameters[1:]

    def __call__(self, *arguments: Any, shape: Sequence[int], dtype: Dtype) -> Array:
        """The result, of `shape` and `dtype`, for the arguments in the prototype's order, all but the result itself.

        Raises RefusedError when the call fails or writes beside its tensors.
        """
        left = iter(arguments)
        try:
            with ExitStack() as tensors:
                result = tensors.enter_context(Tensor.empty(self._context, shape, dtype))
                values = [
                    result if parameter.role is Role.output else self._value(parameter, next(left), tensors)
                    for parameter in self._parameters
                ]
                code = self._vendor.call(self.name, self._context, *values)
                self._context.stream.synchronize()
                if code is not Error.Success:
                    raise RefusedError(_REFUSALS.get(code, f"{code.name}: {self._vendor.last_error()}"))
                return result.numpy()
        except GuardError as error:
            raise RefusedError(f"wrote beside a tensor: {error}") from error

    def _value(self, parameter: Parameter, argument: Any, tensors: ExitStack) -> Any:
        if isinstance(argument, np.ndarray):
            return tensors.enter_context(Tensor.from_numpy(self._context, argument))
        return convert_attribute(parameter, argument)


@final
@dataclass(frozen=True)
class Probe:
    """A question about an operator, to be answered for each of some combinations of element types.

    Attributes:
        function: the standard function.
        ask: the question; it takes the operator and the element types of one variant.
        variants: element types, usually one, of a conversion source and target.
        subject: what about the function is asked, where there are several probes of it.
    """

    function: str
    ask: Callable[..., Answers]
    variants: Sequence[tuple[Dtype, ...]]
    subject: str = ""

    def answers(self, vendor: BaseVendor, device: Device, dtypes: Sequence[Dtype]) -> Answers:
        """What `vendor` answers for one variant; why it doesn't under `REFUSED`."""
        if not vendor.has(self.function):
            return {REFUSED: "not implemented"}
        try:
            with Context(device) as context:
                return self.ask(Operator(vendor, context, self.function), *dtypes)
        except RefusedError as refusal:
            return {REFUSED: str(refusal)}


def each(*dtypes: Dtype) -> list[tuple[Dtype, ...]]:
    """Variants of one element type each."""
    return [(dtype,) for dtype in dtypes]


def verdict(holds: Any, yes: str, no: str) -> str:
    """`yes` where all of `holds`, `no` where none does, else how many do."""
    held = np.asarray(holds)
    if held.all():
        return yes
    return f"{yes} in {np.count_nonzero(held)} of {held.size}" if held.any() else no

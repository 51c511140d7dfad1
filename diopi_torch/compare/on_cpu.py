"""Repeat the call of an ATen operator on the CPU.

`CpuCall` repeats it in the element types of the call, and `PreciseCall` in float64. The results on the CPU serve as
expected results for operators that the standard does not define.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.domains import random_generator
from diopi_test.oracle.amplification import measure_amplification
from diopi_test.oracle.budget import Budget
from diopi_test.oracle.data import widen
from diopi_torch.compare.contents import TensorContent, iterate_tensors, map_tensors, read_elements
from diopi_torch.fallback import HIDDEN_WRITES, operator_name
from diopi_torch.layout import DTYPES
from diopi_torch.operators import written_outputs
from lib_rt.formats import is_inexact


@final
class CpuCall:
    """A call of an operator that can be repeated on the CPU, with copies of its tensors from before the call.

    Args:
        operator: the operator.
        named: its arguments by name. The current contents of tensors on any device are copied.

    Attributes:
        contents: the contents of the tensors among the arguments, by name.
    """

    def __init__(self, operator: torch._ops.OpOverload, named: Mapping[str, Any]) -> None:
        self.operator = operator
        self.named = named
        self.contents = {name: TensorContent.from_tensor(tensor) for name, tensor in iterate_tensors(named)}
        declared = operator._schema.arguments
        written = {a.name for a in declared if a.alias_info is not None and a.alias_info.is_write}
        self._written = written | HIDDEN_WRITES.get(operator._schema.name, frozenset())
        self._output_arguments = frozenset(written_outputs(operator))

    @property
    def draws_random_numbers(self) -> bool:
        """Whether the call draws random numbers. Attention operators do so only if `dropout_p` is not 0."""
        return torch.Tag.nondeterministic_seeded in self.operator.tags and self.named.get("dropout_p") != 0

    def is_written(self, name: str) -> bool:
        """Return whether the operator may write the tensor called `name`."""
        return name.partition(".")[0] in self._written

    def outputs(self, returned: Any, named: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """Return all tensors that a call of the operator computed.

        Args:
            returned: what the call returned.
            named: the arguments of the call by name.

        Returns:
            The returned tensors as `result` or `result.number`, and the arguments that the operator may write. A tensor
            that is both is listed once, with the name of the argument.
        """
        written = {name: tensor for name, tensor in iterate_tensors(named) if self.is_written(name)}
        results = iterate_tensors({"result": returned})
        not_written = {
            name: tensor
            for name, tensor in results
            if all(tensor is not written_tensor for written_tensor in written.values())
        }
        return {**not_written, **written}

    def run(self, tensors: Mapping[str, torch.Tensor], numbers: Mapping[str, float]) -> dict[str, torch.Tensor]:
        """Run the operator on the CPU with other values; errors of the operator propagate.

        Args:
            tensors: CPU tensors that replace the tensors of the call, by name; the operator may write them.
            numbers: numbers that replace arguments of the call, by name.

        Returns:
            The outputs by name.
        """
        hosts = {
            id(self.contents[name].tensor): tensor
            for name, tensor in tensors.items()
            # a tensor that is passed twice has one replacement
        }

        def host(name: str, tensor: torch.Tensor) -> torch.Tensor:
            """Return the CPU tensor for a tensor argument; an empty tensor for an argument that is only written."""
            is_for_results = name.partition(".")[0] in self._output_arguments
            return hosts[id(tensor)].new_empty(0) if is_for_results else hosts[id(tensor)]

        named = {
            name: _replace_device(map_tensors(host, value, name)) for name, value in {**self.named, **numbers}.items()
        }
        with torch.no_grad():
            return self.outputs(self.operator(**named), named)

    def run_in_call_dtypes(self) -> dict[str, NDArray[Any]]:
        """Return the outputs on the CPU in the element types of the call, by name; errors of the operator propagate."""
        tensors = {name: content.to_cpu() for name, content in self.contents.items()}
        return {name: read_elements(tensor) for name, tensor in self.run(tensors, {}).items()}


@final
class PreciseCall:
    """A call repeated on the CPU in float64 with the exact values of its inputs, which also derives error budgets.

    Errors that the operator raises for float64 propagate from the constructor.

    Args:
        call: the call.

    Attributes:
        outputs: the outputs by name, as arrays in float64 or complex128, or in integers.
    """

    def __init__(self, call: CpuCall) -> None:
        self._call = call
        self._values = {name: content.data for name, content in call.contents.items()}
        self._numbers = {name: value for name, value in call.named.items() if type(value) is float}
        self.outputs = self._evaluate({name: data.exact for name, data in self._values.items()})

    def budget(self, name: str, dtype: Dtype) -> Budget:
        """Return the error budget of an output.

        The budget consists of the rounding error of the output and its change if the inputs change by half an ulp. It
        does not include rounding errors of intermediate values, which only references of the suite declare.

        Args:
            name: the name of the output.
            dtype: the element type of the output on the device.
        """
        results = list(self.outputs.values())
        amplified = measure_amplification(
            lambda inputs: list(self._evaluate(inputs).values()),
            {**self._values, **self._numbers},
            results,
            [dtype] * len(results),
            next((data.dtype for data in self._values.values() if is_inexact(data.dtype)), dtype),
            self._perturbation_generator,
        )[list(self.outputs).index(name)]
        return Budget.derive(self.outputs[name], dtype, amplified)

    def _perturbation_generator(self) -> Generator:
        """Return a generator, with a seed from the operator's name, that draws the small changes of inputs."""
        return random_generator(operator_name(self._call.operator), "perturbation")

    def _evaluate(self, values: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """Return the outputs in float64 by name, for tensors and floating-point arguments with these values."""
        in_float64 = {name: _to_float64(content, values[name]) for name, content in self._call.contents.items()}
        numbers = {name: values[name] for name in self._numbers if name in values}
        outputs = self._call.run(in_float64, numbers)
        return {name: widen(read_elements(tensor), DTYPES[tensor.dtype]) for name, tensor in outputs.items()}


def _to_float64(content: TensorContent, values: NDArray[Any]) -> torch.Tensor:
    """Return a CPU tensor with these values in float64 or complex128.

    If the tensor of the call has integers or Booleans, ignore `values` and return a copy of that tensor.
    """
    like = content.to_cpu()
    if not (like.is_floating_point() or like.is_complex()):
        return like
    return torch.from_numpy(np.array(values)).reshape(like.shape)


def _replace_device(value: Any) -> Any:
    """Return the CPU device for any device, and any other value unchanged."""
    return torch.device("cpu") if isinstance(value, torch.device) else value

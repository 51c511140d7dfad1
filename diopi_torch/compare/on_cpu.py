"""An operator's call done on the CPU: in its own element types, and in float64."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.data import random_generator, widen
from diopi_test.cases.formats import FloatArray, is_inexact
from diopi_test.oracle import budget
from diopi_torch.compare.contents import Content, array_of, mapped, tensors_in
from diopi_torch.fallback import HIDDEN_WRITES, operator_name
from diopi_torch.layout import DTYPES
from diopi_torch.operators import written_outputs
from diopi_torch.settings import NAME


@final
class CpuCall:
    """A call of an operator, with its arguments as they were before it.

    Args:
        operator: it.
        named: its arguments by name; what is a tensor of the device among them is copied.

    Attributes:
        contents: the tensors among the arguments, by name.
    """

    def __init__(self, operator: torch._ops.OpOverload, named: Mapping[str, Any]) -> None:
        self.operator = operator
        self.named = named
        self.contents = {name: Content.from_tensor(tensor) for name, tensor in tensors_in(named)}
        declared = operator._schema.arguments
        written = {a.name for a in declared if a.alias_info is not None and a.alias_info.is_write}
        self._written = written | HIDDEN_WRITES.get(operator._schema.name, frozenset())
        self._given_for_results = frozenset(written_outputs(operator))

    @property
    def draws(self) -> bool:
        """Whether the operator takes random numbers: attention does for dropout alone."""
        return torch.Tag.nondeterministic_seeded in self.operator.tags and self.named.get("dropout_p") != 0

    def is_written(self, name: str) -> bool:
        """Whether the operator may write the tensor of this name."""
        return name.partition(".")[0] in self._written

    def outputs(self, returned: Any, named: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """What a call gave, by name: what it returned, and the arguments that it wrote."""
        written = {name: tensor for name, tensor in tensors_in(named) if self.is_written(name)}
        results = tensors_in({"result": returned})
        not_written = {
            name: tensor
            for name, tensor in results
            if all(tensor is not written_tensor for written_tensor in written.values())
        }
        return {**not_written, **written}

    def done(self, tensors: Mapping[str, torch.Tensor], numbers: Mapping[str, float]) -> dict[str, torch.Tensor]:
        """The outputs for these tensors of the CPU, which it may write, and these numbers in the place of the call's.

        Raises what the operator raises.
        """
        hosts = {id(self.contents[name].tensor): tensor for name, tensor in tensors.items()}  # given twice, it is one

        def host(name: str, tensor: torch.Tensor) -> torch.Tensor:
            is_for_results = name.partition(".")[0] in self._given_for_results
            return hosts[id(tensor)].new_empty(0) if is_for_results else hosts[id(tensor)]

        named = {name: _on_the_cpu(mapped(host, value, name)) for name, value in {**self.named, **numbers}.items()}
        with torch.no_grad():
            return self.outputs(self.operator(**named), named)

    def here(self) -> dict[str, NDArray[Any]]:
        """The outputs on the CPU in the call's own element types, by name. Raises what the operator raises."""
        tensors = {name: content.on_cpu() for name, content in self.contents.items()}
        return {name: array_of(tensor) for name, tensor in self.done(tensors, {}).items()}


@final
class PreciseCall:
    """A call in float64, of the exact values of its inputs, and by how much their rounding moves what it gives.

    Attributes:
        outputs: by name, in the arithmetic of references.

    Raises what the operator raises, for one in float64.
    """

    def __init__(self, call: CpuCall) -> None:
        self._call = call
        self._values = {name: content.data for name, content in call.contents.items()}
        self._numbers = {name: value for name, value in call.named.items() if type(value) is float}
        self.outputs = self._evaluate({name: data.exact for name, data in self._values.items()})

    def unit(self, name: str, dtype: Dtype) -> FloatArray:
        """s + ulp of each element of an output, as `diopi_test.oracle.budget` derives it."""
        results = list(self.outputs.values())
        amplified = budget.amplification(
            lambda inputs: list(self._evaluate(inputs).values()),
            {**self._values, **self._numbers},
            results,
            [dtype] * len(results),
            next((data.dtype for data in self._values.values() if is_inexact(data.dtype)), dtype),
            self._seed,
        )[list(self.outputs).index(name)]
        return budget.error_unit(self.outputs[name], amplified, 0.0, 0.0, dtype)

    def _seed(self) -> Generator:
        return random_generator(operator_name(self._call.operator), "perturbation")

    def _evaluate(self, values: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """The outputs for tensors and numbers with these values."""
        in_float64 = {name: _in_float64(content, values[name]) for name, content in self._call.contents.items()}
        numbers = {name: values[name] for name in self._numbers if name in values}
        outputs = self._call.done(in_float64, numbers)
        return {name: widen(array_of(tensor), DTYPES[tensor.dtype]) for name, tensor in outputs.items()}


def _in_float64(content: Content, values: NDArray[Any]) -> torch.Tensor:
    """A tensor with these values, in float64 or complex128; as it is if it is of another kind."""
    like = content.on_cpu()
    if not (like.is_floating_point() or like.is_complex()):
        return like
    return torch.from_numpy(np.array(values)).reshape(like.shape)


def _on_the_cpu(value: Any) -> Any:
    return torch.device("cpu") if isinstance(value, torch.device) and value.type == NAME else value

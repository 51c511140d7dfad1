"""Measure what a call through the vendor `torch:cpu` costs more than the same ATen call.

    pip install '.[torch]'
    python benchmarks/torch_calls.py [--calls N]

The figures are microseconds, the best of four hundred short rounds, because other processes do not disturb every short
round. `blocks` is the same vendor with memory that the host does not address, as on an accelerator.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from short_rounds import microseconds

from diopi_impl import BaseVendor, find_vendor
from diopi_impl.torch_cpu import vendor as torch_cpu
from diopi_proto.types import Error, Scalar
from lib_rt import Context, Tensor

SHAPE = (5, 7)
"""The shape of the tensors."""

ONES = torch.ones(SHAPE)
"""The operand of the ATen calls."""

UNIT = Scalar.from_number(1)
"""The argument `alpha` of diopiAdd."""

OPERATORS: dict[str, tuple[int, tuple[Any, ...], Callable[[], object]]] = {
    "diopiRelu": (1, (), lambda: torch.relu(ONES)),
    "diopiAdd": (2, (UNIT,), lambda: torch.add(ONES, ONES, alpha=1.0)),
    "diopiAddInp": (1, (UNIT,), lambda: ONES.clone().add_(ONES, alpha=1.0)),
    "diopiSoftmax": (1, (1,), lambda: torch.softmax(ONES, 1)),
    "diopiSum": (1, ((1,),), lambda: torch.sum(ONES, 1)),
    "diopiWhere": (3, (), lambda: torch.where(ONES > 0, ONES, ONES)),
}
"""The number of tensors that are read besides the result, the other arguments, and the ATen call, by function."""


def measure(vendor: BaseVendor, name: str, calls: int) -> float:
    """Return the microseconds of a call of a function."""
    count, attributes, _ = OPERATORS[name]
    with vendor.open_device() as device, Context(device) as context:
        values = np.ones(SHAPE, np.float32)
        result = Tensor.from_numpy(context, values.sum(1) if name == "diopiSum" else values)
        inputs = [Tensor.from_numpy(context, values) for _ in range(count)]
        if name == "diopiWhere":
            inputs[0] = Tensor.from_numpy(context, values > 0)
        code = vendor.call(name, context, result, *inputs, *attributes)
        assert code is Error.Success, vendor.last_error()
        return microseconds(lambda: vendor.call(name, context, result, *inputs, *attributes), calls)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=20, help="calls per round")
    calls = parser.parse_args().calls
    torch.set_num_threads(1)
    table = Table("function", "ATen", "torch:cpu", "difference", "blocks", title=f"µs per call of {SHAPE} elements")
    blocks = torch_cpu.on_device("torch:blocks", torch.device("cpu"))
    for name, (_, _, operator) in OPERATORS.items():
        aten = microseconds(operator, calls)
        seconds = measure(find_vendor("torch:cpu"), name, calls)
        figures = (aten, seconds, seconds - aten, measure(blocks, name, calls))
        table.add_row(name, *(f"{figure:.1f}" for figure in figures))
    Console().print(table)


if __name__ == "__main__":
    main()

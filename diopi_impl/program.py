"""Programs: sequences of standard calls that a vendor can compile and run as a whole.

A program computes with arrays, which it numbers: first its inputs, then its constants and the results of its steps. A
step calls a standard function or rearranges the elements of an array. `BaseVendor.compile_program` accepts programs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from numpy.typing import NDArray

from diopi_impl.specs import OutSpec

RunProgram = Callable[[Sequence[NDArray[Any]]], Sequence[NDArray[Any]]]
"""A compiled program: returns the arrays of the outputs for the arrays of the inputs."""


@final
@dataclass(frozen=True)
class ProgramArray:
    """An argument that is the array with this number."""

    number: int


@final
@dataclass(frozen=True, kw_only=True)
class FunctionStep:
    """A call of a standard function.

    Attributes:
        function: the name of the function.
        arguments: the values of the prototype's arguments, in order: a `ProgramArray` for a tensor, a list for an array
            of tensors, None for an omitted argument, and the values that functional implementations take for others.
        specs: the specs of the results, in order; None for an omitted result.
        numbers: the number of the array of each result: a tuple for an array of tensors, None for an omitted result.
    """

    function: str
    arguments: Sequence[Any]
    specs: Sequence[OutSpec]
    numbers: Sequence[int | tuple[int, ...] | None]


@final
@dataclass(frozen=True, kw_only=True)
class RearrangeStep:
    """A reshape, in row-major order, followed by a permutation of the axes.

    Attributes:
        source: the number of the array.
        shape: the shape after the reshape.
        axes: the axes of the reshaped array in the order that they have in the result.
        number: the number of the resulting array.
    """

    source: int
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    number: int


@final
@dataclass(frozen=True, kw_only=True)
class FunctionProgram:
    """A sequence of calls.

    Attributes:
        inputs: the number of inputs, whose arrays have the numbers 0, 1, ….
        constants: the constant arrays by number.
        steps: the steps, in an order in which each array is computed before it is used.
        outputs: the numbers of the arrays to return.
    """

    inputs: int
    constants: Mapping[int, NDArray[Any]]
    steps: Sequence[FunctionStep | RearrangeStep]
    outputs: Sequence[int]

    def run(
        self,
        arrays: Sequence[Any],
        call: Callable[[FunctionStep, Sequence[Any]], Sequence[Any]],
        rearrange: Callable[[RearrangeStep, Any], Any],
    ) -> list[Any]:
        """Run the steps and return the outputs.

        Args:
            arrays: the inputs, of any class of arrays.
            call: returns the results of a step for the values of its arguments.
            rearrange: returns the result of a step for its array.

        Returns:
            The arrays of the outputs.
        """
        values: dict[int, Any] = dict(enumerate(arrays)) | dict(self.constants)
        for step in self.steps:
            if isinstance(step, RearrangeStep):
                values[step.number] = rearrange(step, values[step.source])
                continue
            results = call(step, replace_arrays(step.arguments, values))
            for number, result in zip(step.numbers, results, strict=True):
                if isinstance(number, tuple):
                    values.update(zip(number, result, strict=True))
                elif number is not None:
                    values[number] = result
        return [values[number] for number in self.outputs]


def replace_arrays(arguments: Sequence[Any], values: Mapping[int, Any]) -> list[Any]:
    """Return the arguments of a step, or the entries of one, with the arrays of `values` in place of their numbers."""
    return [
        values[argument.number]
        if isinstance(argument, ProgramArray)
        else replace_arrays(argument, values)
        if isinstance(argument, list)
        else argument
        for argument in arguments
    ]

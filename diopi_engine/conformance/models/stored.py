"""Files of a network's inputs and expected outputs, which can be read without PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

import numpy as np

from diopi_engine.conformance.bench import NotConformingError
from diopi_engine.sizes import Array
from diopi_proto.messages import pluralize
from diopi_proto.types import Dtype
from diopi_test.checks.values import compare
from diopi_test.oracle.budget import Budget
from diopi_test.oracle.records import Expected


@final
@dataclass(frozen=True)
class ReferenceSamples:
    """Inputs of a network with the expected outputs; the first axis of each array counts the samples.

    Attributes:
        inputs: the input arrays.
        outputs: the expected outputs, with error budgets.
    """

    inputs: Sequence[Array]
    outputs: Sequence[Expected]

    def select(self, chosen: slice | Array) -> ReferenceSamples:
        """Return the samples that a slice or an index array selects."""
        outputs = [
            replace(output, values=output.values[chosen], budget=_output_budget(output).select(chosen))
            for output in self.outputs
        ]
        return ReferenceSamples([array[chosen] for array in self.inputs], outputs)

    def save(self, path: Path) -> None:
        """Write the inputs, and the values and budgets of the expected outputs, to a file."""
        arrays = {f"input{n}": array for n, array in enumerate(self.inputs)}
        for n, output in enumerate(self.outputs):
            arrays |= {f"values{n}": output.values, f"unit{n}": _output_budget(output).unit}
        np.savez(path, allow_pickle=False, **arrays)

    @classmethod
    def load(cls, path: Path) -> ReferenceSamples:
        """Return samples that `save` wrote. The expected outputs are float32, and have only values and budgets."""
        with np.load(path, allow_pickle=False) as file:
            inputs = [file[f"input{n}"] for n in range(sum(name.startswith("input") for name in file))]
            count = sum(name.startswith("values") for name in file)
            outputs = [
                Expected(values=file[f"values{n}"], dtype=Dtype.float32, budget=Budget(file[f"unit{n}"]))
                for n in range(count)
            ]
        return cls(inputs, outputs)

    def check(self, subject: str, outputs: Sequence[Array]) -> float:
        """Return the largest error / budget of the results; raise NotConformingError if a result is wrong."""
        return max(
            _check_output(f"output {n} of {subject}", *pair)
            for n, pair in enumerate(zip(outputs, self.outputs, strict=True))
        )


def _output_budget(expected: Expected) -> Budget:
    """Return the budget of an output. Every output has one, because outputs of networks need not be exact."""
    assert expected.budget is not None
    return expected.budget


def _check_output(subject: str, actual: Array, expected: Expected) -> float:
    """Return the largest error / budget of an output.

    Raises:
        NotConformingError: the shape is wrong, an error exceeds its budget, or the root mean square of the errors
            exceeds its limit.
    """
    if actual.shape != expected.values.shape:
        raise NotConformingError(f"{subject} has shape {list(actual.shape)}, expected {list(expected.values.shape)}")
    comparison = compare(actual, expected)
    if comparison.is_wrong.any():
        place = tuple(int(index) for index in np.argwhere(comparison.is_wrong)[0])
        budget = _output_budget(expected).limit[place]
        count = pluralize(int(comparison.is_wrong.sum()), "wrong element")
        raise NotConformingError(
            f"{subject} has {count} out of {actual.size}; the first, at {place}, is {actual[place]}, "
            f"expected {expected.values[place]:.9g} ± {budget:.2g}"
        )
    if comparison.errors is not None and comparison.exceeds_rms_limit:
        raise NotConformingError(f"the errors of {subject} have {comparison.errors.describe_excess()}")
    return comparison.ratio or 0.0

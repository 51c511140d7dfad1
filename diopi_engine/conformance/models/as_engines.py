"""The cases that run the networks of `zoo` as engines of a library under test."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np

from diopi_engine.conformance.bench import GUARD, EngineBench, check_guard, check_unchanged
from diopi_engine.conformance.models.names import AS_ENGINES
from diopi_engine.conformance.models.stored import ReferenceSamples

BATCHES = (slice(0, 10), slice(8, 10), slice(1, 7))
"""The samples of each execution: several patches, part of a patch, and samples that begin within a patch.

A patch is the number of samples that a core computes at once (`making.PATCH`).
"""


def run_engines(names: Sequence[str], bench: EngineBench) -> None:
    """Execute the engines of networks alternately, while all of their execution contexts exist."""
    samples = {name: ReferenceSamples.load(bench.folder / f"{name}.npz") for name in names}
    with ExitStack() as stack:
        engines = {name: stack.enter_context(bench.engine(name)) for name in names}
        contexts = {name: stack.enter_context(bench.context(engine)) for name, engine in engines.items()}
        for batch in BATCHES:
            for name, context in contexts.items():
                _execute_and_check(bench, context, name, samples[name].select(batch))


def _execute_and_check(bench: EngineBench, context: Any, name: str, samples: ReferenceSamples) -> None:
    """Execute a batch; check that its outputs are within their budgets and that nothing else is written.

    Args:
        bench: the library under test.
        context: the handle of the execution context.
        name: the name of the network, for messages.
        samples: the inputs and the expected outputs of the batch.
    """
    size = len(samples.inputs[0])
    inputs = [np.array(array, order="C") for array in samples.inputs]  # copies, which the library might change
    outputs = [np.full((size + 1, *expected.values.shape[1:]), GUARD, np.float32) for expected in samples.outputs]
    bench.client.execute(context, size, [*inputs, *outputs])
    samples.check(f"{name} for a batch of {size}", [output[:size] for output in outputs])
    for number, output in enumerate(outputs):
        check_guard(f"output {number} of {name}", output[size:])
    for number, (array, original) in enumerate(zip(inputs, samples.inputs, strict=True)):
        check_unchanged(f"input {number} of {name}", array, original)


CASES: Mapping[str, Callable[[EngineBench], None]] = {
    name: partial(run_engines, names) for name, names in AS_ENGINES.items()
}
"""The cases by name."""

"""Run networks on a vendor: `python -m diopi_engine.conformance.models.by_operators VENDOR FOLDER DESCRIPTOR`.

In each case, PyTorch runs a network operator by operator on the vendor's device.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import torch

import diopi_torch
from diopi_engine.conformance.bench import NotConformingError
from diopi_engine.conformance.models.names import BY_OPERATORS
from diopi_engine.conformance.models.stored import ReferenceSamples
from diopi_engine.conformance.models.zoo import build, run_module
from diopi_engine.conformance.worker import run_named_cases


def run_network(name: str, folder: Path) -> str:
    """Run a network operator by operator, and check its outputs.

    Args:
        name: the name of the network.
        folder: the folder with the samples of the network.

    Returns:
        A remark that lists the operators that ran on the CPU instead; empty if the vendor ran all of them.

    Raises:
        NotConformingError: an operator fails, or an output is wrong.
    """
    samples = ReferenceSamples.load(folder / f"{name}.npz")
    diopi_torch.reset_fallbacks()
    try:
        module = build(name).module.to("diopi")
        outputs = run_module(module, [torch.from_numpy(array).to("diopi") for array in samples.inputs])
        arrays = [output.cpu().numpy() for output in outputs]
    except RuntimeError as error:  # PyTorch raises it for an operator that the vendor rejects
        raise NotConformingError(f"the network does not run: {error}") from error
    samples.check(name, arrays)
    return f"ran on the CPU: {', '.join(names)}" if (names := diopi_torch.fallbacks()) else ""


CASES: Mapping[str, Callable[[Path], str]] = {case: partial(run_network, name) for case, name in BY_OPERATORS.items()}
"""The cases by name."""


if __name__ == "__main__":
    diopi_torch.use_vendor(sys.argv[1])
    run_named_cases(CASES, Path(sys.argv[2]), int(sys.argv[3]))

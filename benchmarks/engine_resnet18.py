"""Run PyTorch's ResNet-18 as an engine: a C program executes it through libhgrt.so in batches of 1, 7 and 64.

    python benchmarks/engine_resnet18.py [--width 64] [--size 224] [--classes 1000] [--library build/libhgrt.so]

The program is `examples/engine_c/batches.c`. For each batch, the script prints the duration of an execution and the
largest error / budget; a value up to 1 is within the budget. The budgets are those of
`diopi_engine/conformance/models`. The exit status is 1 if an error exceeds its budget. The batches repeat seven
different pictures.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

import diopi_engine
from diopi_engine import Input
from diopi_engine.conformance.bench import NotConformingError
from diopi_engine.conformance.models.making import compute_samples
from diopi_engine.conformance.models.zoo import ZooNetwork, resnet, with_trained_statistics
from diopi_engine.proto import headers
from diopi_engine.runtime.build import build

BATCHES = (1, 7, 64)
"""The numbers of pictures in a batch."""

PICTURES = 7
"""The number of different pictures. It differs from the patch size, so that repetitions do not align with patches."""

SOURCE = Path(__file__).parents[1] / "examples" / "engine_c" / "batches.c"
"""The C program that executes the engine."""


def network(width: int, size: int, classes: int) -> ZooNetwork:
    """Return ResNet-18 with random weights, for square pictures.

    Args:
        width: the number of channels of the first stage.
        size: the height and the width of a picture.
        classes: the number of classes.
    """
    torch.manual_seed(0)
    inputs = [Input("pictures", ("b", 3, size, size), layout="NCHW")]
    return ZooNetwork(
        module=with_trained_statistics(resnet(width, classes=classes)), inputs=inputs, outputs=["classes"]
    )


def compile_program(folder: Path, library: Path) -> Path:
    """Compile the C program into a folder and return its path."""
    program = folder / "batches"
    options = ["-std=c11", "-O2", f"-I{headers.INCLUDE_DIR}", f"-Wl,-rpath,{library.parent}"]
    subprocess.run(["cc", *options, str(SOURCE), str(library), "-o", str(program)], check=True)
    return program


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the duration and the error of each batch; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name, default in (("width", 64), ("size", 224), ("classes", 1000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--library", type=Path, help="a libhgrt.so; the reference runtime is built if none is named")
    options = parser.parse_args(arguments)
    built_network = network(options.width, options.size, options.classes)
    samples = compute_samples(built_network, PICTURES)
    picture_numbers = {batch: np.arange(batch) % PICTURES for batch in BATCHES}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        program = compile_program(folder, options.library.resolve() if options.library else build(folder))
        engine = diopi_engine.compile(
            built_network.module,
            built_network.inputs,
            outputs=built_network.outputs,
            platforms=["cpu"],
            name="resnet18",
        )
        engine.save(folder / "engine")
        samples.inputs[0][picture_numbers[max(BATCHES)]].tofile(folder / "pictures")
        files = [folder / name for name in ("engine", "pictures", "classes")]
        process = subprocess.run([program, *files, *map(str, BATCHES)], check=True, capture_output=True, text=True)
        times = [float(line.split()[-2]) for line in process.stdout.splitlines()]
        outputs_in_c = [np.fromfile(f"{files[2]}.{batch}", np.float32).reshape(batch, -1) for batch in BATCHES]
    status = 0
    for batch, milliseconds, classes in zip(BATCHES, times, outputs_in_c, strict=True):
        try:
            error = f"{samples.select(picture_numbers[batch]).check('ResNet-18', [classes]):.3f} of its budget"
        except NotConformingError as failure:
            error, status = str(failure), 1
        print(f"batch {batch}: {milliseconds:.1f} ms, {milliseconds / batch:.2f} for a picture; largest error {error}")
    return status


if __name__ == "__main__":
    sys.exit(main())

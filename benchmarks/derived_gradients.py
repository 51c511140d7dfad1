"""Compare the gradient functions of `jax_cpu` that are written by hand with derived ones: accuracy and time.

    python benchmarks/derived_gradients.py [PATTERN …] [--level full]

The table has a row for each gradient function of `CANDIDATES` that `diopi_impl/jax_cpu/gradients.py` does not derive
yet. Each pair of columns has the value of the hand-written function and that of the derived one:

- `ratio`: the largest error / budget over the cases of the level
- `small`: the processor time of the function's first case, in microseconds
- `model`: the processor time of the function's first case at level large, in microseconds

To repeat the comparison for a function that is derived now, check out the commit before the function was derived.

These functions stay hand-written:

- the candidates, for the reason in `REASONS`
- gradients that the standard defines by a saved result (softmax, tanh, sigmoid, the norms, attention, max pooling by
  indices): they don't receive the arguments of the forward function, or would compute it again
- gradients whose arguments are checked on the host first (index, gather, embedding, sort)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fnmatch import fnmatch
from time import process_time

import click
from rich.console import Console
from rich.table import Table

from diopi_impl import VendorError
from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.gradients import DERIVED, SIMPLE, Derivation, derive_gradient
from diopi_impl.jax_cpu.jit import adapt_by_compiling
from diopi_impl.vendor import Vendor
from diopi_proto.interface import lookup
from diopi_test.cases.case import Case
from diopi_test.cases.selection import select_cases
from diopi_test.checks import values
from diopi_test.execution.call import Call, RejectedCallError
from diopi_test.oracle.evaluation import compute_baseline_case, draw_case_with_zeros
from lib_rt import Device

# Arguments of derivations that several functions share
POINTS = {"gradient": "grad_out", "inputs": ("points",), "shape": "grad_points"}
TOP = {"gradient": "top_grad", "shape": "bottom_grad"}

CANDIDATES: dict[str, Derivation] = {
    "diopiHardtanhBackward": SIMPLE,
    "diopiHardswishBackward": SIMPLE,
    "diopiThresholdBackward": Derivation(constants={"value": 0.0}),
    "diopiSiluBackward": SIMPLE,
    "diopiMSELossBackward": SIMPLE,
    "diopiSmoothL1LossBackward": SIMPLE,
    "diopiBCELossBackward": SIMPLE,
    "diopiBCEWithLogitsBackward": SIMPLE,
    "diopiSigmoidFocalLossBackward": Derivation(inputs=("inputs",), names={"inputs": "input", "targets": "target"}),
    "diopiNLLLossBackward": SIMPLE,
    "diopiCrossEntropyLossBackward": SIMPLE,
    "diopiAvgPool1dBackward": SIMPLE,
    "diopiAvgPool2dBackward": SIMPLE,
    "diopiAvgPool3dBackward": SIMPLE,
    "diopiNormalizeBackward": SIMPLE,
    "diopiCdistBackward": Derivation(inputs=("input1",), constants={"compute_mode": None}),
    "diopiInstanceNormBackward": Derivation(inputs=("input", "scale", "bias")),
    "diopiMatmulBackward": Derivation(inputs=("input", "other"), gradient="grad_out"),
    "diopiCumsumBackward": Derivation(shape="grad_output"),
    "diopiUnfoldBackward": Derivation(shape="input_sizes"),
    "diopiSelectBackward": Derivation(shape="input_sizes"),
    "diopiSliceBackward": Derivation(shape="input_sizes"),
    "diopiUpsampleNearestBackward": Derivation(shape="in_size", names={"size": "out_size"}),
    "diopiUpsampleLinearBackward": Derivation(shape="in_size", names={"size": "out_size"}),
    "diopiCarafeNaiveBackwardMmcv": Derivation(inputs=("features", "masks"), gradient="top_grad"),
    "diopiCorrelationBackwardMmcv": Derivation(inputs=("input1", "input2")),
    "diopiMsDeformAttnBackwardMmcv": Derivation(inputs=("value", "sampling_loc", "attn_weight")),
    "diopiDeformConvBackwardInputMmcv": Derivation(inputs=("input", "offset"), gradient="gradOutput"),
    "diopiAssignScoreWithkBackwardMmcv": Derivation(
        inputs=("points", "centers", "scores"), gradient="grad_out", constants={"output": None}
    ),
    "diopiGatherPointsBackwardMmcv": Derivation(**POINTS),
    "diopiGroupPointsBackwardMmcv": Derivation(**POINTS),
    "diopiThreeInterpolateBackwardMmcv": Derivation(**POINTS),
    "diopiStackGroupPointsBackwardMmcv": Derivation(
        inputs=("features_tensor",), gradient="grad_out_tensor", shape="grad_features_tensor"
    ),
    "diopiTinShiftBackwardMmcv": Derivation(shape="grad_input"),
    "diopiPsamaskBackwardMmcv": Derivation(shape="grad_input"),
    "diopiPrroiPoolbackwardMmcv": Derivation(shape="grad_input"),
    "diopiRoiAlignRotatedBackwardMmcv": Derivation(**TOP),
    "diopiRiroiAlignRotatedBackwardMmcv": Derivation(inputs=("features",), **TOP),
    "diopiRotatedFeatureAlignBackwardMmcv": Derivation(inputs=("features",), **TOP),
}
"""The gradient functions that a derivation can express, with the derivation."""

# Reasons that several functions share
SHAPE_OF_RESULT = "the forward function reads the shape of its result, which the gradient function doesn't receive"

INTEGERS = "integers, which jax.vjp does not differentiate"

REASONS: dict[str, str] = {
    "diopiHardtanhBackward": "the sign of zeros",
    "diopiHardswishBackward": "the standard's slope at -3 and 3, infinities",
    "diopiSmoothL1LossBackward": "the standard's slope 0 of equal elements where beta is 0",
    "diopiThresholdBackward": INTEGERS,
    "diopiSelectBackward": INTEGERS,
    "diopiSliceBackward": INTEGERS,
    "diopiBCELossBackward": "the standard's least denominator of 1e-12",
    "diopiSigmoidFocalLossBackward": "accuracy where the sigmoid rounds to 1",
    "diopiNormalizeBackward": "the standard's slope of small and infinite norms, and time",
    "diopiInstanceNormBackward": "gradients of a scale and a bias that are NULL",
    "diopiCdistBackward": "the standard's slope at equal points, broadcast inputs, and time",
    "diopiCumsumBackward": "accuracy: 1.25 times the error",
    "diopiAssignScoreWithkBackwardMmcv": "calls without neighbours",
    "diopiCarafeNaiveBackwardMmcv": "it is also a part of diopiCarafeBackwardMmcv",
    "diopiPrroiPoolbackwardMmcv": "time of small calls",
    "diopiRoiAlignRotatedBackwardMmcv": "accuracy, and 40 times the time",
    "diopiRiroiAlignRotatedBackwardMmcv": "accuracy, and 40 times the time",
    "diopiThreeInterpolateBackwardMmcv": "time: 1.3 times at level large",
    "diopiStackGroupPointsBackwardMmcv": SHAPE_OF_RESULT,
    "diopiTinShiftBackwardMmcv": SHAPE_OF_RESULT,
    "diopiPsamaskBackwardMmcv": SHAPE_OF_RESULT,
}
"""The reasons why candidates stay hand-written."""


def derived_vendor() -> tuple[Vendor, dict[str, str]]:
    """Return a vendor with derived gradients, and the reasons why some gradients can't be derived."""
    found, failures = Vendor("derived", "1", vendor.runtime, host_addressable=True, adapt=adapt_by_compiling), {}
    for name, derivation in CANDIDATES.items():
        try:
            found.implements(name)(derive_gradient(name, derivation, vendor))
        except (KeyError, ValueError, VendorError) as error:
            failures[name] = str(error)
    return found, failures


def worst_ratio(vendors: Sequence[Vendor], device: Device, name: str, level: str) -> list[float]:
    """Return the largest error / budget of each vendor; infinity if a case fails."""
    worst = [0.0] * len(vendors)
    for case in select_cases(name, level):
        baseline_case = compute_baseline_case(lookup(name), case)
        for i, candidate in enumerate(vendors):
            try:
                with Call(candidate, device, baseline_case) as call:
                    result = values.check(call.run())
                ratio = (result.ratio or 0.0) if result.passed else math.inf
            except RejectedCallError:
                ratio = math.inf
            worst[i] = max(worst[i], ratio)
    return worst


def call_times(vendors: Sequence[Vendor], device: Device, name: str, case: Case, rounds: int) -> list[float]:
    """Return the best processor time of a call by each vendor, in microseconds. The vendors take turns."""
    data = draw_case_with_zeros(lookup(name), case)
    best = [math.inf] * len(vendors)
    for i, candidate in enumerate(vendors):
        with Call(candidate, device, data) as call:
            attempt = call.prepare()
            call.send_inputs()
            attempt()
            for _ in range(rounds):
                start = process_time()
                attempt()
                best[i] = min(best[i], process_time() - start)
    return [time * 1e6 for time in best]


def first_float32(name: str, level: str) -> Case | None:
    """Return the function's first float32 case with elements, or None."""
    cases = select_cases(name, level)
    return next((case for case in cases if case.dtype.name == "float32" and "empty" not in case.label), None)


@click.command(help=__doc__)
@click.argument("patterns", nargs=-1)
@click.option("--level", default="full", show_default=True, help="Level of the cases for the accuracy.")
def main(patterns: tuple[str, ...], level: str) -> None:
    """Print the table for the functions that the patterns match."""
    derived, failures = derived_vendor()
    vendors = (vendor, derived)
    table = Table("gradient", "ratio", "derived", "small", "derived", "model", "derived", "kept for")
    with vendor.open_device() as device:
        for name in CANDIDATES:
            if name in DERIVED or not any(fnmatch(name, pattern) for pattern in patterns or ("*",)):
                continue
            if name in failures:
                table.add_row(name, failures[name])
                continue
            row = [f"{ratio:.3f}" for ratio in worst_ratio(vendors, device, name, level)]
            for sizes, rounds in (("smoke", 200), ("large", 5)):
                case = first_float32(name, sizes)
                row += [f"{t:.0f}" for t in call_times(vendors, device, name, case, rounds)] if case else ["-", "-"]
            table.add_row(name, *row, REASONS.get(name, ""))
            print(name, *row, flush=True)
    Console().print(table)


if __name__ == "__main__":
    main()

"""Compare hand-written gradient functions of `jax_cpu` with derived ones: accuracy and time.

    python benchmarks/derived_gradients.py [PATTERN …] [--level full]

A derived gradient function is the forward function differentiated by JAX. The table has a row for each function in
`CANDIDATES` that `diopi_impl/jax_cpu/gradients.py` does not derive yet. The table has three pairs of columns. In each
pair, the first column is for the hand-written function, and the column `derived` is for the derived one:

- `ratio`: the largest error / budget over the cases of the level
- `small`: the processor time of a call with the arguments of the first float32 smoke case, in microseconds
- `model`: the processor time of a call with the arguments of the first float32 case of level large, in microseconds

To repeat the comparison for a function that is already derived, check out the commit before the function was derived.

These functions stay hand-written:

- the candidates in `REASONS`, for the reason stated there
- gradient functions that receive a saved result of the forward function (softmax, tanh, sigmoid, the norms, attention,
  max pooling by indices): they don't receive all arguments of the forward function, or would have to repeat it
- gradient functions that first check their arguments on the host (index, gather, embedding, sort)
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

POINT_ARGUMENTS = {"gradient": "grad_out", "inputs": ("points",), "shape": "grad_points"}
"""Arguments of `Derivation` for functions that gather or interpolate features of points."""

POOLING_ARGUMENTS = {"gradient": "top_grad", "shape": "bottom_grad"}
"""Arguments of `Derivation` for functions that pool regions."""

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
    "diopiGatherPointsBackwardMmcv": Derivation(**POINT_ARGUMENTS),
    "diopiGroupPointsBackwardMmcv": Derivation(**POINT_ARGUMENTS),
    "diopiThreeInterpolateBackwardMmcv": Derivation(**POINT_ARGUMENTS),
    "diopiStackGroupPointsBackwardMmcv": Derivation(
        inputs=("features_tensor",), gradient="grad_out_tensor", shape="grad_features_tensor"
    ),
    "diopiTinShiftBackwardMmcv": Derivation(shape="grad_input"),
    "diopiPsamaskBackwardMmcv": Derivation(shape="grad_input"),
    "diopiPrroiPoolbackwardMmcv": Derivation(shape="grad_input"),
    "diopiRoiAlignRotatedBackwardMmcv": Derivation(**POOLING_ARGUMENTS),
    "diopiRiroiAlignRotatedBackwardMmcv": Derivation(inputs=("features",), **POOLING_ARGUMENTS),
    "diopiRotatedFeatureAlignBackwardMmcv": Derivation(inputs=("features",), **POOLING_ARGUMENTS),
}
"""The derivations of all gradient functions that can be derived, by function."""

NEEDS_SHAPE_REASON = "the forward function reads the shape of its result, which the gradient function doesn't receive"
"""The reason for functions whose forward function depends on the shape of the result tensor."""

INTEGER_REASON = "the function accepts integers, which jax.vjp does not differentiate"
"""The reason for functions that accept integer tensors."""

REASONS: dict[str, str] = {
    "diopiHardtanhBackward": "the sign of zeros",
    "diopiHardswishBackward": "the standard's slope at -3 and 3, infinities",
    "diopiSmoothL1LossBackward": "the standard's slope 0 of equal elements where beta is 0",
    "diopiThresholdBackward": INTEGER_REASON,
    "diopiSelectBackward": INTEGER_REASON,
    "diopiSliceBackward": INTEGER_REASON,
    "diopiBCELossBackward": "the standard's least denominator of 1e-12",
    "diopiSigmoidFocalLossBackward": "accuracy where the sigmoid rounds to 1",
    "diopiNormalizeBackward": "the standard's slope of small and infinite norms, and time",
    "diopiInstanceNormBackward": "gradients of a scale and a bias that are NULL",
    "diopiCdistBackward": "the standard's slope at equal points, broadcast inputs, and time",
    "diopiCumsumBackward": "accuracy: 1.25 times the error",
    "diopiAssignScoreWithkBackwardMmcv": "calls without neighbors",
    "diopiCarafeNaiveBackwardMmcv": "it is also a part of diopiCarafeBackwardMmcv",
    "diopiPrroiPoolbackwardMmcv": "time of small calls",
    "diopiRoiAlignRotatedBackwardMmcv": "accuracy, and 40 times the time",
    "diopiRiroiAlignRotatedBackwardMmcv": "accuracy, and 40 times the time",
    "diopiThreeInterpolateBackwardMmcv": "time: 1.3 times as long at level large",
    "diopiStackGroupPointsBackwardMmcv": NEEDS_SHAPE_REASON,
    "diopiTinShiftBackwardMmcv": NEEDS_SHAPE_REASON,
    "diopiPsamaskBackwardMmcv": NEEDS_SHAPE_REASON,
}
"""The reasons why candidates stay hand-written, by function."""


def derived_vendor() -> tuple[Vendor, dict[str, str]]:
    """Return a vendor with derived gradient functions, and the errors of failed derivations by function."""
    vendor_of_derived, failures = (
        Vendor("derived", "1", vendor.runtime, host_addressable=True, adapt=adapt_by_compiling),
        {},
    )
    for name, derivation in CANDIDATES.items():
        try:
            vendor_of_derived.implements(name)(derive_gradient(name, derivation, vendor))
        except (KeyError, ValueError, VendorError) as error:
            failures[name] = str(error)
    return vendor_of_derived, failures


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


def call_times(vendors: Sequence[Vendor], device: Device, name: str, case: Case, repetitions: int) -> list[float]:
    """Return the shortest processor time of a call by each vendor over some repetitions, in microseconds."""
    data = draw_case_with_zeros(lookup(name), case)
    best = [math.inf] * len(vendors)
    for i, candidate in enumerate(vendors):
        with Call(candidate, device, data) as call:
            attempt = call.prepare()
            call.send_inputs()
            attempt()
            for _ in range(repetitions):
                start = process_time()
                attempt()
                best[i] = min(best[i], process_time() - start)
    return [time * 1e6 for time in best]


def first_float32_case(name: str, level: str) -> Case | None:
    """Return a function's first float32 case whose tensors are not empty; None if there is none."""
    cases = select_cases(name, level)
    return next((case for case in cases if case.dtype.name == "float32" and "empty" not in case.label), None)


@click.command(help=__doc__)
@click.argument("patterns", nargs=-1)
@click.option("--level", default="full", show_default=True, help="Level of the cases for the accuracy.")
def main(patterns: tuple[str, ...], level: str) -> None:
    """Print the table for the functions that match a pattern, or for all functions without patterns."""
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
            for sizes, repetitions in (("smoke", 200), ("large", 5)):
                case = first_float32_case(name, sizes)
                times = call_times(vendors, device, name, case, repetitions) if case else ()
                row += [f"{time:.0f}" for time in times] or ["-", "-"]
            table.add_row(name, *row, REASONS.get(name, ""))
            print(name, *row, flush=True)
    Console().print(table)


if __name__ == "__main__":
    main()

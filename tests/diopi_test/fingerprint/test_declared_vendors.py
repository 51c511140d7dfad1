"""The vendors with a known arithmetic differ from torch_cpu in what their declaration names, and in nothing else."""

from collections.abc import Mapping

import numpy as np
import pytest
from small_vendor import Array

pytest.importorskip("torch", reason="the vendors change torch_cpu, which needs PyTorch: pip install 'diopi[torch]'")

from declared_vendors import EMULATED  # imports PyTorch

from diopi_impl import BaseVendor, find_vendor
from diopi_proto.types import Dtype
from diopi_test.fingerprint.probe import ProbedOperator
from lib_rt import Context

SINGLE, HALF = Dtype.float32, Dtype.float16
TINY = float(np.finfo(np.float32).tiny)


def run_calls(vendor: BaseVendor) -> Mapping[str, Array]:
    """Return the results of products and convolutions of a vendor by name."""
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((40, 70), (70, 30)))
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 8, 15, 17), (6, 4, 3, 3)))
    grad = rng.standard_normal((2, 6, 15, 17)).astype(np.float32)
    attributes = ((1, 1), (1, 1), (1, 1), 2)
    with vendor.open_device() as device, Context(device) as context:

        def operator(name: str) -> ProbedOperator:
            return ProbedOperator(vendor, context, name)

        return {
            "products": operator("diopiMm")(a, b, shape=(40, 30), dtype=SINGLE),
            "half products": operator("diopiMm")(*(f.astype(np.float16) for f in (a, b)), shape=(40, 30), dtype=HALF),
            "convolutions": operator("diopiConvolution2d")(x, w, None, *attributes, shape=grad.shape, dtype=SINGLE),
            "half sums": operator("diopiSum")(a.astype(np.float16), (1,), shape=(40,), dtype=HALF),
            "sums": operator("diopiSum")(a, (1,), shape=(40,), dtype=SINGLE),
            "tanh": operator("diopiTanh")(a, shape=a.shape, dtype=SINGLE),
            "softmax": operator("diopiSoftmax")(a, 1, shape=a.shape, dtype=SINGLE),
            "subnormal numbers": operator("diopiMul")(a, np.full_like(a, TINY / 9), shape=a.shape, dtype=SINGLE),
        }


CHANGED = {
    **dict.fromkeys(("tf32", "tf32-truncated", "hf32", "bf16x3", "bf16"), frozenset({"products", "convolutions"})),
    "half-accumulation": {"half products", "half sums"},
    **dict.fromkeys(("winograd-f2", "winograd-f4", "fft", "winograd-f4-tf32"), frozenset({"convolutions"})),
    **dict.fromkeys(("two-ulp", "four-ulp"), frozenset({"tanh", "softmax"})),
    "fast-math": {"tanh", "softmax", "subnormal numbers"},
    **dict.fromkeys(("flush-results", "flush-inputs"), frozenset({"subnormal numbers"})),
    "split-k": {"products", "convolutions", "sums"},
}


@pytest.mark.parametrize("name", EMULATED)
def test_a_vendor_differs_only_in_what_its_declaration_names(name: str) -> None:
    honest, emulated = (run_calls(vendor) for vendor in (find_vendor("torch_cpu"), EMULATED[name]))
    differing = {call for call, result in honest.items() if not np.array_equal(result, emulated[call])}
    assert differing == CHANGED[name]
    for call, result in honest.items():
        largest = np.abs(result.astype(np.float64)).max()
        error = np.abs(emulated[call].astype(np.float64) - result).max() / largest
        # the transforms of F(4 × 4, 3 × 3) enlarge the errors of products in TF32
        limit = 1e-2 if name == "winograd-f4-tf32" else 4e-3
        assert error < limit or call == "subnormal numbers"

"""The diagnosis of a vendor that does not declare its arithmetic names the arithmetic."""

import pytest
from commands import run_here
from sampling import sampled

pytest.importorskip("torch", reason="the vendors change torch_cpu, which needs PyTorch: pip install 'diopi[torch]'")


DIAGNOSES = [
    ("tf32", "diopiMm", "factors of float32 products are rounded to the 11 significant bits of TF32"),
    ("hf32", "diopiMm", "factors of float32 products are rounded to the 12 significant bits of HF32"),
    ("bf16", "diopiMm", "factors of float32 products are rounded to the 8 significant bits of bfloat16"),
    ("bf16x3", "diopiMm", "float32 products are sums of products of bfloat16 numbers"),
    ("winograd_f4", "diopiConvolution2d", "convolutions with kernels of 3 × 3 use the algorithm of Winograd"),
    ("fft", "diopiConvolution2d", "convolutions use Fourier transforms"),
    ("fast_math", "diopiTanh", "tanh is approximated with about 11 correct bits"),
    ("fast_math", "diopiExp", "exp, log or another elementary function is approximated with too few digits"),
    ("changing_order", "diopiMm", "sums are added in an order that changes from call to call"),
    (
        "half_accumulation",
        "diopiMm",
        "sums or intermediate results of half precision are rounded",
    ),
]
"""A vendor, a function and the diagnosis of a run of the function."""


@pytest.mark.parametrize(("vendor", "function", "diagnosis"), sampled(DIAGNOSES, 1))
def test_the_diagnosis_names_the_arithmetic(vendor: str, function: str, diagnosis: str) -> None:
    done = run_here("run", "--vendor", f"declared_vendors:{vendor}", "--function", function, "-n", 1)
    assert done.returncode == 1
    assert f"likely: {diagnosis}" in " ".join(done.stdout.split())

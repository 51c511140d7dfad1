"""PyTorch on the CPU as a vendor: an implementation independent of this project. It requires the extra `torch`.

The same implementations are the vendor `torch:DEVICE` on each device of PyTorch.
"""

from __future__ import annotations

import torch

from diopi_impl.base import Waiver
from diopi_impl.torch_cpu.device_vendor import TorchVendor
from diopi_impl.torch_cpu.renamed import register_renamed
from diopi_proto.families import load_families

IN_BOTH_TYPES = ("*float16-plain", "*float16-channels-last", "*float16-accumulated")
"""Labels of cases in which convolutions add in half precision, in float16 as well as in bfloat16."""

KERNELS = (*IN_BOTH_TYPES, "*float16-all-attributes", "float16-dilation", "float16-no-bias", "float16-many-by-channel")
"""Labels of cases in which several convolutions add in half precision."""

ADDING_IN_HALF = {
    "diopiConvTranspose?d": (
        *KERNELS,
        *("float16-by-channel", "float16-three-by-three*", "float16-wide", "float16-output-padding-no-bias"),
    ),
    "diopiConvolution?dBackward": (
        *KERNELS,
        *("float16-stride", "float16-by-channel", "float16-one-element-kernel", "float16-order-of-dilation"),
        *("float16-three-by-three*", "float16-wide"),
        *("*float16-all-attributes-no-grad_weight", "*float16-all-attributes-no-grad_bias"),
    ),
    "diopiConvTranspose?dBackward": (
        *("*float16-plain", "*float16-channels-last", "float16-stride", "float16-dilation", "float16-no-bias"),
        *("float16-one-element-kernel", "float16-many-by-channel", "float16-output-padding*", "float16-rows-of-128"),
    ),
}
"""The cases of convolutions in which PyTorch's kernels add in half precision, by function."""

ADDED_IN_HALF = (
    "the kernel's products are added up in half precision; in bfloat16 only on CPUs for which oneDNN has no kernels"
)
"""The reason of the waivers for these cases."""

NAN_IN_BFLOAT16_CASES = (
    "diopiConvolution?dBackward[bfloat16-zero-factors]",
    "diopiConvTranspose?d[bfloat16-zero-factors]",
    "diopiConvTranspose?dBackward[bfloat16-negative-nan]",
)
"""Cases in which NaN or infinities are factors of convolutions, and which fail on CPUs with AMX."""

NAN_IN_BFLOAT16 = "on CPUs with AMX, oneDNN's kernels of bfloat16 return NaN for elements that are numbers"
"""The reason of the waivers for these cases."""

LAYER_GRADIENTS = (
    *("*float16-exact", "*float16-mixed", "*float16-plain", "*float16-long", "*float16-*float16-saved"),
    *("*float16-last-axis", "float16-large", "float16-kept-axes", "float16-transposed"),
)
"""The cases of gradients of layer normalization in which PyTorch's kernels add in half precision."""

# A waiver names cases that fail for a known reason, which does not count against the vendor.
vendor = TorchVendor(
    "torch_cpu",
    torch.__version__,
    waivers=[
        Waiver("diopiErf*[bfloat16-special]", "the vectorized erf gives 0 for the smallest normal number"),
        Waiver("diopiErf*[bfloat16-small-row]", "the vectorized erf gives 0 for numbers below 1e-6"),
        Waiver(
            "diopiNeg*[complex*-special]", "complex numbers are subtracted from 0, so that zero parts lose their sign"
        ),
        *(
            Waiver(f"diopiGelu[{label}]", "the vectorized GELU gives NaN for +inf")
            for label in (
                *("bfloat16-none-special", "float16-none-special", "float32-none-special"),
                *("bfloat16-negative-nan", "float32-negative-nan"),
            )
        ),
        Waiver("diopiGelu[bfloat16-overflow]", "the vectorized GELU overflows near the largest number"),
        Waiver("diopiGelu[float32-none-rank5]", "the vectorized GELU is up to five ulp off between 3 and 5"),
        Waiver("diopiLogSoftmaxBackward[negative-output-shape]", "PyTorch does not check the size of `output`"),
        Waiver("diopiProd[bfloat16-exact]", "products of half precision are rounded after every factor"),
        Waiver("diopiProd[float16-partial-overflow]", "products of half precision are rounded after every factor"),
        Waiver("diopiSmoothL1Loss*[*-target-truths-beta0-*]", "PyTorch subtracts if beta is 0, and rejects bool"),
        Waiver("diopiBCELossBackward[float64-ends-*]", "the smallest denominator is 1e-12 rounded to float32"),
        *(
            Waiver(f"diopiLayerNorm*Backward[{pattern}]", "gradients of weights are added up in half precision")
            for pattern in LAYER_GRADIENTS
        ),
        Waiver("diopiLayerNormGBBackward[float16-half-wide]", "gradients of weights are added up in half precision"),
        Waiver("diopiCastDtype[float64-to-float16-rounded-twice]", "the conversion passes through float32"),
        Waiver("diopiCopyInp[float64-to-float16-rounded-twice]", "the conversion passes through float32"),
        Waiver("diopiUpsampleLinear[float16-half-volume-trilinear]", "weights are rounded to half precision"),
        Waiver("diopiNLLLoss*[*float16-exact-*]", "losses and weights are added up in half precision"),
        Waiver("diopiCrossEntropyLoss[*float16-exact-*]", "losses and weights are added up in half precision"),
        Waiver("diopi*MaxPool*Backward[*float16-exact]", "gradients of one position are added up in half precision"),
        Waiver(
            "diopi*AvgPool?dBackward[float16-half-channels-last]",
            "gradients of one position are added up in half precision",
        ),
        Waiver("diopiAdaptiveAvgPool3d[*float16-exact]", "windows are added up in half precision"),
        Waiver("diopiAdaptiveAvgPool3d[float16-large]", "windows are added up in half precision"),
        Waiver("diopiAdaptiveAvgPool3d[float16-rows-of-128]", "windows are added up in half precision"),
        *(
            Waiver(f"diopiNormalizeBackward[float16-order-{order}]", "intermediate powers leave the range of float16")
            for order in ("0.25", "0.75", "-1.5")
        ),
        Waiver("diopiIndexBackward[*float16-long-sum]", "elements at the same position are added in half precision"),
        Waiver("diopiIndexPut*[*float16-long-sum]", "elements at the same position are added in half precision"),
        Waiver(
            "diopiEmbeddingBackward[*float16-long-sum]", "elements at the same position are added in half precision"
        ),
        Waiver("diopiGridSample[float16-half-volume-bilinear]", "positions in volumes are computed in half precision"),
        Waiver(
            "diopiLinspace[float16-half]",
            "the step is computed in half precision: of 70,001 numbers from -11 to 37 it is 48 / inf, which is 0",
        ),
        *(
            Waiver(f"{functions}[{pattern}]", ADDED_IN_HALF)
            for functions, patterns in ADDING_IN_HALF.items()
            for pattern in patterns
        ),
        Waiver(
            "diopiConvTranspose3dBackward[bfloat16-channels-last*]",
            "oneDNN's gradient of the weight is wrong for channels-last tensors",
        ),
        Waiver(
            "diopiConvTranspose?dBackward[bfloat16-plain-special]",
            "oneDNN lets a NaN spread to an element whose kernel does not reach it",
        ),
        *(Waiver(case, NAN_IN_BFLOAT16) for case in NAN_IN_BFLOAT16_CASES),
    ],
)
"""The vendor, which computes with PyTorch on the CPU; its waivers name the deviations of PyTorch from the standard."""

load_families(__name__)
register_renamed(vendor)

"""Defects of PyTorch on the CPU, and of oneDNN as PyTorch's wheels contain it.

Each function returns the actual result of a call; its decorator states the call and the expected result.
"""

from __future__ import annotations

import re

import numpy as np

from defects.registry import Array, Library, complex64, float32, inf, nan, register_defect


def find_onednn_version() -> str:
    """Return the version of oneDNN in PyTorch."""
    import torch

    match = re.search(r"MKL-DNN v([\d.]+)", torch.__config__.show())
    return match[1] if match else "of an unknown version"


PYTORCH = Library("PyTorch on the CPU", ("torch",))
ONEDNN = Library("oneDNN", ("torch",), find_onednn_version)


@register_defect(
    ONEDNN,
    "gelu of float32 +∞",
    float32([inf]),
    "x · Φ(x), Φ(∞) = 1",
    "open: [issue 185770](https://github.com/pytorch/pytorch/issues/185770)",
)
def gelu_of_infinity() -> Array:
    import torch

    return torch.nn.functional.gelu(torch.full((16,), inf)).numpy()[:1]


@register_defect(
    ONEDNN,
    "softmax of float32 [∞, 1]",
    float32([nan, nan]),
    "PyTorch's other kernels return NaN for both: ∞ − ∞ is NaN",
)
def softmax_of_infinity() -> Array:
    import torch

    return torch.softmax(torch.tensor([[inf, 1.0]]).to_mkldnn(), -1).to_dense().numpy()[0]


@register_defect(ONEDNN, "max_pool2d of four -∞", float32([[[[-inf]]]]), "the maximum of a window, here -∞")
def onednn_max_pool_of_infinities() -> Array:
    import torch

    return torch.max_pool2d(torch.full((1, 1, 2, 2), -inf).to_mkldnn(), 2).to_dense().numpy()


@register_defect(ONEDNN, "max_pool2d of [0, 0, 0, NaN]", float32([[[[nan]]]]), "PyTorch's other kernels return NaN")
def onednn_max_pool_of_nan() -> Array:
    import torch

    return torch.max_pool2d(torch.tensor([[[[0, 0], [0, nan]]]]).to_mkldnn(), 2).to_dense().numpy()


@register_defect(ONEDNN, "relu of NaN", float32([nan]), "PyTorch's other kernels return NaN")
def onednn_relu_of_nan() -> Array:
    import torch

    return torch.relu(torch.tensor([nan]).to_mkldnn()).to_dense().numpy()


@register_defect(
    PYTORCH,
    "erf of bfloat16 2^-23",
    float32([2.0**-23 * 1.125]),
    "1.128 · x next to 0",
    "for compiled float32: [issue 198183](https://github.com/pytorch/pytorch/issues/198183)",
)
def error_function() -> Array:
    import torch

    return torch.erf(torch.tensor([2.0**-23], dtype=torch.bfloat16)).float().numpy()


@register_defect(
    PYTORCH,
    "cosh of float32 89, in a tensor of 64",
    float32([2.2448064e38]),
    "the hyperbolic cosine, which is finite up to 89.4; in a tensor of 7 elements, the result is finite",
    "open in SLEEF: [issue 460](https://github.com/shibatch/sleef/issues/460)",
)
def hyperbolic_cosine_of_many() -> Array:
    import torch

    return torch.cosh(torch.full((64,), 89.0)).numpy()[:1]


@register_defect(
    PYTORCH,
    "layer_norm of bfloat16, gradient of bias for 4,096 rows of ones",
    float32([4096, 4096]),
    "the sum of the rows of grad_output; 4,096 is a number of bfloat16",
)
def layer_norm_gradient() -> Array:
    import torch

    torch.set_num_threads(1)  # each thread has a sum of its own
    weight, bias = torch.ones(2, dtype=torch.bfloat16), torch.zeros(2, dtype=torch.bfloat16, requires_grad=True)
    rows = torch.tensor([[1, -1]] * 4096, dtype=torch.bfloat16)
    torch.nn.functional.layer_norm(rows, (2,), weight, bias).backward(torch.ones_like(rows))
    assert bias.grad is not None
    return bias.grad.float().numpy()


@register_defect(
    PYTORCH,
    "embedding of float16, gradient of a row that is used 4,096 times",
    float32([[4096]]),
    "the sum of 4,096 ones, which is a number of float16",
)
def embedding_gradient() -> Array:
    import torch

    table = torch.zeros(1, 1, dtype=torch.float16, requires_grad=True)
    rows = torch.nn.functional.embedding(torch.zeros(4096, dtype=torch.int64), table)
    rows.backward(torch.ones_like(rows))
    assert table.grad is not None
    return table.grad.float().numpy()


@register_defect(
    PYTORCH,
    "grid_sample of bfloat16 at 0.51171875, nearest, 129 elements",
    float32([97]),
    "the index is ((x + 1) · 129 − 1) / 2 = 97.006, whose nearest element is 97",
)
def grid_sample() -> Array:
    import torch

    picture = torch.arange(129, dtype=torch.bfloat16).reshape(1, 1, 1, 129)
    point = torch.tensor([0.51171875, 0], dtype=torch.bfloat16).reshape(1, 1, 1, 2)
    return torch.nn.functional.grid_sample(picture, point, mode="nearest", align_corners=False).float().numpy().ravel()


@register_defect(
    PYTORCH,
    "neg of complex64 0, in a tensor of 16",
    complex64([complex(-0.0, -0.0)]),
    "both parts change their sign, as in numpy.negative and in tensors of 3 elements",
)
def negative_of_zero() -> Array:
    import torch

    return torch.neg(torch.zeros(16, dtype=torch.complex64)).numpy()[:1]


@register_defect(
    PYTORCH,
    "sigmoid of complex64 -100 + 1i is finite",
    np.array([True]),
    "1 / (1 + exp(-x)) = 2.0e-44 + 3.1e-44i",
)
def complex_sigmoid() -> Array:
    import torch

    return np.isfinite(torch.sigmoid(torch.tensor([-100 + 1j], dtype=torch.complex64)).numpy())

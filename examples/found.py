"""Reproduce the defects in software by others that docs/found.md lists.

    python examples/found.py                 # one line per defect
    python examples/found.py --markdown      # the tables of the page

Each reproduction needs only the library and NumPy. Defects of libraries that are not installed are listed as not tried.
The exit status is 0 if all tried defects reproduce, and 1 if any does not, for example because it was repaired. Some
defects are in vectorized kernels, which a processor without AVX-512 may not use.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from typing import Any

import numpy as np

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TRITON_INTERPRET", "1")

Array = np.ndarray[Any, Any]
inf, nan = np.inf, np.nan
float32, float64, int64, complex64 = (
    partial(np.array, dtype=name) for name in ("float32", "float64", "int64", "complex64")
)

TOLERANCE = 8  # units in the last place of the result's type; correct functions stay below 4


@dataclass(frozen=True)
class Library:
    """A library in which defects were found.

    Attributes:
        title: the name.
        packages: the distributions that must be installed; the first one has the version.
        find_version: returns the version of a library that is part of another one.
    """

    title: str
    packages: tuple[str, ...]
    find_version: Callable[[], str] | None = None

    @property
    def version(self) -> str:
        """The installed version; empty if a package is missing."""
        try:
            versions = [metadata.version(package) for package in self.packages]
        except metadata.PackageNotFoundError:
            return ""
        return self.find_version() if self.find_version else versions[0]


def find_onednn_version() -> str:
    """Return the version of oneDNN in PyTorch."""
    import torch

    found = re.search(r"MKL-DNN v([\d.]+)", torch.__config__.show())
    return found[1] if found else "of an unknown version"


ONNX_RUNTIME = Library("ONNX Runtime", ("onnxruntime", "onnx"))
XLA = Library("XLA on the CPU", ("jaxlib", "jax"))
JAX = Library("JAX on the CPU", ("jax", "jaxlib"))
PYTORCH = Library("PyTorch on the CPU", ("torch",))
ONEDNN = Library("oneDNN", ("torch",), find_onednn_version)
TRITON = Library("Triton's interpreter", ("triton", "torch"))


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A defect.

    Attributes:
        library: the library.
        call: the operator and its input.
        expected: the correct result: an array, or a text for calls whose rejection matters.
        compute: returns the actual result.
        definition: how the operator is defined.
        status: what its maintainers know, with a link.
    """

    library: Library
    call: str
    expected: Array | str
    compute: Callable[[], Array | str]
    definition: str
    status: str

    def reproduces(self, actual: Array | str) -> bool:
        """Return whether a result is not the expected one."""
        if isinstance(actual, str) or isinstance(self.expected, str):
            return bool(actual != self.expected)
        return not is_correct(actual, self.expected)


FINDINGS: list[Finding] = []
UNKNOWN = "no public report found"


def finding(
    library: Library, call: str, expected: Any, definition: str, status: str = UNKNOWN
) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Return a decorator that registers a function which computes the actual result."""

    def register(compute: Callable[[], Any]) -> Callable[[], Any]:
        value = expected if isinstance(expected, str) else np.asarray(expected)
        FINDINGS.append(
            Finding(library=library, call=call, expected=value, compute=compute, definition=definition, status=status)
        )
        return compute

    return register


def is_correct(actual: Array, expected: Array) -> bool:
    """Return whether a result is the expected one, or for floating-point numbers, close to it."""
    if actual.shape != expected.shape:
        return False
    if expected.dtype.kind not in "fc":
        return bool((actual == expected).all())
    if expected.dtype.kind == "c":
        return is_correct(actual.real, expected.real) and is_correct(actual.imag, expected.imag)
    with np.errstate(all="ignore"):
        unit = np.abs(np.spacing(expected))
        near = np.abs(actual.astype(np.float64) - expected.astype(np.float64)) <= TOLERANCE * unit
    same = (actual == expected) & ((expected != 0) | (np.signbit(actual) == np.signbit(expected)))
    return bool((same | (np.isnan(actual) & np.isnan(expected)) | (near & (expected != 0))).all())


# ONNX Runtime: models of one node


def onnx(operator: str, opset: int, *operands: Any, **attributes: Any) -> Array:
    """Return the first result of an operator of ONNX on the CPU; None stands for an operand that is omitted."""
    import onnxruntime
    from onnx import helper

    names = ["" if operand is None else f"x{i}" for i, operand in enumerate(operands)]
    arrays = {name: operand for name, operand in zip(names, operands, strict=True) if name}
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in arrays.items()
    ]
    node = helper.make_node(operator, names, ["y"], **attributes)
    graph = helper.make_graph([node], "graph", inputs, [helper.make_empty_tensor_value_info("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    result: Array = session.run(None, arrays)[0]
    return result


ROUNDING_REPORT = (
    "no public report of the rounding found; that results saturate is deliberate: "
    "[pull request 28743](https://github.com/microsoft/onnxruntime/pull/28743)"
)
NAN_REPORT = "open: [issue 10514](https://github.com/microsoft/onnxruntime/issues/10514)"
LIKE_NUMPY = "ONNX: “similar to numpy”, which returns NaN"


@finding(ONNX_RUNTIME, "ReduceSum of int64 [2^53, 1]", int64([2**53 + 1]), "the sum, in int64", ROUNDING_REPORT)
def sum_of_integers() -> Array:
    return onnx("ReduceSum", 13, int64([2**53, 1]))


@finding(ONNX_RUNTIME, "ReduceProd of int64 [3^20, 3^19]", int64([3**39]), "the product, in int64", ROUNDING_REPORT)
def product_of_integers() -> Array:
    return onnx("ReduceProd", 18, int64([3**20, 3**19]))


@finding(ONNX_RUNTIME, "Pow of int64 7, 21", int64([7**21]), "ONNX: Pow is defined for int64; 7^21 fits")
def power_of_integers() -> Array:
    return onnx("Pow", 15, int64([7]), int64([21]))


SIGMOID = "1 / (1 + exp(-x)); 17 % too large at -15, and no correct digit from about -17 on"
SIGMOID_REPORT = (
    "open: [issue 22557](https://github.com/microsoft/onnxruntime/issues/22557), on negative results; closed as stale: "
    "[issue 26281](https://github.com/microsoft/onnxruntime/issues/26281)"
)


@finding(ONNX_RUNTIME, "Sigmoid of float32 [-15, -18]", float32([3.0590223e-07, 1.522998e-08]), SIGMOID, SIGMOID_REPORT)
def sigmoid() -> Array:
    return onnx("Sigmoid", 13, float32([-15, -18]))


@finding(ONNX_RUNTIME, "Tanh of float32 2^-126", float32([2.0**-126]), "tanh x, which is x next to 0; 28 ulp off")
def tanh() -> Array:
    return onnx("Tanh", 13, float32([2.0**-126]))


@finding(
    ONNX_RUNTIME,
    "Gelu of float64 -0.3 with tanh",
    float64([-0.11462907645724076]),
    "x / 2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), in float64; the constants are those of float32",
)
def gelu() -> Array:
    return onnx("Gelu", 20, float64([-0.3]), approximate="tanh")


@finding(ONNX_RUNTIME, "MaxPool of four -∞", float32([[[-inf]]]), "the maximum of a window, here -∞")
def max_pool_of_infinities() -> Array:
    return onnx("MaxPool", 12, np.full((1, 1, 4), -inf, np.float32), kernel_shape=[4])


@finding(ONNX_RUNTIME, "MaxPool of [0, NaN, 0]", float32([[[nan]]]), "the maximum of a window; AveragePool returns NaN")
def max_pool_of_nan() -> Array:
    return onnx("MaxPool", 12, float32([[[0, nan, 0]]]), kernel_shape=[3])


@finding(ONNX_RUNTIME, "ReduceMax of [1, NaN]", float32([nan]), LIKE_NUMPY, NAN_REPORT)
def maximum_of_nan() -> Array:
    return onnx("ReduceMax", 18, float32([1, nan]))


@finding(ONNX_RUNTIME, "ReduceMin of [1, NaN]", float32([nan]), LIKE_NUMPY, NAN_REPORT)
def minimum_of_nan() -> Array:
    return onnx("ReduceMin", 18, float32([1, nan]))


@finding(
    ONNX_RUNTIME,
    "LogSoftmax of float64 [1, NaN, 2]",
    float64([[nan, nan, nan]]),
    "ONNX: log(Softmax(x)), and Softmax is NaN in all elements; no logarithm of a probability is above 0",
)
def log_softmax_of_nan() -> Array:
    return onnx("LogSoftmax", 13, float64([[1, nan, 2]]))


@finding(
    ONNX_RUNTIME,
    "Unique of [NaN, 1, NaN, 2]",
    "1 and 2 are among the values",
    "ONNX: the result “contains all unique values”; numpy.unique returns [1, 2, NaN]",
)
def unique_of_nan() -> str:
    values = onnx("Unique", 11, float32([nan, 1, nan, 2]))
    return "1 and 2 are among the values" if {1, 2} <= set(values.tolist()) else f"the values are {text(values)}"


@finding(
    ONNX_RUNTIME,
    "Where of [true], [-0.0], [1.0]",
    float32([-0.0]),
    "ONNX: “behaves like numpy.where”, which selects",
)
def where_of_zero() -> Array:
    return onnx("Where", 16, np.array([True]), float32([-0.0]), float32([1]))


@finding(
    ONNX_RUNTIME,
    "Resize of 14 to 2 elements, nearest, asymmetric, floor",
    float32([[[0, 7]]]),
    "element ⌊i / scale⌋, scale = 2/14: elements 0 and 7; of 190 whole ratios, 18 are off",
    "similar, repaired for other attributes: [issue 28291](https://github.com/microsoft/onnxruntime/issues/28291)",
)
def resize() -> Array:
    attributes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    picture = np.arange(14, dtype=np.float32).reshape(1, 1, 14)
    return onnx("Resize", 19, picture, None, None, int64([1, 1, 2]), **attributes)


@finding(
    ONNX_RUNTIME,
    "ConvTranspose with dilation 3 and output_padding 2",
    "a result of size 8",
    "ONNX: the size is stride · (3 − 1) + output_padding + (2 − 1) · dilation + 1 = 8",
)
def transposed_convolution() -> str:
    signal, kernel = np.ones((1, 1, 3), np.float32), np.ones((1, 1, 2), np.float32)
    try:
        result = onnx("ConvTranspose", 11, signal, kernel, dilations=[3], output_padding=[2])
    except Exception as error:
        return "INVALID_ARGUMENT" if "INVALID_ARGUMENT" in str(error) else str(error)
    return f"a result of size {result.shape[-1]}"


@finding(
    ONNX_RUNTIME,
    "NegativeLogLikelihoodLoss with 5 classes and 6 weights",
    "an error",
    "ONNX: weight “has to be a tensor of size C”",
)
def negative_log_likelihood() -> str:
    try:
        onnx("NegativeLogLikelihoodLoss", 13, -np.ones((1, 5), np.float32), int64([4]), np.ones(6, np.float32))
    except Exception:
        return "an error"
    return "a result"


# XLA and JAX

XLA_REPORT = (
    "open: [issue 21461](https://github.com/openxla/xla/issues/21461); for TensorFlow, "
    "[issue 116992](https://github.com/tensorflow/tensorflow/issues/116992)"
)
ONE_NAN = np.where(np.arange(4096) == 2000, nan, 0).astype(np.float32)


@finding(
    XLA, "jax.numpy.max of 4,096 float32 numbers, one NaN", np.float32(nan), "numpy.max: NaN is propagated", XLA_REPORT
)
def maximum_of_many() -> Array:
    import jax.numpy as jnp

    return np.asarray(jnp.max(ONE_NAN))


@finding(
    XLA, "jax.numpy.min of 4,096 float32 numbers, one NaN", np.float32(nan), "numpy.min: NaN is propagated", XLA_REPORT
)
def minimum_of_many() -> Array:
    import jax.numpy as jnp

    return np.asarray(jnp.min(ONE_NAN))


@finding(
    JAX,
    "jax.numpy.sinh of float32 67.9282",
    np.float32(np.sinh(np.float64(np.float32(67.9282)))),
    "numpy.sinh; 24 ulp off",
)
def hyperbolic_sine() -> Array:
    import jax.numpy as jnp

    return np.asarray(jnp.sinh(np.float32(67.9282)))


@finding(
    JAX,
    "jax.numpy.cosh of float32 67.9282",
    np.float32(np.cosh(np.float64(np.float32(67.9282)))),
    "numpy.cosh; 24 ulp off",
)
def hyperbolic_cosine() -> Array:
    import jax.numpy as jnp

    return np.asarray(jnp.cosh(np.float32(67.9282)))


@finding(
    JAX,
    "jax.scipy.special.erfinv of float32 -0.99982744",
    np.float32(-2.6559907751),
    "scipy.special.erfinv; 64 ulp off",
)
def inverse_error_function() -> Array:
    import jax

    return np.asarray(jax.scipy.special.erfinv(np.float32(-0.99982744)))


# PyTorch, and oneDNN as PyTorch's wheels contain it


@finding(
    ONEDNN,
    "gelu of float32 +∞",
    float32([inf]),
    "x · Φ(x), Φ(∞) = 1",
    "open: [issue 185770](https://github.com/pytorch/pytorch/issues/185770)",
)
def gelu_of_infinity() -> Array:
    import torch

    return torch.nn.functional.gelu(torch.full((16,), inf)).numpy()[:1]


@finding(
    ONEDNN,
    "softmax of float32 [∞, 1]",
    float32([nan, nan]),
    "PyTorch's other kernels return NaN for both: ∞ − ∞ is NaN",
)
def softmax_of_infinity() -> Array:
    import torch

    return torch.softmax(torch.tensor([[inf, 1.0]]).to_mkldnn(), -1).to_dense().numpy()[0]


@finding(ONEDNN, "max_pool2d of four -∞", float32([[[[-inf]]]]), "the maximum of a window, here -∞")
def onednn_max_pool_of_infinities() -> Array:
    import torch

    return torch.max_pool2d(torch.full((1, 1, 2, 2), -inf).to_mkldnn(), 2).to_dense().numpy()


@finding(ONEDNN, "max_pool2d of [0, 0, 0, NaN]", float32([[[[nan]]]]), "PyTorch's other kernels return NaN")
def onednn_max_pool_of_nan() -> Array:
    import torch

    return torch.max_pool2d(torch.tensor([[[[0, 0], [0, nan]]]]).to_mkldnn(), 2).to_dense().numpy()


@finding(ONEDNN, "relu of NaN", float32([nan]), "PyTorch's other kernels return NaN")
def onednn_relu_of_nan() -> Array:
    import torch

    return torch.relu(torch.tensor([nan]).to_mkldnn()).to_dense().numpy()


@finding(
    PYTORCH,
    "erf of bfloat16 2^-23",
    float32([2.0**-23 * 1.125]),
    "1.128 · x next to 0",
    "for compiled float32: [issue 198183](https://github.com/pytorch/pytorch/issues/198183)",
)
def error_function() -> Array:
    import torch

    return torch.erf(torch.tensor([2.0**-23], dtype=torch.bfloat16)).float().numpy()


@finding(
    PYTORCH,
    "cosh of float32 89, in a tensor of 64",
    float32([2.2448064e38]),
    "the hyperbolic cosine, which is finite up to 89.4; that of a tensor of 7 elements is",
    "open in SLEEF: [issue 460](https://github.com/shibatch/sleef/issues/460)",
)
def hyperbolic_cosine_of_many() -> Array:
    import torch

    return torch.cosh(torch.full((64,), 89.0)).numpy()[:1]


@finding(
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


@finding(
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


@finding(
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


@finding(
    PYTORCH,
    "neg of complex64 0, in a tensor of 16",
    complex64([complex(-0.0, -0.0)]),
    "both parts change their sign, as in numpy.negative and in tensors of 3 elements",
)
def negative_of_zero() -> Array:
    import torch

    return torch.neg(torch.zeros(16, dtype=torch.complex64)).numpy()[:1]


@finding(
    PYTORCH,
    "sigmoid of complex64 -100 + 1i is finite",
    np.array([True]),
    "1 / (1 + exp(-x)) = 2.0e-44 + 3.1e-44i",
)
def complex_sigmoid() -> Array:
    import torch

    return np.isfinite(torch.sigmoid(torch.tensor([-100 + 1j], dtype=torch.complex64)).numpy())


# Triton's interpreter


def convert_to_bfloat16(number: float) -> Array:
    """Return a number that a kernel converts from float32 to bfloat16."""
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def convert(source, result):
        tl.store(result, tl.load(source).to(tl.bfloat16))

    source, result = torch.tensor([number]), torch.empty(1, dtype=torch.bfloat16)
    convert[(1,)](source, result)
    return result.float().numpy()


@finding(
    TRITON,
    "float32 1.0078 to bfloat16",
    float32([1.0078125]),
    "tl.cast rounds to nearest, unless the caller requests rtz",
)
def rounding() -> Array:
    return convert_to_bfloat16(1.0078)


@finding(
    TRITON, "float32 1e-39 to bfloat16", float32([11 * 2.0**-133]), "tl.cast rounds to nearest, also subnormal numbers"
)
def rounding_of_a_subnormal_number() -> Array:
    return convert_to_bfloat16(1e-39)


def text(value: Array | str) -> str:
    """Return a result as a text."""
    if isinstance(value, str):
        return value
    digits = 9 if value.dtype.itemsize == 4 else 17
    numbers = [f"{number:.{digits}g}" if value.dtype.kind == "f" else str(number) for number in value.ravel().tolist()]
    return ", ".join(numbers).replace("inf", "∞").replace("nan", "NaN")


def main(arguments: Sequence[str]) -> int:
    """Try all reproductions, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--markdown", action="store_true", help="print the tables of docs/found.md")
    options = parser.parse_args(arguments)
    if options.markdown:
        for library in dict.fromkeys(defect.library for defect in FINDINGS):
            print(table(library))
        return 0
    return print_lines()


def table(library: Library) -> str:
    """Return the defects of a library as a table in Markdown, with the results on this computer."""
    rows = ["| call | found | expected | definition | status |", "| --- | --- | --- | --- | --- |"]
    for defect in FINDINGS:
        if defect.library == library:
            actual = text(defect.compute()) if library.version else "not tried"
            cells = (defect.call, actual, text(defect.expected), defect.definition, defect.status)
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join([f"## {library.title}", "", f"Version {library.version}", "", *rows, ""])


def print_lines() -> int:
    """Print a line per defect, and return the exit status."""
    has_changed = False
    for defect in FINDINGS:
        version = defect.library.version
        if not version:
            print(
                f"{defect.library.title} · {defect.call} · not tried: install {' and '.join(defect.library.packages)}"
            )
            continue
        actual = defect.compute()
        verdict = "reproduces" if defect.reproduces(actual) else "DOES NOT REPRODUCE"
        has_changed |= not defect.reproduces(actual)
        values = f"found {text(actual)} · expected {text(defect.expected)}"
        print(f"{defect.library.title} {version} · {defect.call} · {values} · {verdict}")
    return int(has_changed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

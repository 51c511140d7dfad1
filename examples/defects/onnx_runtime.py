"""Defects of ONNX Runtime, in models of one node.

Each function returns the actual result of a call; its decorator states the call and the expected result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from defects.registry import Array, Library, float32, float64, format_result, inf, int64, nan, register_defect

ONNX_RUNTIME = Library("ONNX Runtime", ("onnxruntime", "onnx"))


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


@register_defect(ONNX_RUNTIME, "ReduceSum of int64 [2^53, 1]", int64([2**53 + 1]), "the sum, in int64", ROUNDING_REPORT)
def sum_of_integers() -> Array:
    return onnx("ReduceSum", 13, int64([2**53, 1]))


@register_defect(
    ONNX_RUNTIME, "ReduceProd of int64 [3^20, 3^19]", int64([3**39]), "the product, in int64", ROUNDING_REPORT
)
def product_of_integers() -> Array:
    return onnx("ReduceProd", 18, int64([3**20, 3**19]))


@register_defect(ONNX_RUNTIME, "Pow of int64 7, 21", int64([7**21]), "ONNX: Pow is defined for int64; 7^21 fits")
def power_of_integers() -> Array:
    return onnx("Pow", 15, int64([7]), int64([21]))


SIGMOID = "1 / (1 + exp(-x)); 17 % too large at -15, and no correct digit from about -17 on"
SIGMOID_REPORT = (
    "open: [issue 22557](https://github.com/microsoft/onnxruntime/issues/22557), on negative results; closed as stale: "
    "[issue 26281](https://github.com/microsoft/onnxruntime/issues/26281)"
)


@register_defect(
    ONNX_RUNTIME, "Sigmoid of float32 [-15, -18]", float32([3.0590223e-07, 1.522998e-08]), SIGMOID, SIGMOID_REPORT
)
def sigmoid() -> Array:
    return onnx("Sigmoid", 13, float32([-15, -18]))


@register_defect(
    ONNX_RUNTIME, "Tanh of float32 2^-126", float32([2.0**-126]), "tanh x, which is x next to 0; 28 ulp off"
)
def tanh() -> Array:
    return onnx("Tanh", 13, float32([2.0**-126]))


@register_defect(
    ONNX_RUNTIME,
    "Gelu of float64 -0.3 with tanh",
    float64([-0.11462907645724076]),
    "x / 2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), in float64; the constants are those of float32",
)
def gelu() -> Array:
    return onnx("Gelu", 20, float64([-0.3]), approximate="tanh")


@register_defect(ONNX_RUNTIME, "MaxPool of four -∞", float32([[[-inf]]]), "the maximum of a window, here -∞")
def max_pool_of_infinities() -> Array:
    return onnx("MaxPool", 12, np.full((1, 1, 4), -inf, np.float32), kernel_shape=[4])


@register_defect(
    ONNX_RUNTIME, "MaxPool of [0, NaN, 0]", float32([[[nan]]]), "the maximum of a window; AveragePool returns NaN"
)
def max_pool_of_nan() -> Array:
    return onnx("MaxPool", 12, float32([[[0, nan, 0]]]), kernel_shape=[3])


@register_defect(ONNX_RUNTIME, "ReduceMax of [1, NaN]", float32([nan]), LIKE_NUMPY, NAN_REPORT)
def maximum_of_nan() -> Array:
    return onnx("ReduceMax", 18, float32([1, nan]))


@register_defect(ONNX_RUNTIME, "ReduceMin of [1, NaN]", float32([nan]), LIKE_NUMPY, NAN_REPORT)
def minimum_of_nan() -> Array:
    return onnx("ReduceMin", 18, float32([1, nan]))


@register_defect(
    ONNX_RUNTIME,
    "LogSoftmax of float64 [1, NaN, 2]",
    float64([[nan, nan, nan]]),
    "ONNX: log(Softmax(x)), and Softmax is NaN in all elements; no logarithm of a probability is above 0",
)
def log_softmax_of_nan() -> Array:
    return onnx("LogSoftmax", 13, float64([[1, nan, 2]]))


@register_defect(
    ONNX_RUNTIME,
    "Unique of [NaN, 1, NaN, 2]",
    "1 and 2 are among the values",
    "ONNX: the result “contains all unique values”; numpy.unique returns [1, 2, NaN]",
)
def unique_of_nan() -> str:
    values = onnx("Unique", 11, float32([nan, 1, nan, 2]))
    return (
        "1 and 2 are among the values" if {1, 2} <= set(values.tolist()) else f"the values are {format_result(values)}"
    )


@register_defect(
    ONNX_RUNTIME,
    "Where of [true], [-0.0], [1.0]",
    float32([-0.0]),
    "ONNX: “behaves like numpy.where”, which selects",
)
def where_of_zero() -> Array:
    return onnx("Where", 16, np.array([True]), float32([-0.0]), float32([1]))


@register_defect(
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


@register_defect(
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


@register_defect(
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

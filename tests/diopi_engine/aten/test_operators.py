"""Operators of Core ATen that JAX computes have the results of PyTorch."""

from typing import Any

import jax
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: extra `torch`")

from diopi_engine.aten import layers, movement, operators  # noqa: E402, F401 - after it is known that PyTorch is there
from diopi_engine.aten.table import OPERATORS  # noqa: E402 - for the same reason


def numbers(*shape: int, seed: int = 0) -> Any:
    """Return random numbers of a shape."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def integers(stop: int, *shape: int) -> Any:
    """Return random integers of a shape, from 0 to below `stop`."""
    return torch.randint(0, stop, shape, generator=torch.Generator().manual_seed(1))


X, Y, POSITIVE = numbers(2, 3, 4), numbers(2, 3, 4, seed=1), numbers(2, 3, 4).abs() + 0.1
IMAGE, SIGNALS, INDICES = numbers(2, 4, 7, 9), numbers(2, 4, 9), integers(3, 2, 2, 4)
BELOW_ONE, SIGNED_INTEGERS, FLAGS = torch.tanh(X), integers(9, 2, 3, 4) - 4, X > 0
MATRIX, KERNEL, PER_CHANNEL = numbers(3, 4), numbers(6, 2, 3, 3), numbers(4)

CALLS: dict[str, list[tuple[Any, ...]]] = {
    **{name: [(X,)] for name in ("abs", "ceil", "cos", "cosh", "exp", "expm1", "floor", "isinf", "isnan", "round")},
    **{name: [(X,)] for name in ("sign", "sin", "sinh", "tan", "tanh", "trunc", "erf", "neg", "relu", "sigmoid")},
    **{name: [(POSITIVE,)] for name in ("log", "log10", "log1p", "log2", "sqrt", "rsqrt", "reciprocal")},
    **{name: [(BELOW_ONE,)] for name in ("acos", "asin", "atan", "atanh", "asinh")},
    **{
        name: [(X, Y), (X, Y[:1])] for name in ("atan2", "maximum", "minimum", "add.Tensor", "sub.Tensor", "mul.Tensor")
    },
    **{
        name: [(X, 0.5), (SIGNED_INTEGERS, 2)]
        for name in ("add.Scalar", "sub.Scalar", "mul.Scalar", "remainder.Scalar")
    },
    **{name: [(FLAGS, Y > 0)] for name in ("logical_and", "logical_or", "logical_xor", "bitwise_and.Tensor")},
    **{f"{name}.Scalar": [(X, 0.1), (SIGNED_INTEGERS, 1)] for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{f"{name}.Tensor": [(SIGNED_INTEGERS, SIGNED_INTEGERS.flip(0))] for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "acosh": [(POSITIVE + 1,)],
    "fmod.Scalar": [(X, 0.3), (SIGNED_INTEGERS, 3)],
    "remainder.Tensor": [(X, Y)],
    "logical_not": [(FLAGS,), (SIGNED_INTEGERS,)],
    "bitwise_not": [(SIGNED_INTEGERS,), (FLAGS,)],
    "div.Tensor": [(X, Y), (SIGNED_INTEGERS, SIGNED_INTEGERS + 9)],
    "pow.Tensor_Scalar": [(X, 2), (POSITIVE, -0.5)],
    "pow.Tensor_Tensor": [(POSITIVE, Y)],
    "pow.Scalar": [(2.0, X)],
    "where.self": [(FLAGS, X, Y)],
    "clamp": [(X, -0.5, 0.5), (X, None, 0.1), (X, 0.1)],
    "hardtanh": [(X,), (X, 0.0, 6.0)],
    "gelu": [(X,)],
    "leaky_relu": [(X,), (X, 0.2)],
    "elu": [(X,), (X, 0.5, 1.2)],
    "_softmax": [(X, -1, False), (X, 1, False)],
    "_log_softmax": [(X, -1, False)],
    "sum.dim_IntList": [(X, [1]), (X, [0, 2], True), (SIGNED_INTEGERS, [1])],
    "mean.dim": [(X, [-1, -2], True), (X, [0])],
    "prod.dim_int": [(X, 1)],
    "var.correction": [(X, [1])],
    "amax": [(X, [1]), (X, [0, 2], True)],
    "amin": [(X, [-1])],
    "any": [(FLAGS,)],
    "any.dim": [(FLAGS, 1, True)],
    "argmax": [(X, 1), (X,), (X, -1, True)],
    "argmin": [(X, 1)],
    "max.dim": [(X, 1)],
    "min.dim": [(X, -1, True)],
    "cumsum": [(X, 1), (SIGNED_INTEGERS, -1)],
    "sort": [(X, 1), (X, -1, True)],
    "topk": [(X, 2), (X, 2, 1, False)],
    "mm": [(MATRIX, MATRIX.T)],
    "bmm": [(X, Y.transpose(1, 2))],
    "addmm": [(numbers(3), MATRIX, MATRIX.T)],
    "view": [(X, [6, 4]), (X, [2, -1])],
    "permute": [(X, [2, 0, 1])],
    "expand": [(PER_CHANNEL, [3, -1]), (X[:1], [2, 3, 4])],
    "unsqueeze": [(X, 1), (X, -1)],
    "squeeze.dims": [(X[:1], [0, 1])],
    "select.int": [(X, 1, 2), (X, -1, -1)],
    "slice.Tensor": [(X, 2, 1, 2**63 - 1), (X, 1, -2, -1), (X, 2, 0, 4, 2)],
    "cat": [([X, Y], 1), ([X, numbers(0)], 0)],
    "split_with_sizes": [(X, [1, 3], 2)],
    "repeat": [(MATRIX, [2, 1, 3])],
    "flip": [(X, [0, 2])],
    "diagonal": [(X, 1, 1, 2)],
    "constant_pad_nd": [(X, [1, 2], 0.5), (X, [1, -1, 0, 2])],
    "reflection_pad2d": [(IMAGE, [1, 2, 3, 0])],
    "replication_pad2d": [(IMAGE, [1, 2, 0, 3])],
    "embedding": [(MATRIX, INDICES)],
    "index.Tensor": [(X, [None, integers(3, 5)]), (X, [integers(2, 5), None, integers(4, 5)])],
    "index_select": [(X, 1, integers(3, 5))],
    "index_put": [(X, [integers(2, 5), integers(3, 5)], torch.ones(4), True)],
    "gather": [(X, 1, INDICES)],
    "scatter.src": [(X, 1, INDICES[:, :1], Y)],
    "scatter.value": [(X, 1, INDICES, 2.0)],
    "scatter_add": [(X, 1, INDICES, Y)],
    "select_scatter": [(X, Y[:, 0], 1, 2)],
    "slice_scatter": [(X, Y[:, :2], 1, 1, 3)],
    "pixel_shuffle": [(IMAGE, 2)],
    "convolution": [
        (IMAGE, KERNEL, numbers(6), [2, 1], [1, 0], [1, 2], False, [0, 0], 2),
        (IMAGE, numbers(4, 3, 3, 2), None, [2, 3], [1, 0], [2, 1], True, [1, 0], 2),
        (SIGNALS, numbers(5, 4, 3), None, [1], [1], [1], False, [0], 1),
    ],
    "max_pool2d_with_indices": [(IMAGE, [3, 3], [2, 2], [1, 1]), (IMAGE, [2], [3], [0], [2], True), (IMAGE, [2, 2])],
    "avg_pool1d": [(SIGNALS, [3], [2], [1])],
    "avg_pool2d": [
        (IMAGE, [3, 2], [2, 2], [1, 0]),
        (IMAGE, [3, 3], [2, 2], [1, 1], True, False),
        (IMAGE, [3, 3], [2, 3], [1, 1], True),
        (IMAGE, [2], [2], [0], False, True, 3),
    ],
    "_adaptive_avg_pool2d": [(IMAGE, [3, 5]), (IMAGE, [1, 1])],
    "upsample_bilinear2d.vec": [
        (IMAGE, [5, 20], False, None),
        (IMAGE, [14, 3], True, None),
        (IMAGE, None, False, [2.0, 1.5]),
    ],
    "upsample_nearest2d.vec": [(IMAGE, [5, 20], None), (IMAGE, None, [2.0, 1.5])],
    "_native_batch_norm_legit_no_training": [
        (IMAGE, PER_CHANNEL, PER_CHANNEL.flip(0), PER_CHANNEL, PER_CHANNEL.abs() + 1, 0.1, 1e-5),
        (IMAGE, None, None, PER_CHANNEL, PER_CHANNEL.abs() + 1, 0.1, 1e-5),
    ],
    "native_layer_norm": [(X, [4], PER_CHANNEL, PER_CHANNEL, 1e-5), (X, [3, 4], None, None, 1e-5)],
    "native_group_norm": [(IMAGE, PER_CHANNEL, None, 2, 4, 63, 2, 1e-5)],
    "_native_batch_norm_legit.no_stats": [(IMAGE, PER_CHANNEL, None, True, 0.1, 1e-5)],
}


def as_array(value: Any) -> Any:
    """Convert a tensor, or the tensors of a list, to arrays of JAX; return other values unchanged."""
    if isinstance(value, torch.Tensor):
        return jax.numpy.asarray(value.numpy())
    return [as_array(entry) for entry in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def results_by_operator() -> Any:
    """Return the results of all calls by operator; one program computes them, which compiles faster than many."""

    def compute() -> Any:
        """Call each operator with the arguments of `CALLS`."""
        return {
            name: [OPERATORS[name](*as_array(list(arguments))) for arguments in calls] for name, calls in CALLS.items()
        }

    options: dict[str, str | bool] = {"xla_backend_optimization_level": "0", "xla_cpu_use_fusion_emitters": False}
    with jax.enable_x64(True):
        return jax.jit(compute).lower().compile(compiler_options=options)()


@pytest.mark.parametrize("name", CALLS)
def test_an_operator_computes_the_same_as_pytorch(name: str, results_by_operator: Any) -> None:
    stem, _, overload = name.partition(".")
    operator = getattr(getattr(torch.ops.aten, stem), overload or "default")
    for arguments, results in zip(CALLS[name], results_by_operator[name], strict=True):
        expected = operator(*arguments)
        single = isinstance(expected, torch.Tensor)
        pairs = zip([results] if single else results, [expected] if single else expected, strict=True)
        compared = [(actual, wanted) for actual, wanted in pairs if actual is not None]
        assert compared
        for actual, wanted in compared:
            assert actual.shape == wanted.shape
            np.testing.assert_allclose(np.asarray(actual), wanted.numpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("mode", ["floor", "trunc"])
@pytest.mark.parametrize("pair", [(SIGNED_INTEGERS, SIGNED_INTEGERS + 9), (X, Y)], ids=["integers", "floats"])
def test_quotients_are_rounded_as_in_pytorch(pair: Any, mode: str) -> None:
    expected = torch.div(*pair, rounding_mode=mode)
    actual = OPERATORS["div.Tensor_mode"](*map(as_array, pair), rounding_mode=mode)
    np.testing.assert_array_equal(np.asarray(actual), expected.numpy())


def test_masks_as_indices_are_rejected() -> None:
    with pytest.raises(NotImplementedError, match="data"):
        OPERATORS["index.Tensor"](as_array(X), [as_array(FLAGS)])


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("amax", ([1],)),
        ("amin", ([0, 1],)),
        ("max.dim", (1,)),
        ("min.dim", (0,)),
        ("max_pool2d_with_indices", ([2, 2],)),
    ],
)
def test_a_nan_is_found_among_many_elements(name: str, arguments: tuple[Any, ...]) -> None:
    x = numbers(3, 41, 52) if "pool" in name else numbers(8, 1031)
    x.view(-1)[x.numel() // 2] = torch.nan
    stem, _, overload = name.partition(".")
    expected = getattr(getattr(torch.ops.aten, stem), overload or "default")(x, *arguments)
    actual = jax.jit(lambda x: OPERATORS[name](x, *arguments))(as_array(x))
    first = expected if isinstance(expected, torch.Tensor) else expected[0]
    assert first.isnan().sum() == 1
    np.testing.assert_array_equal(
        np.asarray(actual if isinstance(expected, torch.Tensor) else actual[0]), first.numpy()
    )

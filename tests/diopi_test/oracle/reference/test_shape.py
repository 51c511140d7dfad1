"""The references of functions that move whole tensors: conversions, rounding and limits.

`diopi-test run --vendor torch_cpu` compares their values and gradients with PyTorch.
"""

from typing import Any

import numpy as np
import pytest
from references import call_reference

from diopi_proto.types import Dtype
from diopi_test.cases.case import ResultOverride
from diopi_test.oracle.reference import PartlySpecified, find_reference


def test_pad_starts_at_the_last_axis() -> None:
    assert call_reference("diopiPad", np.zeros((2, 3, 4)), (1, 0, 2, 3), "constant", None).shape == (2, 8, 5)


@pytest.mark.parametrize(("shape", "dim", "size"), [((), 0, 2), ((), -1, 3), ((3, 4), 1, 5), ((0, 4), 0, 1)])
def test_unfold_rejects_windows_beyond_the_axis_as_pytorch_does(shape: tuple[int, ...], dim: int, size: int) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch computes the expected results: pip install 'diopi[torch]'")
    with pytest.raises(RuntimeError, match="maximum size"):
        torch.zeros(shape).unfold(dim, size, 2)
    with pytest.raises(ValueError, match=f"{size}"):
        call_reference("diopiUnfold", np.zeros(shape), dim, size, 2)
    with pytest.raises(ValueError, match=f"{size}"):
        call_reference("diopiUnfoldBackward", np.zeros((*shape, size)), shape, dim, size, 2)


@pytest.mark.parametrize("size", [0, 1])
def test_unfold_of_a_scalar_has_one_axis(size: int) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch computes the expected results: pip install 'diopi[torch]'")
    windows = call_reference("diopiUnfold", np.array(3.0), 0, size, 2)
    assert windows.tolist() == torch.tensor(3.0).unfold(0, size, 2).tolist()
    assert call_reference("diopiUnfoldBackward", windows, (), 0, size, 2) == windows.sum()


def test_cat_ignores_empty_vectors_but_promotes_their_type() -> None:
    joined = call_reference("diopiCat", [np.ones((2, 2), int), np.ones(0)], 0)
    assert joined.shape == (2, 2)
    assert joined.dtype == float


def test_roll_without_axes_rolls_the_flattened_elements() -> None:
    assert call_reference("diopiRoll", np.arange(6).reshape(2, 3), (2,), ()).tolist() == [[4, 5, 0], [1, 2, 3]]


def test_arange_of_integers_truncates_its_arguments_first() -> None:
    out = ResultOverride(Dtype.int32, shape=(3,))
    assert call_reference("diopiArange", 1.9, 7.9, 2.2, out=out).tolist() == [1, 3, 5]


def test_integers_of_a_linear_sequence_are_rounded_towards_zero() -> None:
    assert call_reference("diopiLinspace", -9, 7, 6, out=ResultOverride(Dtype.int8)).tolist() == [-9, -5, -2, 0, 3, 7]


@pytest.mark.parametrize(
    ("target", "expected", "specified"),
    [
        (Dtype.int8, [1, -1, 0, 0, 0, -128, 127], [1, 1, 1, 0, 0, 1, 1]),
        (Dtype.uint8, [1, 0, 0, 200, 0, 0, 127], [1, 0, 1, 1, 0, 0, 1]),
    ],
)
def test_conversion_to_integers_truncates_and_leaves_overflow_unspecified(
    target: Dtype, expected: list[int], specified: list[int]
) -> None:
    function = find_reference("diopiCastDtype")
    assert function is not None
    result: Any = function(np.array([1.9, -1.9, -0.5, 200, np.nan, -128.5, 127.9]), out=ResultOverride(target))
    assert isinstance(result, PartlySpecified)
    assert result.value.tolist() == expected
    assert result.specified.tolist() == [bool(flag) for flag in specified]


def test_nonzero_complex_numbers_become_true_and_real_parts_stay() -> None:
    numbers = np.array([0j, 2j, complex(np.nan, 0), 1.5 - 1j])
    assert call_reference("diopiCastDtype", numbers, out=ResultOverride(Dtype.bool)).tolist() == [
        False,
        True,
        True,
        True,
    ]
    assert call_reference("diopiCastDtype", numbers[3:], out=ResultOverride(Dtype.float32)).tolist() == [1.5]


def test_integers_are_counted_from_the_nearer_end() -> None:
    linspace = find_reference("diopiLinspace")
    assert linspace is not None
    counted = linspace(0, 49, 50, out=ResultOverride(Dtype.int64))
    assert counted.value.tolist() == list(range(50))
    assert counted.specified.all()
    tenths = linspace(6, -3, 91, out=ResultOverride(Dtype.int32))
    assert 0 < np.count_nonzero(~tenths.specified) < 9, "where it depends on how often is rounded"
    assert linspace(3.9, 9, 1, out=ResultOverride(Dtype.int8)).value.tolist() == [3]


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_empty_batch_is_padded(mode: str) -> None:
    assert call_reference("diopiPad", np.zeros((0, 3, 3)), (1, 2), mode, None).shape == (0, 3, 6)

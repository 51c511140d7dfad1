"""The expected results of a call, or the reason why the reference can't compute them."""

import pytest

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

import numpy as np  # noqa: E402  # behind the check for PyTorch

from diopi_proto.interface import lookup  # noqa: E402  # behind the check, too
from diopi_proto.types import Dtype  # noqa: E402  # behind the check, too
from diopi_test.cases.case import Case, TensorSpec  # noqa: E402  # behind the check, too
from diopi_torch.compare.comparison import NotComparableError, compute_expected  # noqa: E402  # behind the check, too


def softmax(dim: int, values: list[float]) -> Case:
    """Return a case of softmax of a vector with these values."""
    input = TensorSpec((len(values),), Dtype.float32, compute=lambda _: np.array(values))
    return Case("float32-x", Dtype.float32, {"input": input, "dim": dim})


def test_zeros_of_rounded_results_may_have_either_sign() -> None:
    sizes = TensorSpec((2,), Dtype.float32, compute=lambda _: np.array([0.0, 3.0]))
    expected = compute_expected(lookup("diopiSin"), Case("float32-x", Dtype.float32, {"input": sizes})).expected["out"]
    assert expected.budget.unit[0] > 1e-40 and expected.budget.unit[1] < 1e-6


def test_a_call_that_the_reference_rejects_is_not_comparable() -> None:
    assert compute_expected(lookup("diopiSoftmax"), softmax(0, [1.0, 2.0])).expected["out"].budget.unit.shape == (2,)
    with pytest.raises(NotComparableError, match="rejects"):
        compute_expected(lookup("diopiSoftmax"), softmax(7, [1.0, 2.0]))
    with pytest.raises(NotComparableError, match="no reference"):
        compute_expected(lookup("diopiGetImplVersion"), softmax(0, [1.0]))

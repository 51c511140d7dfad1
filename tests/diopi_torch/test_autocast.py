"""Automatic mixed precision."""

from collections.abc import Callable
from typing import Any

import pytest
from torch_devices import AlteredVendor

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

from diopi_torch.autocast import FULL, LOWER  # noqa: E402  # behind the check for PyTorch

X = torch.linspace(-1, 1, 12).reshape(3, 4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_lowers_products_but_not_sums(activate_vendor: Callable[[Any], Any], dtype: Any) -> None:
    activate_vendor(AlteredVendor())
    x = X.to("diopi")
    with torch.autocast("diopi", dtype=dtype):
        product = x @ x.T
        assert product.dtype is dtype
        assert torch.equal(product.cpu(), X.to(dtype) @ X.T.to(dtype))
        assert product.exp().dtype is product.softmax(1).dtype is torch.float32
        assert (product + 1).dtype is dtype
        assert (x.double() @ x.double().T).dtype is torch.float64
        with torch.autocast("diopi", enabled=False):
            assert (x @ x.T).dtype is torch.float32
    assert (x @ x.T).dtype is torch.float32


def test_gradients_have_the_precision_of_the_parameters(activate_vendor: Callable[[Any], Any]) -> None:
    activate_vendor(AlteredVendor())
    layer = torch.nn.Linear(4, 2).to("diopi")
    with torch.autocast("diopi", dtype=torch.bfloat16):
        loss = torch.nn.functional.mse_loss(layer(X.to("diopi")), torch.ones(3, 2, device="diopi"))
    assert loss.dtype is torch.float32
    loss.backward()
    assert layer.weight.grad.dtype is torch.float32 and layer.weight.grad.abs().sum() > 0


def test_no_operator_is_in_both_lists() -> None:
    assert not set(LOWER) & set(FULL)

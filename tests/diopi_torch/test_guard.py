"""Gradients that end in an error: the caller gets the error, and the process continues."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from torch_devices import AlteredVendor

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

from torch.utils.checkpoint import checkpoint  # noqa: E402  # behind the check for PyTorch

import diopi_torch  # noqa: E402, F401  # behind the check, too; it makes the device


class HookError(Exception):
    """The error that the hooks of these tests raise."""


def fail(*_: Any) -> None:
    """Raise HookError, as a hook of PyTorch."""
    raise HookError("a hook")


PLACES: dict[str, Callable[[Any, Any], Any]] = {
    "of a leaf": lambda x, y: x.register_hook(fail),
    "of a tensor": lambda x, y: y.register_hook(fail),
    "of a node": lambda x, y: y.grad_fn.register_hook(fail),
    "before a node": lambda x, y: y.grad_fn.register_prehook(fail),
    "after a gradient": lambda x, y: x.register_post_accumulate_grad_hook(fail),
}


@pytest.mark.parametrize("place", PLACES)
def test_errors_in_hooks_propagate(vendor: AlteredVendor, place: str) -> None:
    for _ in range(20):  # Python specializes what is called often
        x = torch.ones(3, device="diopi", requires_grad=True)
        y = x * 2
        PLACES[place](x, y)
        with pytest.raises(HookError, match="a hook"):
            y.sum().backward()
    assert (x + 1).sum().item() == 6


def test_errors_in_hooks_of_nested_gradients_propagate(vendor: AlteredVendor) -> None:
    def part(x: Any) -> Any:
        y = x * 2
        if y.requires_grad:
            y.register_hook(fail)
        return y.sin()

    x = torch.ones(3, device="diopi", requires_grad=True)
    with pytest.raises(HookError, match="a hook"):
        checkpoint(part, x, use_reentrant=True).sum().backward()
    with pytest.raises(HookError, match="a hook"):
        torch.autograd.grad(part(x).sum(), x)


def test_errors_propagate_to_the_thread_that_computes_gradients(vendor: AlteredVendor) -> None:
    def gradient(raises: bool) -> Any:
        x = torch.ones(3, device="diopi", requires_grad=True)
        if raises:
            x.register_hook(fail)
        (x * x).sum().backward()
        return x.grad.sum().item()

    with ThreadPoolExecutor(3) as pool:
        tasks = [pool.submit(gradient, number % 2 == 0) for number in range(12)]
    assert [type(task.exception()) for task in tasks[::2]] == [HookError] * 6
    assert [task.result() for task in tasks[1::2]] == [6.0] * 6

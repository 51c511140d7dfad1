"""Recurrent layers on the device, with their gradients."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

import diopi_torch  # noqa: E402  # behind the check for PyTorch
from diopi_impl.torch_cpu import vendor as torch_cpu  # noqa: E402  # behind the check, too

LAYERS = {
    "LSTM": lambda: torch.nn.LSTM(3, 4, 2, batch_first=True),
    "GRU": lambda: torch.nn.GRU(3, 4, bidirectional=True),
    "LSTMCell": lambda: torch.nn.LSTMCell(3, 4, bias=False),
}


def trained(layer: Any, x: Any) -> list[Any]:
    """Return the result of a layer, and the gradients of its weights."""
    output = layer(x)[0]
    output.square().sum().backward()
    return [output.detach().cpu(), *(weight.grad.cpu() for weight in layer.parameters())]


@pytest.mark.parametrize("kind", LAYERS)
def test_layers_compute_the_same_as_on_the_cpu(kind: str, activate_vendor: Callable[[Any], Any]) -> None:
    activate_vendor(torch_cpu)
    torch.manual_seed(0)
    layer = LAYERS[kind]()
    x = torch.randn(2, 3) if kind == "LSTMCell" else torch.randn(2, 5, 3)
    expected = trained(layer, x)
    layer.zero_grad()
    found = trained(copy.deepcopy(layer).to("diopi"), x.to("diopi"))
    for actual, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(actual, wanted)
    assert not {name for name in diopi_torch.fallbacks() if "cell" in name}


def test_inference_needs_no_autograd(activate_vendor: Callable[[Any], Any]) -> None:
    activate_vendor(torch_cpu)
    layer = torch.nn.LSTM(3, 4)
    with torch.inference_mode():
        found = layer.to("diopi")(torch.ones(2, 5, 3, device="diopi"))[0].cpu()
        torch.testing.assert_close(found, layer.cpu()(torch.ones(2, 5, 3))[0])

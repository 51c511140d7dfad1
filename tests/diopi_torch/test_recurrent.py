"""PyTorch's recurrent layers and their gradients on the device `diopi`."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

import diopi_torch  # noqa: E402  # imports PyTorch
from diopi_impl.torch_cpu import vendor as torch_cpu  # noqa: E402  # imports PyTorch

LAYERS = {
    "LSTM": lambda: torch.nn.LSTM(3, 4, 2, batch_first=True),
    "GRU": lambda: torch.nn.GRU(3, 4, bidirectional=True),
    "LSTMCell": lambda: torch.nn.LSTMCell(3, 4, bias=False),
}
"""Functions that create the tested layers, by class name."""


def run_with_gradients(layer: Any, x: Any) -> list[Any]:
    """Run a layer forward and backward; return the output and the gradients of the weights, on the CPU."""
    output = layer(x)[0]
    output.square().sum().backward()
    return [output.detach().cpu(), *(weight.grad.cpu() for weight in layer.parameters())]


@pytest.mark.parametrize("kind", LAYERS)
def test_layers_compute_the_same_as_on_the_cpu(kind: str, activate_vendor: Callable[[Any], Any]) -> None:
    activate_vendor(torch_cpu)
    torch.manual_seed(0)
    layer = LAYERS[kind]()
    x = torch.randn(2, 3) if kind == "LSTMCell" else torch.randn(2, 5, 3)
    expected = run_with_gradients(layer, x)
    layer.zero_grad()
    actual = run_with_gradients(copy.deepcopy(layer).to("diopi"), x.to("diopi"))
    for actual_tensor, expected_tensor in zip(actual, expected, strict=True):
        torch.testing.assert_close(actual_tensor, expected_tensor)
    # The device implements the fused cells; PyTorch does not compute them on the CPU instead.
    assert not {name for name in diopi_torch.fallbacks() if "cell" in name}


def test_layers_run_in_inference_mode(activate_vendor: Callable[[Any], Any]) -> None:
    activate_vendor(torch_cpu)
    layer = torch.nn.LSTM(3, 4)
    with torch.inference_mode():
        actual = layer.to("diopi")(torch.ones(2, 5, 3, device="diopi"))[0].cpu()
        torch.testing.assert_close(actual, layer.cpu()(torch.ones(2, 5, 3))[0])

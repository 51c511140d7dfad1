"""Training steps on the device are as accurate as on the CPU."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from sampling import sampled

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

import diopi_torch  # noqa: E402  # behind the check for PyTorch
from diopi_impl.plugins import find_vendor  # noqa: E402  # behind the check, too

nn = torch.nn

FACTOR = 8
"""The largest accepted error as a multiple of the error of the CPU in float32. The device adds in another order."""


def perceptron() -> Any:
    """Return a perceptron with three layers."""
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))


def convolutional() -> Any:
    """Return a convolutional network with batch normalization and two kinds of pooling."""
    first = nn.Sequential(nn.Conv2d(2, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2))
    return nn.Sequential(first, nn.Conv2d(6, 8, 3, stride=2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))


def transformer() -> Any:
    """Return a transformer encoder of one layer between an embedding and a linear layer."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return nn.Sequential(nn.Embedding(10, 8), layer, nn.Flatten(), nn.Linear(40, 4))


def momentum(parameters: Any) -> Any:
    """Return the optimizer SGD with momentum."""
    return torch.optim.SGD(parameters, 0.1, momentum=0.9)


def adamw(parameters: Any) -> Any:
    """Return the optimizer AdamW for these parameters."""
    return torch.optim.AdamW(parameters, 0.01, eps=1e-3)


NUMBERS = torch.Generator().manual_seed(3)
BATCHES = {
    perceptron: torch.randn(6, 8, generator=NUMBERS),
    convolutional: torch.randn(6, 2, 8, 8, generator=NUMBERS),
    transformer: torch.randint(10, (6, 5), generator=NUMBERS),
}
CLASSES = torch.tensor([0, 1, 2, 3, 0, 1])


def train_in_float64(model: Any, batch: Any, optimizer: Callable[[Any], Any], classes: Any) -> list[Any]:
    """Return the losses of two steps and the parameters after them, in float64 on the CPU."""
    optimize, losses = optimizer(model.parameters()), []
    for _ in range(2):
        optimize.zero_grad()
        loss = nn.functional.cross_entropy(model(batch), classes)
        loss.backward()
        optimize.step()
        losses.append(loss.detach())
    return [value.detach().cpu().double() for value in (*losses, *model.state_dict().values())]


@pytest.mark.parametrize(
    ("make", "name", "optimizer"),
    sampled([(make, *way) for make in BATCHES for way in [("jax_cpu", momentum), ("torch_cpu", adamw)]], 2),
)
def test_steps_are_as_exact_as_on_the_cpu(
    activate_vendor: Callable[[Any], Any], make: Any, name: str, optimizer: Any
) -> None:
    activate_vendor(find_vendor(name))
    torch.manual_seed(0)
    model, batch = make(), BATCHES[make]
    exact_batch = batch.double() if batch.is_floating_point() else batch
    exact = train_in_float64(copy.deepcopy(model).double(), exact_batch, optimizer, CLASSES)
    cpu = train_in_float64(copy.deepcopy(model), batch, optimizer, CLASSES)
    device = train_in_float64(copy.deepcopy(model).to("diopi"), batch.to("diopi"), optimizer, CLASSES.to("diopi"))
    for wanted, here, there in zip(exact, cpu, device, strict=True):
        ulp = torch.finfo(torch.float32).eps * wanted.abs().max()
        assert (there - wanted).abs().max() <= FACTOR * max((here - wanted).abs().max(), ulp)
    assert diopi_torch.fallbacks() == {}

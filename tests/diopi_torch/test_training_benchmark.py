"""`benchmarks/torch_training.py` runs with a small network."""

import copy
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import pytest

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

from diopi_impl.torch_cpu import vendor as torch_cpu  # noqa: E402  # behind the check for PyTorch
from diopi_proto.types import Error  # noqa: E402  # behind the check, too
from lib_rt import Context  # noqa: E402  # behind the check, too

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "torch_training.py"

nn = torch.nn


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the script as a module."""
    monkeypatch.setattr(sys, "path", sys.path.copy())
    spec = importlib.util.spec_from_file_location("torch_training", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "torch_training", module)
    spec.loader.exec_module(module)
    return module


def small(training: ModuleType) -> Any:
    """Return a network with convolution, normalization, dropout and a linear layer."""
    torch.manual_seed(0)
    features = (nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Dropout())
    module = nn.Sequential(*features, nn.Linear(16, 3))
    batch = {"batch": torch.randn(4, 2, 6, 6), "targets": torch.tensor([0, 1, 2, 0])}
    return training.Network(
        module, lambda batch, targets: nn.functional.cross_entropy(module(batch), targets), "adamw", batch
    )


def test_a_correct_vendor_trains_like_the_cpu(training: ModuleType, activate_vendor: Callable[[Any], Any]) -> None:
    activate_vendor(torch_cpu)
    found = training.outcome(small(training), 3)
    assert found.is_good and found.share == 0 and found.served > 3 * 20
    assert 0 < found.worst(of_losses=True) <= 1 and 0 < found.worst(of_losses=False) <= 1


def test_half_precision_is_visible_in_the_benchmark(
    training: ModuleType, activate_vendor: Callable[[Any], Any]
) -> None:
    rounding = copy.copy(torch_cpu)

    def call(name: str, context: Context, out: Any, *arguments: Any) -> Error:
        code = torch_cpu.call(name, context, out, *arguments)
        if name == "diopiAddmm":
            out.write(out.numpy().astype(ml_dtypes.bfloat16).astype(out.numpy().dtype))
        return code

    rounding.call = call  # type: ignore[method-assign]  # of this copy alone
    activate_vendor(rounding)
    found = training.outcome(small(training), 3)
    assert not found.is_good and found.worst(of_losses=True) > 1


def test_fallbacks_are_visible_in_the_benchmark(training: ModuleType, activate_vendor: Callable[[Any], Any]) -> None:
    lacking = copy.copy(torch_cpu)
    lacking.has = lambda name: name == "diopiAdd"  # type: ignore[method-assign]  # of this copy alone
    activate_vendor(lacking)
    found = training.outcome(small(training), 2)
    assert not found.is_good and found.share > training.SHARE and max(found.error_ratios.values()) <= 1

"""Modules and exported programs of PyTorch can be compiled to engines."""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: extra `torch`")

import diopi_engine  # noqa: E402 - after it is known that PyTorch is there
from diopi_engine import CompileError, Input  # noqa: E402 - for the same reason

IMAGES = [Input("image", ("b", 3, 16, 16), layout="NCHW")]


class Small(torch.nn.Module):  # type: ignore[misc]  # PyTorch may be missing
    """A module with convolution, normalization, pooling, attention, interpolation and a matrix product."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        self.linear = torch.nn.Linear(8, 10)

    def forward(self, x: Any) -> Any:
        y = torch.nn.functional.max_pool2d(self.norm(self.convolution(x)).relu(), 3, 2, 1)
        t = y.flatten(2).transpose(1, 2)
        t = t + self.attention(t, t, t, need_weights=False)[0]
        z = torch.nn.functional.interpolate(y, scale_factor=2, mode="bilinear")
        return self.linear(t[:, 1:].mean(1)).softmax(-1), torch.cat([z, z], 1)


@pytest.fixture(scope="module")
def module() -> Any:
    """Return a small module with fixed weights."""
    torch.manual_seed(0)
    return Small().eval()


def test_an_engine_computes_the_same_as_its_module(module: Any) -> None:
    engine = diopi_engine.compile(module, IMAGES, outputs=["scores", "features"], platforms=["cpu"])
    x = torch.randn(5, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    for found, expected in zip(engine(x.numpy()), module(x), strict=True):
        np.testing.assert_allclose(found, expected.detach().numpy(), rtol=1e-4, atol=1e-5)
    names = {weight.name for weight in engine.manifest.weights}
    assert {"convolution.weight", "norm.running_mean", "linear.bias"} <= names
    assert "norm.num_batches_tracked" not in names


def test_an_exported_program_is_compiled() -> None:
    module = torch.nn.Linear(4, 3).bfloat16()
    program = torch.export.export(module, (torch.zeros(2, 4, dtype=torch.bfloat16),))
    engine = diopi_engine.compile(program, [Input("x", (2, 4), dtype="bfloat16")], platforms=["cpu"])
    (found,) = engine(np.ones((2, 4), engine.weights[0].dtype))
    expected = module(torch.ones(2, 4, dtype=torch.bfloat16)).detach().float().numpy()
    np.testing.assert_allclose(found.astype(np.float32), expected, rtol=2**-7)


def test_the_error_names_an_unsupported_operator() -> None:
    with pytest.raises(CompileError, match="_cdist_forward"):
        diopi_engine.compile(Distances(), [Input("x", ("b", 3, 4))])


class Distances(torch.nn.Module):  # type: ignore[misc]  # PyTorch may be missing
    """A module with an operator that is not supported."""

    def forward(self, x: Any) -> Any:
        return torch.cdist(x, x)


class Training(torch.nn.Module):  # type: ignore[misc]  # PyTorch may be missing
    """A module in training mode, which changes its buffers when it is called."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(4)

    def forward(self, x: Any) -> Any:
        return self.norm(x)


def test_a_module_in_training_mode_is_rejected() -> None:
    with pytest.raises(CompileError):
        diopi_engine.compile(Training(), [Input("x", ("b", 4))])


class Branching(torch.nn.Module):  # type: ignore[misc]  # PyTorch may be missing
    """A module whose operators depend on values."""

    def forward(self, x: Any) -> Any:
        return x if x.sum() > 0 else -x


def test_modules_that_pytorch_can_not_export_are_rejected() -> None:
    with pytest.raises(CompileError, match="export"):
        diopi_engine.compile(Branching(), [Input("x", ("b", 4))])


def test_an_engine_copies_the_weights_of_its_module(module: Any) -> None:
    with pytest.raises(CompileError, match="weights"):
        diopi_engine.compile(module, IMAGES, weights={})


class Strided(torch.nn.Module):  # type: ignore[misc]  # PyTorch may be missing
    """A module that views its input, a matrix of 2 × 3, with fixed strides."""

    def __init__(self, *strides: int) -> None:
        super().__init__()
        self.strides = strides

    def forward(self, x: Any) -> Any:
        return x.as_strided((2, 3), self.strides) + 1


def test_identity_views_are_removed() -> None:
    engine = diopi_engine.compile(Strided(3, 1), [Input("x", (2, 3))], platforms=["cpu"])
    np.testing.assert_array_equal(engine(np.eye(2, 3, dtype=np.float32))[0], np.eye(2, 3) + 1)
    with pytest.raises(CompileError, match="as_strided"):
        diopi_engine.compile(Strided(1, 2), [Input("x", (2, 3))])


class Shifted(torch.nn.Module):  # type: ignore[misc]  # PyTorch may be missing
    """A module that selects all rows except the first one, and then as many rows from the start of the memory."""

    def forward(self, x: Any) -> Any:
        return x[1:].as_strided((2, 3), (3, 1), 0) + 1


def test_a_view_at_another_offset_is_not_an_identity() -> None:
    with pytest.raises(CompileError, match="as_strided"):
        diopi_engine.compile(Shifted(), [Input("x", (3, 3))])

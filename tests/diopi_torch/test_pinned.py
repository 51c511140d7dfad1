"""Pinned memory: a DataLoader with `pin_memory=True` works, and PyTorch recognizes the tensors."""

import gc
from collections.abc import Callable
from typing import Any

import pytest
from torch_devices import AlteredVendor

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

from diopi_torch import tensors  # noqa: E402  # behind the check for PyTorch

TENSORS: dict[str, Callable[[], Any]] = {
    "matrix": lambda: torch.arange(6.0).reshape(2, 3),
    "transposed": lambda: torch.arange(6.0).reshape(2, 3).T,
    "expanded": lambda: torch.ones(1, 3).expand(2, 3),
    "with gaps": lambda: torch.arange(12).reshape(3, 4)[:, ::2],
    "scalar": lambda: torch.tensor(True),
    "empty": lambda: torch.empty(0, 3, dtype=torch.complex64),
}


@pytest.mark.parametrize("create", TENSORS.values(), ids=TENSORS)
def test_a_pinned_copy_has_the_elements_of_the_tensor(vendor: AlteredVendor, create: Callable[[], Any]) -> None:
    tensor = create()
    copy = tensor.pin_memory()
    assert copy.is_pinned() and not tensor.is_pinned()
    assert torch.equal(copy, tensor) and copy.dtype == tensor.dtype
    assert torch.equal(copy.to("diopi", non_blocking=True).cpu(), tensor)
    assert copy.pin_memory() is copy


def test_views_are_pinned_until_their_memory_is_released() -> None:
    before = set(tensors.pinned_addresses)
    view = torch.arange(6.0).pin_memory()[2:]
    assert view.is_pinned() and view.untyped_storage().is_pinned()
    del view
    gc.collect()
    assert tensors.pinned_addresses == before


def test_a_transposed_copy_has_the_strides_of_the_tensor() -> None:
    assert torch.arange(6.0).reshape(2, 3).T.pin_memory().stride() == (1, 3)


def test_tensors_of_the_device_cannot_be_pinned(vendor: AlteredVendor) -> None:
    with pytest.raises(RuntimeError, match="pin"):
        torch.ones(2, device="diopi").pin_memory()


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_returns_pinned_batches(workers: int) -> None:
    data = torch.utils.data.TensorDataset(torch.arange(6.0))
    loader = torch.utils.data.DataLoader(
        data, batch_size=2, pin_memory=True, num_workers=workers, multiprocessing_context="spawn" if workers else None
    )
    batches = [batch for (batch,) in loader]
    assert all(batch.is_pinned() for batch in batches)
    assert torch.cat(batches).tolist() == [0, 1, 2, 3, 4, 5]

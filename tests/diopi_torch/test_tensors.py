"""Tensors over the vendor's memory: creation, inspection, copies, lifetime."""

import copy
import gc
import io
import pickle
import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from torch_devices import AlteredVendor

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

import diopi_torch  # noqa: E402  # behind the check for PyTorch
from diopi_torch.layout import DTYPES  # noqa: E402  # behind the check, too
from diopi_torch.tensors import is_dense  # noqa: E402  # behind the check, too

NUMBERS = torch.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_element_type_survives_a_round_trip(vendor: AlteredVendor, dtype: Any) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "ComplexHalf support is experimental")
        values = NUMBERS.to(dtype)
    there = values.to("diopi")
    assert (there.dtype, there.device.type, there.is_diopi) == (dtype, "diopi", True)
    assert torch.equal(there.cpu().view(torch.uint8), values.view(torch.uint8))


def test_an_unsupported_element_type_is_rejected(vendor: AlteredVendor) -> None:
    with pytest.raises(TypeError, match="float8_e4m3fn"):
        torch.empty(3, dtype=torch.float8_e4m3fn, device="diopi")


@pytest.mark.parametrize(
    "look",
    [
        lambda x: x[1],
        lambda x: x[:, 1:, ::2],
        lambda x: x.transpose(0, 2),
        lambda x: x.permute(2, 0, 1)[1:],
        lambda x: x.view(6, 4),
        lambda x: x.flatten(),
        lambda x: x.expand(5, 2, 3, 4),
        lambda x: x.unfold(2, 2, 1),
        lambda x: x.diagonal(0, 1, 2),
        lambda x: x.narrow(2, 1, 2).unsqueeze(0),
        lambda x: x[:, :0],
        lambda x: torch.view_as_complex(x.view(2, 3, 2, 2)),
        lambda x: x.view(torch.int32),
    ],
)
def test_views_share_memory_and_copy_as_they_are(vendor: AlteredVendor, look: Callable[[Any], Any]) -> None:
    there, expected = NUMBERS.to("diopi"), look(NUMBERS)
    view = look(there)
    assert view.untyped_storage().data_ptr() == there.untyped_storage().data_ptr()
    assert (view.shape, view.stride(), view.storage_offset()) == (
        *(expected.shape, expected.stride()),
        expected.storage_offset(),
    )
    assert torch.equal(view.cpu(), expected)
    assert torch.equal(view.clone().cpu(), expected)
    assert diopi_torch.fallbacks() == {}


@pytest.mark.parametrize("source", ["cpu", "diopi"])
def test_copies_preserve_gaps_and_convert(vendor: AlteredVendor, source: str) -> None:
    target = torch.zeros(4, 6, dtype=torch.int32, device="diopi")
    target[::2, 1::2].copy_(torch.tensor([1.5, 2.5, 3.5], dtype=torch.float64, device=source))
    expected = torch.zeros(4, 6, dtype=torch.int32)
    expected[::2, 1::2] = torch.tensor([1, 2, 3], dtype=torch.int32)
    assert torch.equal(target.cpu(), expected)
    out = torch.zeros(2, 3, dtype=torch.float16)
    assert torch.equal(out.copy_(target[::2, 1::2]), expected[::2, 1::2].half())


def test_unsupported_copies_run_on_the_cpu(activate_vendor: Callable[[Any], Any]) -> None:
    activate_vendor(AlteredVendor(host_addressable=False, lacks={"diopiCopyInp"}))
    target = torch.zeros(3, 4, device="diopi")
    target[:, ::2].copy_(torch.ones(3, 2))
    assert diopi_torch.fallbacks() == {"copy_": 1}
    assert target.cpu().tolist() == [[1, 0, 1, 0]] * 3


@pytest.mark.parametrize("form", [torch.channels_last, torch.contiguous_format])
def test_memory_formats_are_preserved(vendor: AlteredVendor, form: Any) -> None:
    x = torch.randn(2, 3, 4, 5).to(memory_format=form)
    there = x.to("diopi")
    assert there.stride() == x.stride() == torch.empty_like(there).stride() == (there + 1).stride()
    assert torch.empty(2, 3, 4, 5, device="diopi", memory_format=form).stride() == x.stride()
    assert there.contiguous(memory_format=torch.channels_last).stride() == (60, 1, 15, 3)


def test_resizing_preserves_elements(vendor: AlteredVendor) -> None:
    x = torch.arange(4.0, device="diopi")
    assert x.resize_(2, 3).cpu().flatten()[:4].tolist() == [0, 1, 2, 3]
    address = x.data_ptr()
    assert x.resize_(2, 2).data_ptr() == address
    assert x.resize_(1, 2, 3, 3, memory_format=torch.channels_last).stride() == (18, 1, 6, 2)
    assert x.set_().numel() == 0
    y = torch.ones(3, device="diopi")
    assert x.set_(y).is_set_to(y)


def test_lazy_conjugation_and_negation_are_resolved(vendor: AlteredVendor) -> None:
    z = torch.tensor([1 + 2j, 3 - 4j])
    there = z.to("diopi")
    for lazy in (lambda x: x.conj(), lambda x: x.conj().imag, lambda x: x.imag, lambda x: x.conj().conj()):
        assert torch.equal(lazy(there).cpu(), lazy(z))
        assert torch.equal(lazy(there).clone().cpu(), lazy(z))
    assert torch.equal((there.conj() + there).cpu(), z.conj() + z)
    there.conj().copy_(z)
    assert torch.equal(there.cpu(), z.conj())
    there.conj().imag.copy_(torch.tensor([5.0, 6.0]))
    assert there.imag.tolist() == [-5, -6]
    host = torch.zeros(2, dtype=torch.complex64)
    assert torch.equal(host.copy_(there.conj()), there.cpu().conj())


def test_is_dense_detects_gaps_and_overlaps() -> None:
    assert is_dense(NUMBERS.transpose(0, 2)) and is_dense(NUMBERS[:, :0]) and is_dense(NUMBERS[:1])
    assert not is_dense(NUMBERS[:, ::2]) and not is_dense(NUMBERS.expand(2, 2, 3, 4))


@pytest.mark.parametrize(
    ("size", "strides", "message"),
    [
        ((2,), (-1,), "Storage size calculation overflowed with sizes=[2] and strides=[-1]"),
        ((2,), (1, 1), "dimensionality of sizes (1) must match dimensionality of strides (2)"),
        ((2**62, 8), None, f"Storage size calculation overflowed with sizes=[{2**62}, 8]"),
    ],
)
def test_invalid_shapes_raise_the_error_of_pytorch(
    vendor: AlteredVendor, size: Any, strides: Any, message: str
) -> None:
    for device in ("cpu", "diopi"):
        with pytest.raises(RuntimeError, match=re.escape(message)):
            torch.empty(size, device=device) if strides is None else torch.empty_strided(size, strides, device=device)


def test_tensors_can_be_saved_and_loaded(vendor: AlteredVendor) -> None:
    model = torch.nn.Linear(2, 3).to("diopi")
    saved = io.BytesIO()
    torch.save(model.state_dict(), saved)
    for place, expected in ((None, "diopi"), ("cpu", "cpu"), ("diopi", "diopi"), ({"diopi:0": "cpu"}, "cpu")):
        saved.seek(0)
        loaded = torch.load(saved, map_location=place)
        assert {tensor.device.type for tensor in loaded.values()} == {expected}
        assert torch.equal(loaded["weight"].cpu(), model.weight.detach().cpu())
    saved = io.BytesIO()
    torch.save((NUMBERS, torch.empty(0)), saved)
    saved.seek(0)
    loaded, loaded_empty = torch.load(saved, map_location="diopi:0")
    assert loaded.is_diopi and torch.equal(loaded.cpu(), NUMBERS) and loaded_empty.numel() == 0


def test_tensors_can_be_pickled_and_deep_copied(vendor: AlteredVendor) -> None:
    x = NUMBERS.to("diopi")
    for copied in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.deepcopy({"x": x})["x"]):
        assert copied.is_diopi and copied.data_ptr() != x.data_ptr()
        assert torch.equal(copied.cpu(), NUMBERS)
    storage = x.untyped_storage()
    assert storage.to(device="diopi") is storage
    assert bytes(storage.cpu()) == bytes(NUMBERS.untyped_storage())
    assert bytes(storage.clone().cpu()) == bytes(NUMBERS.untyped_storage().clone())
    assert storage.to(device="cpu").device.type == "cpu"


def test_tensors_can_be_printed(vendor: AlteredVendor) -> None:
    assert str(torch.tensor([1.0, 2.5], device="diopi")) == "tensor([1.0000, 2.5000], device='diopi:0')"


def test_non_blocking_copies_block(vendor: AlteredVendor) -> None:
    assert torch.equal(
        NUMBERS.to("diopi", non_blocking=True).to("cpu", torch.float64, non_blocking=True), NUMBERS.double()
    )


def test_batches_of_a_loader_can_be_moved_to_the_device(vendor: AlteredVendor) -> None:
    batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(NUMBERS), batch_size=1)
    assert torch.equal(torch.cat([batch.to("diopi") for (batch,) in batches]).cpu(), NUMBERS)


@pytest.mark.parametrize("dtype", [torch.float64, torch.int32, torch.bool, torch.complex64])
def test_a_number_can_be_copied_into_a_tensor(vendor: AlteredVendor, dtype: Any) -> None:
    filled = [torch.zeros(2, dtype=dtype, device=device).copy_(0.1) for device in ("diopi", "cpu")]
    assert torch.equal(filled[0].cpu(), filled[1])


def test_a_lazy_clone_has_its_own_elements(vendor: AlteredVendor) -> None:
    tensor = torch.zeros(2, device="diopi")
    torch._lazy_clone(tensor).add_(1)
    assert tensor.tolist() == [0, 0]


def test_storages_can_be_created(vendor: AlteredVendor) -> None:
    assert torch.UntypedStorage(4, device="diopi").nbytes() == 4
    assert torch.UntypedStorage(device="diopi").nbytes() == 0
    storage = torch.UntypedStorage([1, 2, 3], device=torch.device("diopi"))
    assert (storage.device.type, storage.tolist()) == ("diopi", [1, 2, 3])
    assert torch.UntypedStorage([1, 2]).device.type == "cpu"


def test_tensors_are_exchanged_by_dlpack(vendor: AlteredVendor) -> None:
    tensor = torch.arange(3.0, device="diopi")
    imported = torch.from_dlpack(tensor)
    assert imported.device == tensor.device and imported.data_ptr() == tensor.data_ptr()
    assert torch.ones(1).__dlpack_device__() == (torch.utils.dlpack.DLDeviceType.kDLCPU, 0)


def test_integers_are_counted_in_intervals(vendor: AlteredVendor) -> None:
    counts = torch.histc(torch.tensor([1, 2, 2, 3, 9], device="diopi"), bins=3, min=0, max=3)
    assert (counts.dtype, counts.tolist()) == (torch.int64, [0, 1, 3])


def test_a_storage_can_be_resized(vendor: AlteredVendor) -> None:
    gc.collect()
    x = torch.arange(1024.0).to("diopi")
    storage, whole = x.untyped_storage(), torch.diopi.memory_allocated()
    storage.resize_(8)
    assert storage.nbytes() == 8 and torch.diopi.memory_allocated() < whole
    storage.resize_(4096)
    assert x.cpu()[:2].tolist() == [0.0, 1.0]
    storage.resize_(0)
    assert storage.nbytes() == 0


def test_tensors_that_share_a_storage_see_its_new_size(vendor: AlteredVendor) -> None:
    x = torch.ones(2, device="diopi")
    y = x[1:]
    x.resize_(1000)
    y.zero_()
    assert x[:2].tolist() == [1.0, 0.0]

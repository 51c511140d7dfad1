"""`torch.diopi`: the device, its streams, its generator and its memory."""

import gc
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from torch_devices import AlteredVendor, Limited

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

import diopi_torch  # noqa: E402  # behind the check for PyTorch
from diopi_torch.backend import use_vendor  # noqa: E402  # behind the check, too


def test_there_is_one_device(vendor: AlteredVendor) -> None:
    assert torch.diopi.is_available() and torch.diopi.is_initialized()
    assert (torch.diopi.device_count(), torch.diopi.current_device()) == (1, 0)
    torch.diopi.set_device("diopi:0")
    with torch.diopi.device(0):
        assert torch.ones(1, device="diopi").device == torch.device("diopi", 0)
    assert torch.diopi.get_device_name() == "altered_vendor 1"
    properties = torch.diopi.get_device_properties("diopi")
    assert "name='altered_vendor'" in repr(properties)
    assert (properties.total_memory is None) == (not vendor.host_addressable)
    assert torch.accelerator.current_accelerator() == torch.device("diopi")


@pytest.mark.parametrize("device", [1, "diopi:1", "cpu", torch.device("meta")])
def test_other_device_numbers_are_rejected(vendor: AlteredVendor, device: Any) -> None:
    with pytest.raises(RuntimeError, match="diopi:0"):
        torch.diopi.set_device(device)


def test_allocation_on_another_device_number_is_rejected(vendor: AlteredVendor) -> None:
    for make in (torch.empty, torch.ones, lambda size, device: torch.ones(size).to(device)):
        with pytest.raises(RuntimeError, match="'diopi:1'"):
            make(2, device="diopi:1")
    with pytest.raises(RuntimeError, match="diopi:0"):
        torch.accelerator.set_device_index(1)


def test_use_vendor_fails_after_the_first_use(vendor: AlteredVendor) -> None:
    with pytest.raises(diopi_torch.BackendError, match=r"altered_vendor.*torch_cpu"):
        use_vendor("torch_cpu")


def test_streams_and_events_order_work(vendor: AlteredVendor) -> None:
    side = torch.diopi.Stream()
    x = torch.arange(1000.0, device="diopi")
    begin, end = (torch.diopi.Event(enable_timing=True) for _ in range(2))
    with torch.diopi.stream(side):
        assert torch.diopi.current_stream() is side
        side.wait_stream(torch.diopi.default_stream())
        begin.record()
        y = x * 2
        side.record_event(end)
    assert torch.diopi.current_stream() is torch.diopi.default_stream()
    assert begin.elapsed_time(end) >= 0
    torch.diopi.current_stream().wait_event(end)
    assert y.sum().item() == 999000
    assert side.query() and end.query()
    plain = torch.diopi.Event()
    plain.record()
    plain.wait(side)
    with pytest.raises(ValueError, match="enable_timing=True"):
        begin.elapsed_time(plain)
    with side, torch.diopi.stream(None):
        assert torch.diopi.current_stream() is side
    assert torch.diopi.current_stream() is torch.diopi.default_stream()
    with pytest.raises(TypeError, match=r"torch\.diopi\.Stream.*torch\.Stream"):
        torch.diopi.set_stream(torch.Stream(device="diopi"))
    torch.diopi.set_stream(None)
    torch.diopi.set_stream(side)
    assert (x + y).cpu()[-1] == 2997
    torch.diopi.synchronize()


def test_memory_in_use_by_a_stream_is_retained(vendor: AlteredVendor) -> None:
    side, before = torch.diopi.Stream(), torch.diopi.memory_allocated()
    x = torch.ones(1000, device="diopi")
    x.record_stream(side)
    del x
    gc.collect()
    assert torch.diopi.memory_allocated() == before + 4096
    side.synchronize()
    assert torch.diopi.memory_allocated() == before
    with pytest.raises(TypeError, match=r"torch\.diopi\.Stream.*3"):
        torch.ones(1, device="diopi").record_stream(3)
    with pytest.raises(NotImplementedError, match="record_stream"):
        torch.ones(1).record_stream(torch.Stream("cpu"))


def test_seeds_and_states_determine_samples(vendor: AlteredVendor) -> None:
    torch.manual_seed(5)
    assert torch.diopi.initial_seed() == 5
    first = torch.rand(8, device="diopi")
    state = torch.diopi.get_rng_state()
    second = torch.rand(8, device="diopi")
    torch.diopi.set_rng_state(state)
    assert torch.equal(torch.rand(8, device="diopi"), second) and not torch.equal(first, second)
    torch.diopi.manual_seed(5)
    assert torch.equal(torch.rand(8, device="diopi"), first)
    with torch.random.fork_rng(device_type="diopi"):
        torch.rand(3, device="diopi")
    torch.diopi.set_rng_state_all(torch.diopi.get_rng_state_all())
    assert torch.equal(torch.rand(8, device="diopi"), second)
    torch.diopi.seed()
    assert not torch.equal(torch.rand(8, device="diopi"), first)
    with pytest.raises(ValueError, match=r"16.*torch\.uint8.*3.*torch\.float32"):
        torch.diopi.set_rng_state(torch.zeros(3))


def test_a_cpu_generator_determines_the_samples(vendor: AlteredVendor) -> None:
    draws = [torch.rand(4, device="diopi", generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    assert torch.equal(draws[0], draws[1]) and not torch.equal(draws[0], draws[2])


def test_memory_is_counted(vendor: AlteredVendor) -> None:
    gc.collect()
    before = torch.diopi.memory_allocated()
    torch.diopi.reset_peak_memory_stats()
    tensor = torch.empty(1000, device="diopi")
    assert torch.diopi.memory_allocated() == before + 4096
    del tensor
    assert torch.diopi.memory_allocated() == before
    assert torch.diopi.max_memory_allocated() == before + 4096
    assert torch.diopi.memory_reserved() >= 4096
    torch.diopi.empty_cache()
    assert torch.diopi.memory_reserved() == before
    assert torch.diopi.max_memory_reserved() == torch.diopi.memory_stats()["reserved_bytes.all.peak"] >= 4096


def test_the_accelerator_of_pytorch_is_the_device(vendor: AlteredVendor) -> None:
    accelerator = torch.accelerator
    accelerator.synchronize()
    accelerator.synchronize("diopi:0")
    with pytest.raises(RuntimeError, match="device 1"):
        accelerator.synchronize(1)
    tensor = torch.empty(1000, device="diopi")
    assert accelerator.memory_allocated() == accelerator.memory.memory_allocated(0) == torch.diopi.memory_allocated()
    assert accelerator.memory_stats() == torch.diopi.memory_stats()
    assert accelerator.current_stream() is torch.diopi.current_stream()
    stream = torch.diopi.Stream()
    with torch.diopi.stream(torch.diopi.default_stream()):
        accelerator.set_stream(stream)
        assert torch.diopi.current_stream() is stream
    del tensor
    accelerator.empty_cache()
    accelerator.empty_host_cache()
    accelerator.reset_accumulated_memory_stats()
    assert torch.bfloat16 in accelerator.get_device_capability()["supported_dtypes"] and torch.diopi.is_bf16_supported()
    assert accelerator.memory_reserved() == torch.diopi.memory_reserved()


def test_other_accelerators_are_those_of_pytorch(monkeypatch: pytest.MonkeyPatch, vendor: AlteredVendor) -> None:
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    with pytest.raises(RuntimeError, match="synchronizing"):
        torch.accelerator.synchronize()


def test_the_size_of_the_memory_is_reported(vendor: AlteredVendor) -> None:
    if vendor.host_addressable:
        free, total = torch.diopi.mem_get_info()
        assert 0 < free <= total
    else:
        with pytest.raises(RuntimeError, match=r"altered_vendor.*memory"):
            torch.diopi.mem_get_info()


def test_running_out_of_memory_raises_the_error_of_pytorch(activate_vendor: Callable[[Any], Any]) -> None:
    activate_vendor(AlteredVendor(Limited(2**20)))
    tensor = torch.empty(2**16, device="diopi")
    with pytest.raises(torch.OutOfMemoryError, match="1,048,576 bytes"):
        torch.empty(2**18, device="diopi")
    del tensor
    assert torch.empty(2**18, device="diopi").numel() == 2**18


def test_memory_of_a_process_can_be_limited(vendor: AlteredVendor) -> None:
    with pytest.raises(ValueError, match="2"):
        torch.diopi.set_per_process_memory_fraction(2)
    if not vendor.host_addressable:  # the size of the memory is unknown
        with pytest.raises(RuntimeError, match="altered_vendor"):
            torch.diopi.set_per_process_memory_fraction(0.5)
        return
    torch.diopi.set_per_process_memory_fraction(0)
    with pytest.raises(torch.OutOfMemoryError, match="limit of 0 bytes"):
        torch.empty(2**20, device="diopi")
    torch.diopi.set_per_process_memory_fraction(1)
    assert torch.empty(2**20, device="diopi").numel() == 2**20


def test_the_memory_summary_lists_each_statistic(vendor: AlteredVendor) -> None:
    summary = torch.diopi.memory_summary()
    assert len(summary.splitlines()) == len(torch.diopi.memory_stats())
    assert all(name in summary for name in torch.diopi.memory_stats())


PROGRAM = """
import os, torch, diopi_torch
assert not torch.diopi.is_initialized()
diopi_torch.use_vendor("torch_devices:limited")
torch.manual_seed(1)
x = torch.ones(3, device="diopi")
assert torch.diopi.get_device_name() == "altered_vendor 1"
if not os.fork():
    try:
        x + x
    except diopi_torch.BackendError as error:
        torch.manual_seed(2)
        os._exit(7 if "was in use when this process was forked" in str(error) else 1)
    os._exit(2)
print(os.waitstatus_to_exitcode(os.wait()[1]), torch.mm(x[None], x[:, None]).item(), diopi_torch.fallbacks())
"""


@pytest.mark.slow
def test_a_process_chooses_its_vendor_first_and_can_not_be_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The vendor is chosen before the first use, a fork can't use it, and operators are forced to the CPU."""
    monkeypatch.setenv("DIPU_FORCE_FALLBACK_OPS_LIST", "mm")
    monkeypatch.setenv("PYTHONPATH", ":".join(sys.path))
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True)
    assert done.stdout == "7 3.0 {'mm': 1}\n", done.stderr
    assert done.returncode == 0


@pytest.mark.slow
def test_an_invalid_list_in_the_environment_is_an_error_on_import(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIPU_FORCE_FALLBACK_OPS_LIST", "mmm")
    monkeypatch.setenv("PYTHONPATH", ":".join(sys.path))
    done = subprocess.run([sys.executable, "-c", "import diopi_torch"], capture_output=True, text=True)
    assert "SettingError: DIPU_FORCE_FALLBACK_OPS_LIST: 'mmm' does not match" in done.stderr

"""The device on a vendor with its own device runtime: the reference runtime, with two devices and delayed copies."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch_devices import AlteredVendor

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

from diopi_torch import backend as backend_module  # noqa: E402  # behind the check for PyTorch
from lib_rt.device_runtime import find_device_runtime  # noqa: E402  # behind the check, too

DELAY = 2000
"""How long each copy waits before it starts, in microseconds."""


BUSY_COPIES = 250
"""A number of copies that keep a stream busy for half a second."""


class WithRuntime(AlteredVendor):
    """The vendor `jax_cpu` with the reference runtime."""

    @property
    def device_runtime(self) -> Path:
        return find_device_runtime()


@pytest.fixture(params=[True, False], ids=["addressable", "apart"])
def devices(
    request: pytest.FixtureRequest, activate_vendor: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> WithRuntime:
    """Use the reference runtime with memory that the host can address and without."""
    monkeypatch.setenv("DIOPI_DEVICE_DELAY", str(DELAY))
    vendor = WithRuntime(host_addressable=request.param)
    activate_vendor(vendor)
    return vendor


def occupy(source: Any, target: Any) -> None:
    """Keep the current stream busy with copies from one tensor to another."""
    for _ in range(BUSY_COPIES):
        target.copy_(source)


def test_a_thread_selects_one_of_the_devices(devices: WithRuntime) -> None:
    assert torch.diopi.device_count() == torch.accelerator.device_count() == 2
    assert torch.diopi.current_device() == 0
    with torch.diopi.device(1):
        assert torch.diopi.current_device() == torch.accelerator.current_device_index() == 1
        created = [
            torch.empty(2, device="diopi"),
            torch.tensor([1.0], device="diopi"),
            torch.ones(2).to("diopi"),
            torch.nn.Linear(2, 2).to("diopi").weight,
            torch.randn(2, device="diopi"),
            torch.ones(2).diopi(),
        ]
        assert {tensor.device for tensor in created} == {torch.device("diopi:1")}
        assert torch.ones(1, device="diopi:0").device.index == 0
    assert torch.diopi.current_device() == 0
    assert torch.ones(2).to("diopi").device.index == 0
    torch.diopi.set_device("diopi:1")
    assert torch.zeros(1, device="diopi").device.index == 1
    torch.diopi.set_device(0)
    with torch.diopi.device_of(created[0]):
        assert torch.diopi.current_device() == 1


def test_devices_that_do_not_exist_are_rejected(devices: WithRuntime) -> None:
    for call in (
        lambda: torch.diopi.set_device(2),
        lambda: torch.ones(2, device="diopi:2"),
        lambda: torch.ones(2).to("diopi:5"),
    ):
        with pytest.raises(RuntimeError, match="the devices are diopi:0 to diopi:1"):
            call()


def test_properties_come_from_the_runtime(devices: WithRuntime) -> None:
    properties = torch.diopi.get_device_properties(1)
    assert properties.name == torch.diopi.get_device_name(1)
    free, total = torch.diopi.mem_get_info(1)
    assert 0 < free <= total == properties.total_memory
    assert properties.multi_processor_count > 0


def test_operators_run_on_the_device_of_their_tensors(devices: WithRuntime) -> None:
    x = torch.arange(6.0).reshape(2, 3).to("diopi:1").requires_grad_()
    loss = (x.T @ x * 2).sum()
    loss.backward()
    assert {loss.device.index, x.grad.device.index} == {1}
    host = x.detach().cpu().requires_grad_()
    (host.T @ host * 2).sum().backward()
    assert torch.equal(x.grad.cpu(), host.grad)
    assert torch.equal(x.detach().cumsum(0).cpu(), host.detach().cumsum(0))
    with pytest.raises(RuntimeError, match=r"diopi:1 and diopi:0"):
        x.detach() + torch.ones(2, 3, device="diopi:0")


def test_a_network_trains_on_the_second_device(devices: WithRuntime) -> None:
    losses = []
    for name in ("cpu", "diopi:1"):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
        batch = torch.randn(5, 4)
        model = model.to(name)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(3):
            optimizer.zero_grad()
            loss = model(batch.to(name)).square().mean()
            loss.backward()
            optimizer.step()
        losses.append(loss.cpu())
    torch.testing.assert_close(*losses)


@pytest.mark.parametrize("change", [lambda x: x, lambda x: x.T, lambda x: x[:, ::2], lambda x: x.expand(4, 3, 5)[1]])
def test_tensors_are_copied_between_devices(devices: WithRuntime, change: Callable[[Any], Any]) -> None:
    host = torch.arange(15.0).reshape(3, 5)
    source = change(host.to("diopi:0"))
    for target in (source.to("diopi:1"), source.to("diopi:1", torch.float64)):
        assert target.device.index == 1
        assert torch.equal(target.cpu().float(), change(host))
    written = torch.zeros(change(host).shape[::-1], device="diopi:1").T
    written.copy_(source, non_blocking=True)
    source.add_(1)  # after the copy
    assert torch.equal(written.cpu(), change(host))


def test_each_device_has_its_memory_and_generator(devices: WithRuntime) -> None:
    before = torch.diopi.memory_allocated(0), torch.diopi.memory_allocated(1)
    x = torch.ones(1000, device="diopi:1")
    assert torch.diopi.memory_allocated(0) == before[0]
    assert torch.diopi.memory_allocated(1) == before[1] + 4096
    del x
    torch.manual_seed(3)
    state = torch.diopi.get_rng_state(1)
    first = torch.rand(4, device="diopi:1").cpu()
    assert torch.equal(torch.rand(4, device="diopi:0").cpu(), first)
    torch.diopi.set_rng_state(state, 1)
    assert torch.equal(torch.rand(4, device="diopi:1").cpu(), first)
    assert len(torch.diopi.get_rng_state_all()) == 2


def test_streams_and_events_do_not_block_the_host(devices: WithRuntime) -> None:
    side = torch.diopi.Stream(1, priority=-1)
    begin, end = torch.diopi.Event(enable_timing=True), torch.diopi.Event(enable_timing=True)
    source, target = torch.ones(1000, device="diopi:1"), torch.zeros(1000, device="diopi:1")
    torch.diopi.synchronize(1)
    with torch.diopi.stream(side):
        assert torch.diopi.current_device() == 1 and torch.diopi.current_stream(1) is side
        begin.record()
        occupy(source, target)
        end.record()
        assert not side.query() and not end.query()
    assert torch.diopi.current_device() == 0
    main = torch.diopi.current_stream(1)
    main.wait_event(end)
    main.wait_stream(side)
    end.synchronize()
    assert side.query() and end.query()
    assert begin.elapsed_time(end) >= BUSY_COPIES * DELAY / 1000
    with pytest.raises(ValueError, match="enable_timing=True"):
        begin.elapsed_time(torch.diopi.Event(enable_timing=True))
    assert target.sum().item() == 1000


def test_memory_that_another_stream_uses_is_reused_after_its_work(devices: WithRuntime) -> None:
    side = torch.diopi.Stream()
    source, target = torch.ones(1000, device="diopi"), torch.zeros(1000, device="diopi")
    torch.diopi.synchronize()
    address, before = target.data_ptr(), torch.diopi.memory_allocated()
    target.record_stream(side)
    with torch.diopi.stream(side):
        occupy(source, target)
    del target
    assert torch.empty(1000, device="diopi").data_ptr() != address
    side.synchronize()
    assert torch.diopi.memory_allocated() == before - 4096


def test_copies_of_pinned_memory_do_not_block(devices: WithRuntime) -> None:
    host = torch.arange(1000.0).pin_memory()
    assert host.is_pinned()
    stream = torch.diopi.current_stream()
    source, target, back = torch.ones(1000), torch.zeros(1000, device="diopi"), torch.zeros(1000).pin_memory()
    occupy(source.to("diopi"), target)
    on_device = host.to("diopi", non_blocking=True)
    address = host.data_ptr()
    del host
    assert source.pin_memory().data_ptr() != address  # the copy still reads the block
    assert not stream.query()
    back.copy_(on_device, non_blocking=True)
    stream.synchronize()
    assert torch.equal(back, torch.arange(1000.0))
    assert torch.equal(on_device.to("cpu", non_blocking=True), back)


def test_operators_wait_for_asynchronous_copies(devices: WithRuntime) -> None:
    host = torch.full((1000,), 2.0).pin_memory()
    side = torch.diopi.Stream()
    with torch.diopi.stream(side):
        x = host.to("diopi", non_blocking=True)
        y = x * 3
    torch.diopi.current_stream().wait_stream(side)
    assert (y + x).sum().item() == 8000


def test_a_runtime_without_devices_is_rejected(
    activate_vendor: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    class NoDevices:
        device_count = 0

        def __init__(self, *_: object) -> None:
            pass

        def close(self) -> None:
            pass

    monkeypatch.setattr(backend_module, "VendorRuntime", NoDevices)
    with pytest.raises(backend_module.BackendError, match="has no device"):
        activate_vendor(WithRuntime())


def test_the_environment_names_the_runtime(
    activate_vendor: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIOPI_TORCH_RUNTIME", "reference")
    activate_vendor(AlteredVendor())
    assert torch.diopi.device_count() == 2
    assert torch.ones(2, device="diopi:1").sum().item() == 2

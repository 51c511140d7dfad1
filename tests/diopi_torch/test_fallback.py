"""Operators on the CPU: their results and written tensors are copied back, and they are counted."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch_devices import AlteredVendor

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

import diopi_torch  # noqa: E402  # behind the check for PyTorch

X = torch.tensor([[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]])


def test_results_return_to_the_device_and_are_counted(vendor: AlteredVendor) -> None:
    x = X.to("diopi")
    assert torch.equal(torch.cumprod(x, 1).cpu(), torch.cumprod(X, 1))
    values, indices = torch.kthvalue(x, 2, 1)
    assert values.is_diopi and torch.equal(indices.cpu(), torch.kthvalue(X, 2, 1).indices)
    torch.cumprod(x, 0)
    assert diopi_torch.fallbacks() == {"cumprod.out": 2, "kthvalue.values": 1}
    diopi_torch.reset_fallbacks()
    assert diopi_torch.fallbacks() == {}


def test_written_arguments_are_copied_back(vendor: AlteredVendor) -> None:
    x, expected = X.to("diopi"), X.clone()
    x[:, ::2].atan2_(x[:, 1:2])
    expected[:, ::2].atan2_(expected[:, 1:2])
    assert torch.equal(x.cpu(), expected)
    out = torch.empty(0, device="diopi")
    assert torch.cumprod(x, 1, out=out) is out and out.shape == x.shape
    assert torch.equal(out.cpu(), torch.cumprod(expected, 1))
    assert set(diopi_torch.fallbacks()) == {"atan2.out", "cumprod.out"}


def test_statistics_of_batches_are_copied_back(activate_vendor: Callable[[Any], Any]) -> None:
    activate_vendor(AlteredVendor(host_addressable=False, lacks={"diopiBatchNorm"}))
    here, there = torch.nn.BatchNorm1d(3), torch.nn.BatchNorm1d(3).to("diopi")
    torch.testing.assert_close(there(X.to("diopi")).cpu(), here(X))
    torch.testing.assert_close(there.running_mean.cpu(), here.running_mean)
    assert diopi_torch.fallbacks() == {"native_batch_norm": 1}


def test_the_seed_of_the_device_determines_fallback_samples(vendor: AlteredVendor) -> None:
    draws = []
    for seed in (1, 1, 2):
        torch.diopi.manual_seed(seed)
        draws.append([torch.empty(5, device="diopi").exponential_().cpu() for _ in range(2)])
    assert torch.equal(draws[0][0], draws[1][0]) and not torch.equal(draws[0][0], draws[2][0])
    assert not torch.equal(draws[0][0], draws[0][1])
    assert diopi_torch.fallbacks() == {"exponential_": 6}


def test_operators_that_the_cpu_lacks_raise_an_error(vendor: AlteredVendor) -> None:
    with pytest.raises(NotImplementedError, match="_fused_dropout"):
        torch.ops.aten._fused_dropout(X.to("diopi"), 0.5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int64], ids=str)
@pytest.mark.parametrize("shape", [(), (2, 3)], ids=str)
def test_numbers_may_replace_tensors(vendor: AlteredVendor, shape: tuple[int, ...], dtype: Any) -> None:
    x = torch.full(shape, 3, dtype=dtype)
    found, expected = (torch.copysign(tensor, -2.5) for tensor in (x.to("diopi"), x))
    assert found.dtype is expected.dtype and torch.equal(found.cpu(), expected)
    assert diopi_torch.fallbacks() == {"copysign.out": 1}


def test_gradients_of_no_distances_have_the_sizes_of_their_tensors(vendor: AlteredVendor) -> None:
    x, y = (torch.ones(shape, device="diopi", requires_grad=True) for shape in ((3, 5), (0, 4, 5)))
    torch.cdist(x, y).sum().backward()
    assert (x.grad.shape, y.grad.shape) == ((3, 5), (0, 4, 5))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage")  # of making one
def test_unsupported_layouts_raise_an_error(vendor: AlteredVendor) -> None:
    x = X.to("diopi")
    with pytest.raises(NotImplementedError, match=r"to_mkldnn.*torch\._mkldnn"):
        x.to_mkldnn()
    with pytest.raises(NotImplementedError, match=r"nested.*add\.Tensor"):
        torch.nested.as_nested_tensor([x, x]) + 1


def test_errors_of_the_cpu_propagate(vendor: AlteredVendor) -> None:
    with pytest.raises(RuntimeError, match="k out of range"):
        torch.kthvalue(X.to("diopi"), 7, 1)


@pytest.mark.slow
def test_any_program_runs_while_all_operators_are_forced_to_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIPU_FORCE_FALLBACK_OPS_LIST", ".*")
    program = Path(__file__).parents[1] / "helpers" / "everything_falls_back.py"
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("diopiCopyInp True\n", "", 0)

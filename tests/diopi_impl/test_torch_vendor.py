"""torch_cpu: side effects of its import, and the operands that its adapter passes."""

import subprocess
import sys
from pathlib import Path

import pytest
from baselines import make_level
from commands import run_here

from diopi_proto.interface import lookup

SCRIPT = """
import torch
torch.set_num_threads(3)
from diopi_impl.torch_cpu import vendor
assert torch.get_num_threads() == 3
vendor.open_device().close()
assert torch.get_num_threads() == 1
"""


def test_importing_torch_cpu_does_not_change_the_number_of_threads() -> None:
    pytest.importorskip("torch")
    subprocess.run([sys.executable, "-c", SCRIPT], check=True, timeout=120)


def test_operands_without_axes_take_part_in_type_promotion() -> None:
    """The standard promotes all operands equally; PyTorch gives precedence to operands with axes."""
    torch = pytest.importorskip("torch")
    from diopi_impl.torch_cpu.adapter import adapt_to_tensors

    multiply = adapt_to_tensors(lookup("diopiMul"), lambda input, other: torch.mul(input, other))
    other = torch.tensor(-149672470, dtype=torch.int32)
    for shape in ((1, 1), ()):
        (product,) = multiply([torch.full(shape, 2859, dtype=torch.int16), other], [])
        assert (product.dtype, product.shape) == (torch.int32, shape)


@pytest.mark.slow
def test_waivers_for_kernels_of_some_cpus_let_a_strict_run_succeed_on_every_cpu(tmp_path: Path) -> None:
    """Whether PyTorch has a kernel that fails these cases depends on the CPU, and a waiver may not be needed."""
    pytest.importorskip("torch", reason="the test runs torch_cpu, which needs PyTorch: pip install 'diopi[torch]'")
    data = make_level(tmp_path / "full", "diopiConvTranspose2d").parent
    labels = ("bfloat16-zero-factors", "float16-three-by-three-of-16")
    chosen = [word for label in labels for word in ("--case", f"diopiConvTranspose2d[{label}]")]
    done = run_here("run", "--vendor", "torch_cpu", "--strict", "--level", "full", "--data", data, *chosen, "-n", 1)
    assert done.returncode == 0, done.stdout

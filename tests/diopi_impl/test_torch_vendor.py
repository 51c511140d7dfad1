"""torch_cpu among others in a process."""

import subprocess
import sys

import pytest

SCRIPT = """
import torch
torch.set_num_threads(3)
from diopi_impl.torch_cpu import vendor
assert torch.get_num_threads() == 3
vendor.open_device().close()
assert torch.get_num_threads() == 1
"""


def test_importing_it_changes_no_number_of_threads() -> None:
    pytest.importorskip("torch")
    subprocess.run([sys.executable, "-c", SCRIPT], check=True, timeout=120)

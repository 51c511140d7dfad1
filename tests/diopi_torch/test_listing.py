"""`python -m diopi_torch ops` lists operators with their status."""

import pytest
from click.testing import CliRunner
from torch_devices import AlteredVendor

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

from diopi_torch.__main__ import main  # noqa: E402  # behind the check for PyTorch
from diopi_torch.listing import OperatorSupport, list_operators  # noqa: E402  # behind the check, too


def test_every_operator_has_a_status() -> None:
    found = {entry.operator: entry for entry in list_operators(AlteredVendor(lacks={"diopiMm", "diopiMulScalar"}))}
    assert list(found) == sorted(found)
    assert found["mul.Tensor"] == OperatorSupport("mul.Tensor", "diopiMul", "served")
    assert found["mm.out"] == OperatorSupport("mm.out", "diopiMm", "fallback")
    assert found["as_strided"] == OperatorSupport("as_strided", "-", "served")
    assert found["cumprod.out"] == OperatorSupport("cumprod.out", "", "fallback")
    assert found["_coalesce"] == OperatorSupport("_coalesce", "", "fallback")
    assert found["_nnz"] == OperatorSupport("_nnz", "-", "served")
    assert found["_fused_dropout"] == OperatorSupport("_fused_dropout", "", "unsupported")
    assert found["convolution"].function.startswith("diopiConvolution2d,")
    assert "linear" not in found and "ones" not in found, "PyTorch composes them"


def test_the_command_lists_and_counts() -> None:
    done = CliRunner().invoke(main, ["ops", "--vendor", "torch_devices:limited", "--status", "served"])
    assert done.exit_code == 0, done.output
    assert "mul.out\tdiopiMul\tserved\n" in done.stdout and "\tfallback\n" not in done.stdout
    assert "fallback," in done.stderr


def test_an_unknown_vendor_is_a_usage_error() -> None:
    done = CliRunner().invoke(main, ["ops", "--vendor", "nobody"])
    assert done.exit_code == 2 and "'nobody' is not one of" in done.output

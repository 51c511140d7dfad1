"""DIPU_DUMP_OP_ARGS prints operators when they are called."""

from collections.abc import Callable
from typing import Any

import pytest
from torch_devices import AlteredVendor

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

import diopi_torch  # noqa: E402  # behind the check for PyTorch
from diopi_torch.dump import VARIABLE  # noqa: E402  # behind the check, too

X = torch.tensor([[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]])


@pytest.fixture
def dump_at(
    activate_vendor: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], str]:
    """Return the output at a level, for an addition of a view and an operator on the CPU."""
    activate_vendor(AlteredVendor())
    x = X.to("diopi").requires_grad_()[:, ::2]

    def dump(level: str) -> str:
        monkeypatch.setenv(VARIABLE, level)
        x + 1
        torch.cumprod(x.detach(), 0)
        return capsys.readouterr().err

    return dump


def test_the_level_is_read_at_each_call(dump_at: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert dump_at("0") == dump_at("") == ""
    assert dump_at("1") == "add.Tensor: diopiAddScalar\ncumprod.out: CPU\n"
    lines = dump_at("2").splitlines()
    assert lines[0] == "add.Tensor: diopiAddScalar"
    assert lines[1].startswith(
        "  self: numel 4, sizes [2, 2], strides [3, 2], view True, dtype torch.float32, device diopi:0, "
        "layout torch.strided, requires_grad True, data_ptr 0x"
    )
    assert lines[2] == "  other: 1" and "tensor(" not in "".join(lines)
    assert "    tensor([[ 3.0000,  2.0000],\n            [ 0.5000, -2.0000]])\n  other: 1" in dump_at("3")
    assert dump_at("0") == ""


def test_entries_of_lists_are_printed_once(
    activate_vendor: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    activate_vendor(AlteredVendor())
    x = X.to("diopi")
    monkeypatch.setenv(VARIABLE, "2")
    torch._foreach_add([x, x], [x, x])
    printed = capsys.readouterr().err
    assert printed.count("_foreach_add.List: diopiAdd\n") == 2
    assert [printed.count(f"  {name}: numel 6") for name in ("self.0", "self.1", "other.0", "other.1")] == [1, 1, 1, 1]


def test_a_fallback_is_printed_as_cpu(
    activate_vendor: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    activate_vendor(AlteredVendor(lacks={"diopiMm"}))
    x = X.to("diopi")
    monkeypatch.setenv(VARIABLE, "1")
    x @ x.t()
    assert capsys.readouterr().err == "mm: CPU\n"


def test_the_parts_of_sparse_tensors_are_printed(
    activate_vendor: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    activate_vendor(AlteredVendor())
    x = X.to("diopi").to_sparse()
    monkeypatch.setenv(VARIABLE, "2")
    x.to_dense()
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["_to_dense: CPU", "  self: sizes [2, 3], layout torch.sparse_coo"]
    assert [line.split(",")[0] for line in lines[2:4]] == ["  self._indices: numel 12", "  self._values: numel 6"]


def test_an_unknown_level_is_an_error(dump_at: Callable[[str], str]) -> None:
    with pytest.raises(diopi_torch.SettingError, match=r"DIPU_DUMP_OP_ARGS.*'4'"):
        dump_at("4")

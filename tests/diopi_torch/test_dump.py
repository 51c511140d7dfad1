"""DIPU_DUMP_OP_ARGS: operators printed as they are called."""

from collections.abc import Callable
from typing import Any

import pytest
from torch_devices import Altered

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

import diopi_torch  # noqa: E402  # behind the check for PyTorch
from diopi_torch.dump import VARIABLE  # noqa: E402  # behind the check, too

X = torch.tensor([[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]])


@pytest.fixture
def told(
    on: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], str]:
    """What is printed at a level: of an addition of a view, and of what runs on the CPU."""
    on(Altered())
    x = X.to("diopi").requires_grad_()[:, ::2]

    def dump(level: str) -> str:
        monkeypatch.setenv(VARIABLE, level)
        x + 1
        torch.cumprod(x.detach(), 0)
        return capsys.readouterr().err

    return dump


def test_levels_count_from_call_to_call(told: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert told("0") == told("") == ""
    assert told("1") == "add.Tensor: diopiAddScalar\ncumprod.out: CPU\n"
    lines = told("2").splitlines()
    assert lines[0] == "add.Tensor: diopiAddScalar"
    assert lines[1].startswith(
        "  self: numel 4, sizes [2, 2], strides [3, 2], view True, dtype torch.float32, device diopi:0, "
        "layout torch.strided, requires_grad True, data_ptr 0x"
    )
    assert lines[2] == "  other: 1" and "tensor(" not in "".join(lines)
    assert "    tensor([[ 3.0000,  2.0000],\n            [ 0.5000, -2.0000]])\n  other: 1" in told("3")
    assert told("0") == ""


def test_entries_of_lists_are_printed_once(
    on: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on(Altered())
    x = X.to("diopi")
    monkeypatch.setenv(VARIABLE, "2")
    torch._foreach_add([x, x], [x, x])
    told = capsys.readouterr().err
    assert told.count("_foreach_add.List: diopiAdd\n") == 2
    assert [told.count(f"  {name}: numel 6") for name in ("self.0", "self.1", "other.0", "other.1")] == [1, 1, 1, 1]


def test_what_the_vendor_refuses_is_printed_as_it_goes_on(
    on: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on(Altered(lacks={"diopiMm"}))
    x = X.to("diopi")
    monkeypatch.setenv(VARIABLE, "1")
    x @ x.t()
    assert capsys.readouterr().err == "mm: CPU\n"


def test_sparse_tensors_are_printed_in_their_parts(
    on: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on(Altered())
    x = X.to("diopi").to_sparse()
    monkeypatch.setenv(VARIABLE, "2")
    x.to_dense()
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["_to_dense: CPU", "  self: sizes [2, 3], layout torch.sparse_coo"]
    assert [line.split(",")[0] for line in lines[2:4]] == ["  self._indices: numel 12", "  self._values: numel 6"]


def test_another_level_is_an_error(told: Callable[[str], str]) -> None:
    with pytest.raises(diopi_torch.SettingError, match="DIPU_DUMP_OP_ARGS: expected 0, 1, 2, 3, found '4'"):
        told("4")

"""The environment variables of the device."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

from diopi_torch import SUPPORTED  # noqa: E402  # behind the check for PyTorch
from diopi_torch.settings import (  # noqa: E402  # behind the check, too
    FALLBACK_FILE,
    FORCE_FALLBACK,
    SYNCHRONOUS,
    SettingError,
    forced_expressions,
    is_switched_on,
    selected_operators,
)
from diopi_torch.versions import check_version  # noqa: E402  # behind the check, too

KNOWN = ("add.Tensor", "add.out", "mm", "conv2d")


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("", set()),
        ("mm", {"mm"}),
        (" mm , add.Tensor ,", {"mm", "add.Tensor"}),
        ("add.*", {"add.Tensor", "add.out"}),
        (r"add\.out|mm", {"add.out", "mm"}),
    ],
)
def test_operators_are_chosen_by_whole_names(monkeypatch: pytest.MonkeyPatch, text: str, chosen: set[str]) -> None:
    monkeypatch.setenv(FORCE_FALLBACK, text)
    assert selected_operators(FORCE_FALLBACK, KNOWN) == chosen


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mm,add", "DIPU_FORCE_FALLBACK_OPS_LIST: 'add' does not match"),
        ("mm,(", r"DIPU_FORCE_FALLBACK_OPS_LIST: '\(' is not a regular expression"),
        ("aten::mm", "'aten::mm' does not match"),
    ],
)
def test_an_invalid_operator_pattern_is_an_error(monkeypatch: pytest.MonkeyPatch, text: str, message: str) -> None:
    monkeypatch.setenv(FORCE_FALLBACK, text)
    with pytest.raises(SettingError, match=message):
        selected_operators(FORCE_FALLBACK, KNOWN)


def test_the_environment_and_a_file_force_operators(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(FORCE_FALLBACK, "mm, add.out,")
    assert forced_expressions() == ["mm", "add.out"]
    FALLBACK_FILE.write_text("\nfill_.Scalar\n  sub.* , mul.Tensor\n")
    assert forced_expressions() == ["mm", "add.out", "fill_.Scalar", "sub.*", "mul.Tensor"]


def test_a_switch_is_off_unless_the_environment_sets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SYNCHRONOUS, raising=False)
    assert not is_switched_on(SYNCHRONOUS)
    monkeypatch.setenv(SYNCHRONOUS, "1")
    assert is_switched_on(SYNCHRONOUS)


def test_unsupported_versions_of_pytorch_are_rejected() -> None:
    for version in SUPPORTED:
        check_version(f"{version}.0+cpu")
        check_version(f"{version}.7")
    for version in ("2.12.1", "2.130.0", "3.0", "git"):
        with pytest.raises(ImportError, match=rf"2\.13.*{version}"):
            check_version(version)

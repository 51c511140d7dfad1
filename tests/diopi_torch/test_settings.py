"""The environment variables of the device."""

import pytest

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

from diopi_torch import SUPPORTED  # noqa: E402  # behind the check for PyTorch
from diopi_torch.settings import FORCE_FALLBACK, SettingError, selected_operators  # noqa: E402  # behind the check, too
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


def test_unsupported_versions_of_pytorch_are_rejected() -> None:
    for version in SUPPORTED:
        check_version(f"{version}.0+cpu")
        check_version(f"{version}.7")
    for version in ("2.12.1", "2.130.0", "3.0", "git"):
        with pytest.raises(ImportError, match=rf"2\.13.*{version}"):
            check_version(version)

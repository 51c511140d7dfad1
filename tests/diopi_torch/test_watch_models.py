"""A watch names no operator in models without faults."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

from healthy_models import MODELS  # noqa: E402  # behind the check for PyTorch

import diopi_torch  # noqa: E402  # behind the check, too


@pytest.mark.parametrize("train", MODELS.values(), ids=MODELS.keys())
def test_no_operator_of_a_healthy_model_is_named(train: Callable[[], Any], capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    with diopi_torch.watch(overhead=math.inf) as watch:
        train()
    printed = capsys.readouterr().err
    assert watch.wrong_operators == [], printed
    assert watch.counts.judged.total() > 20, printed
    assert "judging failed" not in printed

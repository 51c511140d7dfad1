"""A watch names no operator in models without faults."""

from __future__ import annotations

import math

import pytest
from sampling import sampled

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

from healthy_models import MODELS  # noqa: E402  # behind the check for PyTorch

import diopi_torch  # noqa: E402  # behind the check, too


@pytest.mark.parametrize("name", sampled(MODELS, 1))
def test_no_operator_of_a_healthy_model_is_named(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    with diopi_torch.watch(overhead=math.inf) as watch:
        MODELS[name]()
    printed = capsys.readouterr().err
    assert watch.wrong_operators == [], printed
    assert watch.counts.judged.total() > 20, printed
    assert "judging failed" not in printed

"""Plans: what is found out once for all calls of one form, and what is not."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest
from torch_devices import Altered

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

from diopi_proto.types import Dtype  # noqa: E402  # behind the check for PyTorch
from diopi_torch import plans  # noqa: E402  # behind the check, too
from diopi_torch.backend import backend  # noqa: E402  # behind the check, too

DEVICE = "diopi"


@pytest.fixture
def found(vendor: Altered) -> Iterator[mock.Mock]:
    """Counts how often the calls of an operator are found out."""
    with (
        mock.patch.dict(plans._plans, clear=True),
        mock.patch.object(plans, "function_calls", side_effect=plans.function_calls) as counted,
    ):
        yield counted


def test_calls_of_one_form_are_found_out_once(found: mock.Mock) -> None:
    for value in (1.0, 2.0, 3.0):
        one, two = torch.full((3, 2), value, device=DEVICE), torch.ones(3, 2, device=DEVICE)
        found.reset_mock()
        assert torch.add(one, two, alpha=2).tolist() == [[value + 2] * 2] * 3
    assert found.call_count == 0


def test_other_forms_have_their_own(found: mock.Mock) -> None:
    x, whole = torch.ones(4, device=DEVICE), torch.ones(4, dtype=torch.int64, device=DEVICE)
    calls = [(x, x, 1), (x, x, 1.0), (x, x, -0.0), (x, x, 0.0), (whole, whole, 1), (x[::2], x[::2], 1), (x, x[:1], 1)]
    for one, two, alpha in calls:
        expected = torch.add(one.cpu(), two.cpu(), alpha=alpha)
        found.reset_mock()
        assert torch.add(one, two, alpha=alpha).tolist() == expected.tolist()
        assert found.call_count == 1


def test_entries_of_lists_are_those_of_the_call(found: mock.Mock) -> None:
    for value in (1.0, 2.0):
        parts = [torch.full((2,), value, device=DEVICE), torch.full((1,), 3 * value, device=DEVICE)]
        assert torch.cat(parts).tolist() == [value, value, 3 * value]


def test_what_is_made_for_a_call_has_no_plan(found: mock.Mock) -> None:
    draws = []
    for seed in (1, 1, 2):
        x = torch.empty(100, device=DEVICE)
        draws.append(x.uniform_(generator=torch.Generator().manual_seed(seed)).cpu())
    assert draws[0].equal(draws[1])
    assert not draws[0].equal(draws[2])
    for limit in (1.0, 2.0):
        x = torch.full((3,), 5.0, device=DEVICE)
        assert torch.clamp(x, max=torch.tensor(limit, device=DEVICE)).tolist() == [limit] * 3


def test_plans_are_not_kept_for_ever(found: mock.Mock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "KEPT", 3)
    for size in range(1, 10):
        assert torch.ones(size, device=DEVICE).neg().tolist() == [-1] * size
    assert len(plans._plans) <= 3


def test_a_stream_keeps_the_tensors_it_was_used_with(vendor: Altered) -> None:
    stream, x = backend().stream, torch.arange(4.0, device=DEVICE)
    memory = x.untyped_storage()
    form = memory.data_ptr(), memory.nbytes(), (4,), Dtype.float32, (1,), 0
    one = stream.tensor(*form)
    assert stream.tensor(*form) is one
    assert stream.tensor(*form[:2], (2,), *form[3:]) is not one
    stream.end_context()
    assert stream.tensor(*form) is not one
    assert stream.tensor(*form).numpy().tolist() == [0, 1, 2, 3]

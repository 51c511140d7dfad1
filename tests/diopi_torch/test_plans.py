"""Plans: what is determined once for all calls of one form, and what is not."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest
from torch_devices import AlteredVendor

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

from diopi_torch import plans  # noqa: E402  # behind the check for PyTorch
from diopi_torch.backend import backend  # noqa: E402  # behind the check, too
from diopi_torch.layout import layout_of  # noqa: E402  # behind the check, too

DEVICE = "diopi"


@pytest.fixture
def found(vendor: AlteredVendor) -> Iterator[mock.Mock]:
    """Return a counter of how often calls of an operator are planned."""
    with mock.patch.object(plans, "function_calls", side_effect=plans.function_calls) as counted:
        yield counted


def test_calls_of_the_same_form_share_a_plan(found: mock.Mock) -> None:
    for value in (1.0, 2.0, 3.0):
        x, y = torch.full((3, 2), value, device=DEVICE), torch.ones(3, 2, device=DEVICE)
        found.reset_mock()
        assert torch.add(x, y, alpha=2).tolist() == [[value + 2] * 2] * 3
    assert found.call_count == 0


def test_calls_of_different_forms_have_different_plans(found: mock.Mock) -> None:
    x, whole = torch.ones(4, device=DEVICE), torch.ones(4, dtype=torch.int64, device=DEVICE)
    calls = [(x, x, 1), (x, x, 1.0), (x, x, -0.0), (x, x, 0.0), (whole, whole, 1), (x[::2], x[::2], 1), (x, x[:1], 1)]
    for first, second, alpha in calls:
        expected = torch.add(first.cpu(), second.cpu(), alpha=alpha)
        found.reset_mock()
        assert torch.add(first, second, alpha=alpha).tolist() == expected.tolist()
        assert found.call_count == 1


def test_plans_use_the_list_entries_of_each_call(found: mock.Mock) -> None:
    for value in (1.0, 2.0):
        parts = [torch.full((2,), value, device=DEVICE), torch.full((1,), 3 * value, device=DEVICE)]
        assert torch.cat(parts).tolist() == [value, value, 3 * value]


def test_operators_that_write_have_a_plan_for_each_way_to_share_memory(found: mock.Mock) -> None:
    for _ in range(2):
        x, y = torch.arange(4.0, device=DEVICE), torch.ones(4, device=DEVICE)
        found.reset_mock()
        torch.sub(x, y, out=y)
        torch.sub(y, y, out=x)
        assert (x.tolist(), y.tolist()) == ([0] * 4, [-1, 0, 1, 2])
    assert found.call_count == 0


def test_calls_without_a_plan_fall_back_at_once(found: mock.Mock) -> None:
    for _ in range(2):
        x = torch.ones(3, dtype=torch.complex64, device=DEVICE)
        found.reset_mock()
        assert torch.polar(x.real, x.real).shape == (3,)
        assert torch.xlogy(x.real.short(), x.real.short()).tolist() == [0] * 3
    assert found.call_count == 0


def test_plans_use_the_numbers_of_each_call(found: mock.Mock) -> None:
    for value in (2.0, 3.0):
        x = torch.ones(3, device=DEVICE)
        assert torch.add(x, torch.tensor(value)).tolist() == [1 + value] * 3
        assert x.new_full((), value).expand(3).add(x).tolist() == [1 + value] * 3


def test_plans_use_the_numbers_in_lists_of_each_call(found: mock.Mock) -> None:
    for numbers in ([1.0, 2.0], [3.0, -0.0]):
        xs = [torch.full((size,), 6.0, device=DEVICE) for size in (2, 3)]
        ones = torch._foreach_div(xs, [1.0, 1.0])
        found.reset_mock()
        torch._foreach_addcdiv_(xs, ones, ones, numbers)
        assert [x.tolist() for x in xs] == [[6 + numbers[0]] * 2, [6 + numbers[1]] * 3]
        torch._foreach_mul_(xs, numbers)
        assert xs[1].tolist() == [(6 + numbers[1]) * numbers[1]] * 3
    assert found.call_count == 0


def test_created_tensors_are_not_shared_between_calls(found: mock.Mock) -> None:
    draws = []
    for seed in (1, 1, 2):
        x = torch.empty(100, device=DEVICE)
        draws.append(x.uniform_(generator=torch.Generator().manual_seed(seed)).cpu())
    assert draws[0].equal(draws[1])
    assert not draws[0].equal(draws[2])
    for limit in (1.0, 2.0):
        x = torch.full((3,), 5.0, device=DEVICE)
        assert torch.clamp(x, max=torch.tensor(limit, device=DEVICE)).tolist() == [limit] * 3


def test_the_number_of_cached_plans_is_limited(found: mock.Mock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "MAX_CACHED_PLANS", 3)
    for size in range(1, 10):
        assert torch.ones(size, device=DEVICE).neg().tolist() == [-1] * size
    assert len(backend().plans) <= 3


def test_a_stream_caches_native_tensors(vendor: AlteredVendor) -> None:
    stream, x = backend().stream, torch.arange(4.0, device=DEVICE)
    form = layout_of((4,), (1,), torch.float32)
    opened = stream.open_tensor(x, form)
    assert stream.open_tensor(x, form) is opened
    assert stream.open_tensor(x[:2], layout_of((2,), (1,), torch.float32)) is not opened
    stream.end_context()
    assert stream.open_tensor(x, form) is not opened
    assert stream.open_tensor(x, form).numpy().tolist() == [0, 1, 2, 3]


def test_native_tensors_of_freed_memory_are_not_reused(vendor: AlteredVendor) -> None:
    stream, form = backend().stream, layout_of((4,), (1,), torch.float32)
    x = torch.arange(4.0, device=DEVICE)
    opened = stream.open_tensor(x, form)
    del x
    torch.diopi.empty_cache()
    assert stream.open_tensor(torch.arange(4.0, device=DEVICE), form) is not opened

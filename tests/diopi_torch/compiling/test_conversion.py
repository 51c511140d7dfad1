"""Programs compute what operators compute one at a time, for PyTorch's samples of its operators."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import pytest
from sampling import draw_sample

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

from operator_forms import ANY_VALUES, all_operators, full_name  # noqa: E402  # behind the check for PyTorch
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402  # behind the check, too
from torch.utils import _pytree as pytree  # noqa: E402  # behind the check, too

from diopi_torch.compiling.backend import CompiledGraph, decompositions_for_programs  # noqa: E402  # behind the check, too

SAMPLE_SIZE = 6
"""Number of operators that every run tries. Programs can't contain some of them."""

LARGE_SAMPLE_SIZE = 24
"""Number of operators that CI tries."""

PARTS = 8
"""Number of tests into which all operators are divided."""

KNOWN_DIFFERENCES = {
    "native_batch_norm": "in evaluation mode, a program returns saved statistics that are empty in eager mode",
}
"""Operators whose programs differ from eager mode, with the reason."""

SAMPLES = 2
"""Number of samples of each operator."""


def find_difference(operator: Any, sample: Any) -> str | None:
    """Compare a sample's program with eager mode on the device.

    Args:
        operator: PyTorch's description of the operator.
        sample: a sample of its arguments on the CPU.

    Returns:
        The difference; None if there is none, or if eager mode does not accept the sample.
    """
    arguments = [sample.input, *sample.args]
    values, structure = pytree.tree_flatten((arguments, dict(sample.kwargs)))
    places = [place for place, value in enumerate(values) if isinstance(value, torch.Tensor)]
    tensors = [values[place].detach().to("diopi") for place in places]

    def call(*tensors: Any) -> Any:
        for place, tensor in zip(places, tensors, strict=True):
            values[place] = tensor
        args, kwargs = pytree.tree_unflatten(values, structure)
        return pytree.tree_leaves(operator(*args, **kwargs))

    try:
        torch.manual_seed(7)
        expected = call(*tensors)
        graph = make_fx(call, decompositions_for_programs(), tracing_mode="fake")(*tensors)
    except Exception:  # the operator is no function of tensors, or can't be traced; other tests compare eager mode
        return None
    torch.manual_seed(7)
    try:
        actual = CompiledGraph(graph).run(list(tensors))
        for result, wanted in zip(pytree.tree_leaves(actual), expected, strict=True):
            if isinstance(wanted, torch.Tensor):
                assert result.stride() == wanted.stride() or not wanted.is_contiguous()
                torch.testing.assert_close(result.cpu(), wanted.cpu(), rtol=1e-4, atol=1e-5, equal_nan=True)
    except Exception as error:
        return f"{full_name(operator)}: {type(error).__name__} {str(error)[:200]}"
    return None


def assert_programs_agree(operators: Sequence[Any]) -> None:
    """Assert that the programs of operators agree with eager mode."""
    differences = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns about some of its own samples
        for operator in operators:
            if operator.name.startswith(ANY_VALUES) or operator.name in KNOWN_DIFFERENCES:
                continue
            samples = operator.sample_inputs("cpu", torch.float32) if torch.float32 in operator.dtypes else ()
            for _, sample in zip(range(SAMPLES), samples, strict=False):
                if difference := find_difference(operator, sample):
                    differences.append(difference)
    assert differences == []


@pytest.mark.parametrize("size", [SAMPLE_SIZE, pytest.param(LARGE_SAMPLE_SIZE, marks=pytest.mark.slow)])
def test_the_programs_of_a_sample_of_operators_agree_with_eager_mode(size: int) -> None:
    assert_programs_agree(draw_sample(all_operators(), size))


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(PARTS))
def test_the_programs_of_all_operators_agree_with_eager_mode(part: int) -> None:
    assert_programs_agree(all_operators()[part::PARTS])

"""What PyTorch's own samples of its operators do on the device: which agree with the CPU, and which fall back to it.

    pip install '.[torch]' expecttest
    DIOPI_TORCH_VENDOR=my_vendor python benchmarks/torch_samples.py [-k softmax] [--samples N]

Samples are those of `torch.testing._internal.common_methods_invocations.op_db` in float32, the first of each operator.
Results and gradients are compared with the CPU's; of operators that draw, or leave memory as it is, the shapes and
types. A line an operator, with what fell back; then how many ended how.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import torch
from torch.testing._internal import common_methods_invocations

import diopi_torch

TOLERANCE = 1e-4
"""Relative and absolute."""

UNINITIALISED = ("empty", "new_empty")
"""How the names of operators begin that leave memory as it is."""

common_methods_invocations.wrapper_set_seed = lambda operator, *args, **named: operator(*args, **named)
"""Samples of operators that draw seed the generator themselves, so that it would not show that they draw."""


def mapped(change: Callable[[torch.Tensor], torch.Tensor], value: Any) -> Any:
    """A sample's argument with each tensor changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: mapped(change, entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        entries = [mapped(change, entry) for entry in value]
        return type(value)(*entries) if hasattr(value, "_fields") else type(value)(entries)
    return torch.empty(0, device=value).device if isinstance(value, torch.device) else value


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in a value."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple | dict):
        for entry in value.values() if isinstance(value, dict) else value:
            yield from tensors(entry)


def outcome(operator: Any, sample: Any, device: str, seed: int = 0) -> tuple[Any, list[Any]]:
    """What an operator returns for a sample on a device, and the gradients of what it was given."""
    leaves: list[torch.Tensor] = []

    def moved(tensor: torch.Tensor) -> torch.Tensor:
        leaf = tensor.detach().clone().to(device).requires_grad_(tensor.requires_grad)
        leaves.extend([leaf] if tensor.requires_grad else [])
        return leaf.clone() if tensor.requires_grad else leaf

    given, args, named = (mapped(moved, value) for value in (sample.input, sample.args, sample.kwargs))
    torch.manual_seed(seed)
    returned = operator(given, *args, **({**named, "device": device} if "device" in named else named))
    made = [tensor for tensor in tensors(returned) if tensor.requires_grad]
    if made and leaves:
        torch.autograd.backward(made, [torch.ones_like(tensor) for tensor in made])
    return returned, [leaf.grad for leaf in leaves]


def described(value: Any) -> list[Any]:
    """The shapes and element types of the tensors in a value."""
    return [(tensor.shape, tensor.dtype) for tensor in tensors(value)]


def check(operator: Any, sample: Any) -> str:
    """How a sample ended: `agrees`, `draws` (of which less is compared), or what is wrong."""
    try:
        expected = outcome(operator, sample, "cpu")
        again = outcome(operator, sample, "cpu", seed=1)
    except Exception:
        return ""  # no sample of the CPU
    try:
        found = outcome(operator, sample, "diopi")
    except Exception as error:
        return f"raises {type(error).__name__}: {error}"
    draws = operator.name.startswith(UNINITIALISED) or not same(again, expected)
    if draws:
        return "draws" if described(found[0]) == described(expected[0]) else "differs in shape or type"
    return "agrees" if same(found, expected) else "differs"


def same(found: Any, expected: Any) -> bool:
    """Whether two outcomes are equal but for rounding."""
    try:
        torch.testing.assert_close(
            mapped(lambda tensor: tensor.detach().cpu(), found),
            mapped(lambda tensor: tensor.detach().cpu(), expected),
            rtol=TOLERANCE,
            atol=TOLERANCE,
            equal_nan=True,
        )
    except AssertionError:
        return False
    return True


def main() -> None:
    """Print how the samples end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", default="", help="only operators with this in their names")
    parser.add_argument("--samples", type=int, default=3, help="of each operator")
    parser.add_argument("--first", type=int, default=0, help="number of the operator to begin with")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    ends: Counter[str] = Counter()
    for number, operator in enumerate(common_methods_invocations.op_db):
        name = ".".join(filter(None, (operator.name, operator.variant_test_name)))
        if number < options.first or options.k not in name or torch.float32 not in operator.dtypes:
            continue
        diopi_torch.reset_fallbacks()
        gradients = operator.supports_autograd
        samples = operator.sample_inputs("cpu", torch.float32, requires_grad=gradients)
        found = list(filter(None, (check(operator, sample) for sample in islice(samples, options.samples))))
        worst = max(found, key=lambda end: (end not in ("agrees", "draws"), end == "draws"), default="has no sample")
        kind, fallbacks = worst.split()[0], " ".join(diopi_torch.fallbacks())
        ends[kind + (" with a fallback" if fallbacks and kind in ("agrees", "draws") else "")] += 1
        print(number, name, worst.splitlines()[0][:160], f"[{fallbacks}]" if fallbacks else "", sep="\t", flush=True)
    print(", ".join(f"{count} {end}" for end, count in ends.most_common()))


if __name__ == "__main__":
    main()

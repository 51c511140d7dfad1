"""Run PyTorch's own samples of its operators on the device: which agree with the CPU, and which fall back to the CPU.

    pip install '.[torch]' expecttest
    DIOPI_TORCH_VENDOR=my_vendor python benchmarks/torch_samples.py [-k softmax] [--dtype int64] [--samples N]

The samples are those of `torch.testing._internal.common_methods_invocations.op_db` in one element type: the first ones
of each operator, or of each N-th operator. Results and gradients are compared with the CPU's. For operators that draw
random numbers or return uninitialized memory, only shapes and types are compared. The script prints a line per operator
with its fallbacks, then the number of operators by outcome, and the number of samples whose operators are in the table.
With --compare, `diopi_torch.autocompare` also checks each call of a function.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch.testing._internal import common_methods_invocations
from torch.utils._python_dispatch import TorchDispatchMode

import diopi_torch
from diopi_torch.fallback import operator_name
from diopi_torch.operators import kernels

TOLERANCE = 1e-4
"""The relative and absolute tolerance."""

UNINITIALIZED = ("empty", "new_empty")
"""Beginnings of the names of operators that return uninitialized memory."""

ARGUMENTS_ON_CPU = ("tensor_split",)
"""Operators whose arguments, except for the first, are on the CPU on every device."""

ANY_ORDER = ("argsort", "sort", "topk")
"""Operators that do not specify the order of equal numbers. Positions are compared only if all numbers differ."""

common_methods_invocations.wrapper_set_seed = lambda operator, *args, **named: operator(*args, **named)
"""Samples of random operators set the seed themselves, which would hide that the operators are random."""


class SampleOutcome(NamedTuple):
    """The outcome of a sample.

    Attributes:
        text: `agrees`, `draws` (a random operator, of which less is compared), or the difference.
        in_table: whether the CPU called an operator of the table for the sample.
    """

    text: str
    in_table: bool


class OperatorRecorder(TorchDispatchMode):
    """A mode that records which ATen operators are called within the `with` statement."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.add(operator_name(operator))
        return operator(*args, **(kwargs or {}))


def map_tensors(change: Callable[[torch.Tensor], torch.Tensor], value: Any) -> Any:
    """Return an argument of a sample with each tensor changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: map_tensors(change, entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        entries = [map_tensors(change, entry) for entry in value]
        return type(value)(*entries) if hasattr(value, "_fields") else type(value)(entries)
    return torch.empty(0, device=value).device if isinstance(value, torch.device) else value


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in a value."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple | dict):
        for entry in value.values() if isinstance(value, dict) else value:
            yield from tensors(entry)


def outcome(operator: Any, sample: Any, device: str, seed: int = 0) -> tuple[Any, list[Any]]:
    """Return the result of an operator for a sample on a device, and the gradients of the sample's tensors."""
    leaves: list[torch.Tensor] = []

    def moved(tensor: torch.Tensor) -> torch.Tensor:
        leaf = tensor.detach().clone().to(device).requires_grad_(tensor.requires_grad)
        leaves.extend([leaf] if tensor.requires_grad else [])
        return leaf.clone() if tensor.requires_grad else leaf

    first, args, named = map_tensors(moved, sample.input), sample.args, sample.kwargs
    if operator.name not in ARGUMENTS_ON_CPU:
        args, named = map_tensors(moved, args), map_tensors(moved, named)
    torch.manual_seed(seed)
    returned = operator(first, *args, **({**named, "device": device} if "device" in named else named))
    differentiable = [tensor for tensor in tensors(returned) if tensor.requires_grad]
    if differentiable and leaves:
        torch.autograd.backward(differentiable, [torch.ones_like(tensor) for tensor in differentiable])
    if operator.name in ANY_ORDER and sample.input.unique().numel() < sample.input.numel():
        returned = [tensor for tensor in tensors(returned) if operator.name != "argsort" and tensor is returned[0]]
    return returned, [leaf.grad for leaf in leaves]


def list_forms(value: Any) -> list[Any]:
    """Return the shapes and element types of the tensors in a value."""
    return [(tensor.shape, tensor.dtype) for tensor in tensors(value)]


def check(operator: Any, sample: Any) -> SampleOutcome | None:
    """Return the outcome of a sample; None if the CPU has no result for it."""
    try:
        with OperatorRecorder() as called:
            expected = outcome(operator, sample, "cpu")
        expected_with_other_seed = outcome(operator, sample, "cpu", seed=1)
    except Exception:
        return None
    return SampleOutcome(
        _compare_with_cpu(operator, sample, expected, expected_with_other_seed), not called.names.isdisjoint(kernels())
    )


def _compare_with_cpu(operator: Any, sample: Any, expected: Any, expected_with_other_seed: Any) -> str:
    """Return in words how the result of a sample on the device compares with the CPU's.

    Args:
        operator: the operator of PyTorch's database.
        sample: the arguments.
        expected: the outcome on the CPU.
        expected_with_other_seed: the outcome on the CPU with another seed; it differs if the operator draws.
    """
    try:
        actual = outcome(operator, sample, "diopi")
    except Exception as error:
        return f"raises {type(error).__name__}: {error}"
    draws = operator.name.startswith(UNINITIALIZED) or not are_equal(expected_with_other_seed, expected)
    if draws:
        return "draws" if list_forms(actual[0]) == list_forms(expected[0]) else "differs in shape or type"
    return "agrees" if are_equal(actual, expected) else "differs"


def are_equal(actual: Any, expected: Any) -> bool:
    """Return whether two outcomes are equal within the tolerance."""
    try:
        torch.testing.assert_close(
            map_tensors(lambda tensor: tensor.detach().cpu(), actual),
            map_tensors(lambda tensor: tensor.detach().cpu(), expected),
            rtol=TOLERANCE,
            atol=TOLERANCE,
            equal_nan=True,
        )
    except AssertionError:
        return False
    return True


def main() -> None:
    """Print the outcomes of the samples."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", default="", help="only operators with this in their names")
    parser.add_argument("--dtype", default="float32", help="element type of the samples")
    parser.add_argument("--samples", type=int, default=3, help="number of samples per operator")
    parser.add_argument("--first", type=int, default=0, help="number of the operator to begin with")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each N-th operator")
    parser.add_argument("--compare", action="store_true", help="check each call of a function, which takes long")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if not options.compare:
        run(options)
        return
    with diopi_torch.autocompare(quiet=True) as comparison:
        run(options)
    compared, failures = (sum(counts[name] for counts in comparison.counts.values()) for name in ("compared", "wrong"))
    print(f"calls of operators: {compared} compared, {failures} of them wrong")


def run(options: argparse.Namespace) -> None:
    """Run the samples and print their outcomes."""
    dtype = getattr(torch, options.dtype)
    outcomes: Counter[str] = Counter()
    in_table: Counter[str] = Counter()
    for number, operator in enumerate(common_methods_invocations.op_db):
        name = ".".join(filter(None, (operator.name, operator.variant_test_name)))
        if number < options.first or number % options.every or options.k not in name or dtype not in operator.dtypes:
            continue
        diopi_torch.reset_fallbacks()
        gradients = operator.supports_autograd and dtype.is_floating_point
        samples = operator.sample_inputs("cpu", dtype, requires_grad=gradients)
        checked = list(filter(None, (check(operator, sample) for sample in islice(samples, options.samples))))
        in_table.update(end.text.split()[0] for end in checked if end.in_table)
        worst = max((end.text for end in checked), key=_severity, default="has no sample")
        kind, fallbacks = worst.split()[0], " ".join(diopi_torch.fallbacks())
        outcomes[kind + (" with a fallback" if fallbacks and kind in GOOD else "")] += 1
        print(number, name, worst.splitlines()[0][:160], f"[{fallbacks}]" if fallbacks else "", sep="\t", flush=True)
    print("operators:", ", ".join(f"{count} {end}" for end, count in outcomes.most_common()))
    print(
        "samples that call what is in the table:", ", ".join(f"{count} {end}" for end, count in in_table.most_common())
    )


GOOD = ("agrees", "draws")
"""The outcomes of samples without a defect: the results agree, or are random."""


def _severity(end: str) -> tuple[bool, bool]:
    """Return the sort key of an outcome; worse outcomes have larger keys."""
    return end not in GOOD, end == "draws"


if __name__ == "__main__":
    main()

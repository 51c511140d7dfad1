"""Cases of aliasing: a caller passes one tensor for several parameters, or inputs with a common storage.

The baseline does not contain these cases. When they run, each is derived from a stored case whose tensors have suitable
shapes, element types and layouts:

- A result overwrites an argument (`Prototype.aliases`). Its results must be those of the stored case.
- Two inputs are one tensor, or contiguous tensors that overlap, or one is a transposed view of the other, as in
  `x @ x.T` (`diopi_proto.sharing`). The stored case provides the values. The reference is evaluated on the arguments
  that result from sharing them.
- The starts of the sequences of queries and keys are one tensor, as in self-attention. They are equal in the stored
  case, whose results do not change.
- An array has one tensor as two of its entries.
- A function whose results may overwrite arguments gets one tensor for two inputs and for the result, as in `x.mul_(x)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, final

import numpy as np

from diopi_proto import parameters as kinds
from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from diopi_proto.sharing import InputPair, find_input_pairs
from diopi_test.cases.case import CaseClass
from diopi_test.cases.layouts import contiguous, strides
from diopi_test.execution.bases import find_bases
from diopi_test.execution.evaluated import DerivationError, evaluate_with_arguments
from diopi_test.execution.negative_cases import has_nonempty_inputs
from diopi_test.oracle.records import BaselineCase, BaselineTensor, Expected, SharedStorage, expected_arrays

PREFIX = CaseClass.aliased.value
"""The prefix of the labels of these cases."""

UNSUITABLE_CLASSES = frozenset({CaseClass.open, CaseClass.special, CaseClass.negative})
"""The classes of stored cases from which no case is derived whose inputs have other values than the stored ones."""

MAX_ELEMENTS = 10_000
"""The maximum number of elements of an input in a case for which the reference is evaluated."""


@final
@dataclass(frozen=True, kw_only=True)
class Sharing:
    """The parameters that share memory in a call.

    Attributes:
        result: the result for which the caller passes the tensor of `argument`; empty if there is none.
        argument: the argument that the result overwrites; empty if there is none.
        pair: the two inputs that share memory; None if no inputs do.
        overlaps: whether the inputs overlap, rather than being one tensor.
        transposes: whether the second input is a view of the first one with the last two axes exchanged.
        array: the array that has one tensor as its first two entries; empty if there is none.
    """

    result: str = ""
    argument: str = ""
    pair: InputPair | None = None
    overlaps: bool = False
    transposes: bool = False
    array: str = ""

    @property
    def aliases(self) -> dict[str, str]:
        """The parameter whose tensor is passed, by the parameter for which it is passed as well; see `BaselineCase`."""
        return {
            **({self.result: self.argument} if self.result and self.result != self.argument else {}),
            **({self.pair.second: self.pair.first} if self.pair is not None and self.is_one_tensor else {}),
            **({f"{self.array}.1": f"{self.array}.0"} if self.array else {}),
        }

    @property
    def is_one_tensor(self) -> bool:
        """Whether two inputs that share memory are the same tensor, rather than two views of one storage."""
        return not self.overlaps and not self.transposes


def aliased_labels(prototype: Prototype, cases: Iterable[BaselineCase]) -> list[tuple[str, str]]:
    """Return the cases of aliasing of a function, as pairs of the label and the label of the stored case.

    The stored case is the first one in `cases` from which the case can be derived. This depends on element types,
    shapes and layouts, not on values.
    """

    def applies(case: BaselineCase, sharing: Sharing) -> bool:
        """Return whether the case can be derived from a stored case whose results have the layouts of the arguments."""
        return _can_derive(prototype, case, sharing) and _has_equal_layout(case, sharing)

    return find_bases(aliased_targets(prototype), cases, applies)


def needs_reference(prototype: Prototype, label: str) -> bool:
    """Return whether the case called `label` has one tensor for two inputs, which may require the reference.

    The reference is evaluated if sharing changes the values of an input.
    """
    sharing = aliased_targets(prototype)[label]
    return sharing.pair is not None or bool(sharing.array)


def make_aliased_case(case: BaselineCase, label: str, prototype: Prototype) -> BaselineCase:
    """Derive the case called `label` from a stored case. Its function is called only once, even at level `smoke`.

    Args:
        case: The stored case.
        label: The label of the case to derive.
        prototype: The prototype of the function.

    Returns:
        The derived case.

    Raises:
        DerivationError: The reference has no stable results for any choice of the shared values.
        KeyError: The tensors of `case` can't share memory in this way.
    """
    sharing = aliased_targets(prototype)[label]
    if not _can_derive(prototype, case, sharing):
        raise KeyError(f"{label} can't be derived from {case.id}")
    shared = replace(case, label=label, smoke=False, case_class=CaseClass.aliased, aliases=sharing.aliases)
    if sharing.array:
        first, _, *following = case.arguments[sharing.array]
        return evaluate_with_arguments(shared, {sharing.array: [first, first, *following]})
    if sharing.pair is None or sharing.pair.divided:
        return shared
    if not sharing.is_one_tensor:
        shared = replace(shared, overlap=_common_storage(case, sharing))
    return _choose_values(shared, list(_arguments_with_equal_values(case, sharing)))


@cache
def aliased_targets(prototype: Prototype) -> Mapping[str, Sharing]:
    """Return the cases of aliasing of a function: what shares memory in each, by the label of the case."""
    return dict(_make_targets(prototype))


def _make_targets(prototype: Prototype) -> Iterator[tuple[str, Sharing]]:
    """Yield the label and the sharing of every derived case of a function."""
    pairs = find_input_pairs(prototype)
    for result, arguments in prototype.aliases.items():
        for argument in arguments:
            label = _label(prototype, result, "is", argument)
            if prototype.parameter(result).is_argument:
                pair = InputPair(first=result, second=argument, sources=(argument, result), all_dtypes=True)
                yield label, Sharing(result=result, argument=result, pair=pair)
            else:
                yield label, Sharing(result=result, argument=argument)
    for number, pair in enumerate(pairs):
        yield _label(prototype, pair.second, "is", pair.first), Sharing(pair=pair)
        if pair.divided:
            continue
        if number == 0:
            yield _label(prototype, pair.second, "overlaps", pair.first), Sharing(pair=pair, overlaps=True)
        if number == 0 or prototype.multiplies_matrices:
            yield _label(prototype, pair.second, "transposes", pair.first), Sharing(pair=pair, transposes=True)
    for result, arguments in prototype.aliases.items():
        shared_pair = next((pair for pair in pairs if {pair.first, pair.second} <= {*arguments}), None)
        if shared_pair is not None and not prototype.parameter(result).is_argument:
            second_name = prototype.parameter(shared_pair.second).c_name
            label = f"{_label(prototype, result, 'is', shared_pair.first)}-and-{second_name}"
            yield label, Sharing(result=result, argument=shared_pair.first, pair=shared_pair)
    for parameter in prototype.arguments:
        if _is_input_array(parameter):
            yield _label(prototype, parameter.name, "repeats", "a-tensor"), Sharing(array=parameter.name)


def _label(prototype: Prototype, name: str, relation: str, second_name: str) -> str:
    """Return the label of a case in which a parameter shares memory with another one.

    Args:
        prototype: the prototype of the function.
        name: the name of the parameter.
        relation: the relation of both parameters, such as `is`.
        second_name: the name of the other parameter.

    Returns:
        The label, which contains the names in C.
    """
    c_names = {parameter.name: parameter.c_name for parameter in prototype.parameters}
    return f"{PREFIX}-{c_names[name]}-{relation}-{c_names.get(second_name, second_name)}"


def _is_input_array(parameter: Parameter) -> bool:
    """Return whether a parameter is an array of dense tensors that the call only reads."""
    return parameter.annotation in (kinds.Ins, kinds.OptionalIns)


def _can_derive(prototype: Prototype, case: BaselineCase, sharing: Sharing) -> bool:
    """Return whether the tensors of a stored case can share memory in this way."""
    if not has_nonempty_inputs(prototype, case):
        return False
    if sharing.array:
        return case.case_class not in UNSUITABLE_CLASSES and _has_equal_entries(case, sharing.array)
    if sharing.pair is not None and not _can_share_inputs(case, sharing):
        return False
    return not sharing.result or _can_overwrite(case, sharing.result, sharing.argument)


def _has_equal_entries(case: BaselineCase, array: str) -> bool:
    """Return whether the first two entries of an array have the same element type, shape and layout."""
    entries = case.arguments[array]
    if not isinstance(entries, list) or len(entries) < 2:
        return False
    first, second = entries[:2]
    return (
        isinstance(first, BaselineTensor)
        and isinstance(second, BaselineTensor)
        and _dtype_shape_and_layout(first) == _dtype_shape_and_layout(second)
    )


def _can_overwrite(case: BaselineCase, result: str, argument: str) -> bool:
    """Return whether an argument and a result of the case can be the same tensor, apart from their layouts."""
    tensor, expected = case.arguments[argument], case.expected[result]
    if not isinstance(tensor, BaselineTensor) or not isinstance(expected, Expected):
        return False
    return result == argument or (tensor.dtype, tensor.values.shape) == (expected.dtype, expected.values.shape)


def _has_equal_layout(case: BaselineCase, sharing: Sharing) -> bool:
    """Return whether the argument that a result overwrites has the layout that the case expects of the result."""
    if not sharing.result or sharing.result == sharing.argument:
        return True
    tensor, expected = case.arguments[sharing.argument], case.expected[sharing.result]
    return isinstance(expected, Expected) and bool(tensor.layout == expected.layout)


def _can_share_inputs(case: BaselineCase, sharing: Sharing) -> bool:
    """Return whether two inputs of the case can share memory, and are small enough to evaluate the reference again."""
    assert sharing.pair is not None
    first, second = case.arguments[sharing.pair.first], case.arguments[sharing.pair.second]
    if not isinstance(first, BaselineTensor) or not isinstance(second, BaselineTensor):
        return False
    if (
        first.dtype is not second.dtype
        or not sharing.pair.accepts(first.dtype)
        or case.case_class in UNSUITABLE_CLASSES
    ):
        return False
    if case.draws or max(first.values.size, second.values.size) > MAX_ELEMENTS:
        return False
    if sharing.overlaps:
        return first.values.size > 1
    if sharing.transposes:
        return _is_transposable(first.values.shape) and _exchange_last_axes(first.values.shape) == second.values.shape
    return first.values.shape == second.values.shape and _divide_equally(case, sharing.pair)


def _divide_equally(case: BaselineCase, pair: InputPair) -> bool:
    """Return whether two inputs that divide rows into sequences divide the same number of rows in the same way.

    The result is True for other inputs. If `case` was read without its data, all elements are zero, so that only the
    number of rows decides.
    """
    if not pair.divided:
        return True
    rows = {case.arguments[name].values.shape[0] for name in pair.divided}
    return len(rows) == 1 and np.array_equal(case.arguments[pair.first].values, case.arguments[pair.second].values)


def _is_transposable(shape: Sequence[int]) -> bool:
    """Return whether exchanging the last two axes of a tensor changes the order of its elements."""
    return len(shape) > 1 and min(shape[-2:]) > 1


def _exchange_last_axes(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return sizes or strides with the last two exchanged."""
    return (*sizes[:-2], sizes[-1], sizes[-2])


def _dtype_shape_and_layout(tensor: BaselineTensor | Expected) -> tuple[Any, ...]:
    """Return the element type, shape and layout of a tensor."""
    return tensor.dtype, tensor.values.shape, tensor.layout


def _common_storage(case: BaselineCase, sharing: Sharing) -> SharedStorage:
    """Return the common storage of two inputs: the second begins in the middle of the first, or transposes it."""
    pair = sharing.pair
    assert pair is not None
    shift = 0 if sharing.transposes else case.arguments[pair.first].values.size // 2
    return SharedStorage(first=pair.first, second=pair.second, shift=shift, transposes=sharing.transposes)


def _arguments_with_equal_values(case: BaselineCase, sharing: Sharing) -> Iterator[dict[str, BaselineTensor]]:
    """Yield alternatives for the values of the two inputs that share memory.

    Where the inputs share elements, an alternative has the values that one of them has in the stored case
    (`InputPair.sources`).

    Args:
        case: the stored case.
        sharing: how the inputs share memory.

    Yields:
        Both arguments by name.
    """
    assert sharing.pair is not None
    pair = sharing.pair
    first, second = case.arguments[pair.first], case.arguments[pair.second]
    if sharing.is_one_tensor:
        for source in pair.sources:
            tensor = replace(case.arguments[source], layout=first.layout)
            yield {pair.first: tensor, pair.second: tensor}
        return
    if sharing.transposes:
        yield from _transposed_arguments(case, pair)
        return
    overlap = _common_storage(case, sharing)
    for source in pair.sources:
        storage = overlap.join(first.values, second.values)
        if source == pair.first:
            storage[: first.values.size] = first.values.ravel()
        parts = ((first, 0), (second, overlap.shift))
        shared = [
            BaselineTensor(
                storage[start : start + part.values.size].reshape(part.values.shape), part.dtype, "contiguous"
            )
            for part, start in parts
        ]
        yield dict(zip((pair.first, pair.second), shared, strict=True))


def _transposed_arguments(case: BaselineCase, pair: InputPair) -> Iterator[dict[str, BaselineTensor]]:
    """Yield alternatives for two inputs of which the second is a transposed view of the first."""
    dtype = case.arguments[pair.first].dtype
    for source in pair.sources:
        values = case.arguments[source].values
        stored = values if source == pair.first else np.ascontiguousarray(values.swapaxes(-1, -2))
        layout = strides(*_exchange_last_axes(contiguous(stored.shape).strides)).__name__
        yield {
            pair.first: BaselineTensor(stored, dtype, "contiguous"),
            pair.second: BaselineTensor(stored.swapaxes(-1, -2), dtype, layout),
        }


def _is_finite(case: BaselineCase) -> bool:
    """Return whether all expected results of a case are finite."""
    return all(np.isfinite(entry.values).all() for value in case.expected.values() for entry in expected_arrays(value))


def _choose_values(case: BaselineCase, candidates: Sequence[Mapping[str, BaselineTensor]]) -> BaselineCase:
    """Return the case with the first candidate whose results are finite, or else with the first valid candidate.

    Args:
        case: The case.
        candidates: The arguments to try, in order.

    Returns:
        The case with its arguments and expected results.

    Raises:
        DerivationError: The reference has no stable results for any candidate.
    """
    valid, reason = [], DerivationError(f"{case.id} has no arguments")
    for arguments in candidates:
        try:
            evaluated = evaluate_with_arguments(case, arguments)
        except DerivationError as error:
            reason = error
            continue
        if _is_finite(evaluated):
            return evaluated
        valid.append(evaluated)
    if not valid:
        raise reason
    return valid[0]

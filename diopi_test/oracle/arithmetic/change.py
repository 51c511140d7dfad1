"""Measure how much a declared arithmetic changes the results of a reference, element by element."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, final

import numpy as np

from diopi_impl.numerics.declaration import Convolution, Numerics, Products
from diopi_proto.types import Dtype
from diopi_test.oracle.arithmetic.array import Arithmetic, Array, Operation, Rule, carry
from diopi_test.oracle.arithmetic.convolution import make_convolution_rules
from diopi_test.oracle.arithmetic.elementary import make_elementary_rules
from diopi_test.oracle.arithmetic.emulation import move_unrepresentable_by_pairs
from diopi_test.oracle.arithmetic.products import make_product_rules
from diopi_test.oracle.arithmetic.signs import ROUNDS, Signs
from lib_rt.formats import FORMATS, FloatArray, Format

Evaluate = Callable[[Mapping[str, Any]], Sequence[Any]]
"""Maps arguments to the result arrays of a reference."""

MakeGenerator = Callable[[], np.random.Generator]
"""Returns a new random generator with the same seed at each call."""


@final
@dataclass(frozen=True, kw_only=True)
class Deviations:
    """The deviations of a declared arithmetic that can affect a computation.

    Attributes:
        numerics: the declared arithmetic.
        products: the precision to which factors of products are rounded; "ieee" if they are not rounded.
        has_elementary: whether elementary functions have the declared errors.
        convolutions: the algorithms that convolutions may use.
        stored: the format in which an algorithm may store transformed images and kernels.
        half: the half type in which sums are accumulated; None for float32.
        emulates_float64: whether float64 numbers are emulated by pairs of float32 numbers.
        converts_integers: whether integers and truth values are operands that the function converts to floating-point
            numbers.
    """

    numerics: Numerics
    products: Products
    has_elementary: bool
    convolutions: frozenset[Convolution] = frozenset({"direct"})
    stored: Format = FORMATS[Dtype.float32]
    half: Format | None = None
    emulates_float64: bool = False
    converts_integers: bool = False

    def __bool__(self) -> bool:
        """Return whether anything deviates."""
        return self.changes_operations or self.half is not None or self.emulates_float64

    @property
    def changes_operations(self) -> bool:
        """Whether the arithmetic has rules for operations; the other deviations need no rules."""
        return self.products != "ieee" or self.has_elementary or self.convolutions != {"direct"}

    @property
    def rounds(self) -> int:
        """The number of rounds for each algorithm of convolutions; in the last one, sums of products may move."""
        return ROUNDS if self.products == "ieee" else ROUNDS + 1

    @property
    def carried_kinds(self) -> str:
        """The NumPy kinds of the input arrays that carry the arithmetic into the reference, such as "fc"."""
        return "fcib" if self.converts_integers else "fc"

    def rules(self, algorithm: Convolution, signs: Signs) -> dict[Operation, Rule]:
        """Return the rules of a round, with an algorithm of convolutions and the directions of the round."""
        products = make_product_rules(self.products, signs)
        elementary = make_elementary_rules(self.numerics.elementary, signs) if self.has_elementary else {}
        return {**products, **elementary, **make_convolution_rules(algorithm, self.stored, signs, products)}


@final
@dataclass(frozen=True)
class Change:
    """The change of a result in a declared arithmetic.

    Attributes:
        size: the largest absolute change of each element over all rounds; 0 for integers and truth values, and where a
            number is not finite.
        differs: a mask of the elements that change in some round and whose change has no size: integers and truth
            values, and numbers that are not finite in at least one of the two arithmetics.
    """

    size: FloatArray
    differs: Array

    def __bool__(self) -> bool:
        """Return whether any element changes."""
        return bool(self.size.any() or self.differs.any())

    def __add__(self, further: Change) -> Change:
        """Return the largest change if both changes occur: the sum of their sizes."""
        return Change(self.size + further.size, self.differs | further.differs)


def measure_change(
    evaluate: Evaluate, arguments: Mapping[str, Any], deviations: Deviations, make_rng: MakeGenerator
) -> list[Change] | None:
    """Return the largest change of each result element over all rounds of each convolution algorithm.

    Args:
        evaluate: The reference.
        arguments: The arguments of the reference.
        deviations: The deviations of the arithmetic.
        make_rng: Returns a new generator with the same seed at each call.

    Returns:
        The change of each result; None if no operation deviates, or if the shape of a result depends on the arithmetic.
    """
    exact: list[Array] | None = None
    changes: list[Change] = []
    unused: set[Convolution] = set()  # algorithms with which no operation deviates, as their first round shows
    for algorithm, number in product(sorted(deviations.convolutions), range(deviations.rounds)):
        if algorithm in unused:
            continue
        signs = Signs(make_rng(), number)
        arithmetic = Arithmetic(deviations.rules(algorithm, signs))
        moved = arguments
        if deviations.emulates_float64:
            moved = {name: move_unrepresentable_by_pairs(value, signs) for name, value in arguments.items()}
        carried = {name: carry_arrays(value, arithmetic, deviations.carried_kinds) for name, value in moved.items()}
        results = [np.asarray(array) for array in evaluate(carried)]
        if not (arithmetic.is_used or deviations.emulates_float64):
            unused.add(algorithm)
            continue
        if exact is None:
            exact = [np.asarray(array) for array in evaluate(arguments)]
            changes = [Change(np.zeros(array.shape), np.zeros(array.shape, bool)) for array in exact]
        if [array.shape for array in results] != [array.shape for array in exact]:
            return None
        changes = [_extend(change, a, b) for change, a, b in zip(changes, exact, results, strict=True)]
    return changes or None


def carry_arrays(value: Any, arithmetic: Arithmetic, kinds: str) -> Any:
    """Return an argument in which copies that carry `arithmetic` replace the arrays of the NumPy kinds `kinds`."""
    if isinstance(value, list):
        return [carry_arrays(entry, arithmetic, kinds) for entry in value]
    return carry(value.copy(), arithmetic) if isinstance(value, np.ndarray) and value.dtype.kind in kinds else value


def _extend(change: Change, exact: Array, moved: Array) -> Change:
    """Return `change`, extended by the change from the result `exact` to the result `moved`."""
    if exact.dtype.kind not in "fc":
        return Change(change.size, change.differs | (exact != moved))
    with np.errstate(all="ignore"):
        size = np.abs(moved - exact)
    are_finite = np.isfinite(exact) & np.isfinite(moved)
    differs = ~are_finite & (exact != moved) & ~(np.isnan(exact) & np.isnan(moved))
    return Change(np.maximum(change.size, np.where(are_finite, size, 0.0)), change.differs | differs)

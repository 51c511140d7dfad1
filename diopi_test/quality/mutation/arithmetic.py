"""Simulated calls of a vendor that declares deviations from IEEE 754 arithmetic, such as products in TF32."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from diopi_impl import Numerics
from diopi_test.cases.domains import random_generator
from diopi_test.oracle.arithmetic.array import Arithmetic
from diopi_test.oracle.arithmetic.change import Deviations, carry_arrays
from diopi_test.oracle.arithmetic.declared_case import ARITHMETIC, find_deviations
from diopi_test.oracle.arithmetic.signs import Signs
from diopi_test.oracle.records import BaselineCase
from diopi_test.quality.mutation.mutant import Effect, SimulatedCall


def deviates(case: BaselineCase, numerics: Numerics) -> bool:
    """Return whether a declared arithmetic changes operations of a case.

    The answer is no for cases with several valid results, which a validator checks.
    """
    return not numerics.is_ieee and not case.needs_validator and find_deviations(case, numerics).changes_operations


def simulate_call(case: BaselineCase, numerics: Numerics) -> SimulatedCall:
    """Return a correct call of a vendor with a declared arithmetic.

    Each declared error has its largest magnitude. The error budgets of the case follow from several evaluations with
    random signs of the errors. The call uses the signs of the first evaluation, so its results are within the budgets.

    Args:
        case: the case that makes the call.
        numerics: the declared arithmetic.

    Returns:
        The call. Its results, also for changed arguments, have the errors of the arithmetic.
    """
    call = SimulatedCall.from_expected(case)
    if deviates(case, numerics):
        call.prepare = partial(_carry_arithmetic, case, find_deviations(case, numerics))
        assert call.recompute() is not Effect.undefined, f"the reference computes {case.id}"
    return call


def _carry_arithmetic(case: BaselineCase, deviations: Deviations, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return arguments that carry the arithmetic, unless a mutant has changed the arithmetic of an argument."""
    arrays = [x for value in arguments.values() for x in (value if isinstance(value, list) else [value])]
    if any(isinstance(array, np.ndarray) and type(array) is not np.ndarray for array in arrays):
        return arguments
    algorithm = max(deviations.convolutions)  # the name "direct" comes before all others
    arithmetic = Arithmetic(deviations.rules(algorithm, Signs(random_generator(case.id, ARITHMETIC), 0)))
    return {name: carry_arrays(value, arithmetic, deviations.carried_kinds) for name, value in arguments.items()}

"""Arguments that are results of another function: what a forward function saves for its gradient."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.interface import lookup
from diopi_test.case import ResultOverride, Values
from diopi_test.reference import bare, reference_of, wants_out


def result_of(
    function: str, result: str = "out", renamed: Mapping[str, str] | None = None, **given: Any
) -> Callable[[Values], NDArray[Any]]:
    """For `TensorSpec.compute`: the `result` that `function` has for the case's earlier arguments of the same names.

    Args:
        function: name of the forward function.
        result: name of one of its results.
        renamed: names the case has for the function's arguments, where they differ.
        given: arguments of the function that are not in the case.
    """
    prototype, reference = lookup(function), reference_of(function)
    if reference is None:
        raise ValueError(f"{function} has no reference")
    names = {p.name: (renamed or {}).get(p.name, p.name) for p in prototype.arguments}
    number = [p.name for p in prototype.results].index(result)
    unsaid = ResultOverride() if len(prototype.results) == 1 else (ResultOverride(),) * len(prototype.results)
    keywords = {"out": unsaid} if wants_out(reference) else {}

    def compute(values: Values) -> NDArray[Any]:
        arguments = {name: given[name] if name in given else values[its_name] for name, its_name in names.items()}
        with np.errstate(all="ignore"):
            returned = reference(**arguments, **keywords)
        return np.asarray(bare(returned if len(prototype.results) == 1 else returned[number]))

    return compute

"""The results do not depend on where the elements of the inputs lie."""

from __future__ import annotations

from diopi_proto.types import Error
from diopi_test.series import Series
from diopi_test.verdict import Finding


def check(series: Series) -> Finding | None:
    """A call whose inputs lie in another layout gives right results too; None where the vendor says it has none.

    Inputs that lie row by row are given column by column, and with gaps where that is the same; others row by row. The
    results need not have the same bits: a kernel for another layout may add in another order.
    """
    if series.relaid is None or series.relaid.code is Error.NoImplement:
        return None
    problem = series.relaid.problem
    return Finding("layout", not problem, f"with inputs in another layout: {problem}" if problem else "")

"""Other places of the elements."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from diopi_proto import parameters as kinds
from diopi_test.cases.case import Case, ResultOverride, TensorSpec
from diopi_test.cases.layouts import expanded, layout_named
from diopi_test.fuzz.known import Known, with_tensors


def other_layouts(draw: DrawFn, known: Known, case: Case) -> Case:
    """Draw a layout for each tensor that is not row-major in some case."""
    if known.orders_memory:
        return case
    dense = [layout_named(name) for name in ("contiguous", "transposed", "strided", "channels_last")]

    def laid(name: str, spec: TensorSpec) -> TensorSpec:
        if name not in known.laid:
            return spec
        views = [expanded] if name in known.may_be_expanded and spec.compute is None else []
        return replace(spec, layout=draw(st.sampled_from([*dense, *views])))

    allocated = [
        p.name for p in known.prototype.results if p.annotation in (kinds.Out, kinds.Outs) and p.name in known.laid
    ]
    results = {**case.results}
    for name in allocated:
        if (override := results.get(name, ResultOverride())) is not None:
            results[name] = replace(override, layout=draw(st.sampled_from(dense)))
    return replace(case, arguments=with_tensors(case, laid), results=results)

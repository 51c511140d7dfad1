"""Changes of the memory layouts of a call's tensors."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from diopi_proto import parameters as kinds
from diopi_test.cases.case import Case, ResultOverride, TensorSpec
from diopi_test.cases.layouts import expanded, layout_named
from diopi_test.fuzz.knowledge import ValidCallKnowledge


def change_layouts(draw: DrawFn, knowledge: ValidCallKnowledge, case: Case) -> Case:
    """Return a call in which each tensor and result that is not row-major in some case has a drawn layout.

    If an attribute determines the layout of a result, the call stays unchanged.
    """
    if knowledge.has_layout_attribute:
        return case
    dense = [layout_named(name) for name in ("contiguous", "transposed", "strided", "channels_last")]

    def with_new_layout(name: str, spec: TensorSpec) -> TensorSpec:
        """Return a tensor's specification with a drawn layout, if some case has other layouts of the tensor."""
        if name not in knowledge.strided_tensors:
            return spec
        views = [expanded] if name in knowledge.may_be_expanded and spec.compute is None else []
        return replace(spec, layout=draw(st.sampled_from([*dense, *views])))

    allocated = [
        p.name
        for p in knowledge.prototype.results
        if p.annotation in (kinds.Out, kinds.Outs) and p.name in knowledge.strided_tensors
    ]
    results = {**case.results}
    for name in allocated:
        if (override := results.get(name, ResultOverride())) is not None:
            results[name] = replace(override, layout=draw(st.sampled_from(dense)))
    return replace(case, arguments=case.map_tensors(with_new_layout), results=results)

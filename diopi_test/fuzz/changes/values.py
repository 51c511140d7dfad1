"""Changes of the values of a call's tensors.

A change receives Hypothesis's `draw`, the knowledge about valid calls and a case, and returns the changed case.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto import parameters as kinds
from diopi_proto.dtypes import category
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.cases.domains import Domain
from diopi_test.fuzz.knowledge import ValidCallKnowledge
from lib_rt.formats import format_of

REAL_KINDS = (kinds.Scalar, kinds.f64, kinds.f32)
"""The kinds of numeric attributes that are taken from another case together with the domains of its tensors."""


def change_values(draw: DrawFn, knowledge: ValidCallKnowledge, case: Case) -> Case:
    """Return a call with scaled values, or with domains and numeric attributes of another case.

    For element-wise functions, a further alternative mixes the present domains with those of the other case.
    """
    donors = knowledge.cases_of_category(case.dtype)
    variant = draw(st.sampled_from(["scaled", "another", "mixed"]))
    if variant == "scaled" or not donors:
        exponent = draw(st.integers(-30, 30))
        return replace(case, arguments=case.map_tensors(lambda n, s: _scale_values(knowledge, n, s, exponent)))
    donor = draw(st.sampled_from(donors))
    domains, current_domains = domains_by_name(donor), domains_by_name(case)
    numbers = [
        p.name
        for p in knowledge.attributes
        if issubclass(p.annotation, REAL_KINDS) and p.name not in knowledge.drawing_attributes
    ]

    def replace_domain(name: str, spec: TensorSpec) -> TensorSpec:
        """Return a tensor's specification with the new domain, or with a mixture of both domains."""
        new_domain = domains.get(name)
        if new_domain is None or spec.compute is not None or category(spec.dtype) == 1 != category(case.dtype):
            return spec
        mixes = variant == "mixed" and knowledge.prototype.elementwise and name in current_domains
        return replace(spec, domain=_mix_domains(spec.domain, new_domain) if mixes else new_domain)

    return replace(
        case, arguments={**case.map_tensors(replace_domain), **{name: donor.arguments[name] for name in numbers}}
    )


def domain_replacer(donor: Case) -> Callable[[str, TensorSpec], TensorSpec]:
    """Return a function that gives floating-point tensors the domains of another case."""
    domains = domains_by_name(donor)

    def replace_domain(name: str, spec: TensorSpec) -> TensorSpec:
        """Return a tensor's specification with the other case's domain, if both have the same category of types."""
        fits = name in domains and spec.compute is None and category(spec.dtype) == category(donor.dtype) >= 2
        return replace(spec, domain=domains[name]) if fits else spec

    return replace_domain


def domains_by_name(case: Case) -> dict[str, Domain]:
    """Return the domains of a case's tensors by name, for the tensors that have a domain."""
    return {name: spec.domain for name, spec in case.tensors if spec.compute is None}


def _mix_domains(first: Domain, second: Domain) -> Domain:
    """Return a domain whose values come from either of two domains at random."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        """Draw values from both domains and select one of them for each element."""
        values, alternatives = first(rng, count, dtype), second(rng, count, dtype)
        return np.where(rng.random(count) < 0.5, values, alternatives)

    return draw


def _scale_values(knowledge: ValidCallKnowledge, name: str, spec: TensorSpec, exponent: int) -> TensorSpec:
    """Return a tensor's specification with its values multiplied by 2**`exponent`.

    Values that would leave the range of the cases, or become subnormal, stay unchanged. The exponent is limited so that
    squares do not underflow.
    """
    if spec.compute is not None or category(spec.dtype) < 2 or name.startswith("_"):
        return spec
    low, high = knowledge.value_range(name)
    factor = 2.0 ** max(exponent, -(format_of(spec.dtype).max_exponent // 4))
    domain = spec.domain

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        """Draw values and scale those that stay normal numbers within the range of the cases."""
        values = domain(rng, count, dtype)
        with np.errstate(all="ignore"):
            scaled = values * factor
        parts = (scaled.real, scaled.imag) if np.iscomplexobj(scaled) else (scaled,)
        least = format_of(dtype).tiny  # what would be subnormal, or 0, stays as it is
        is_in_range = np.logical_and.reduce(
            [(low <= part) & (part <= high) & (np.abs(part) >= least) for part in parts]
        )
        return np.where(is_in_range, scaled, values)

    return replace(spec, domain=draw)

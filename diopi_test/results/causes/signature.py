"""The signature of a failure: what the failed cases of one cause have in common.

The tables of this module list the possible values of its fields, each with the words for reports.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from diopi_test.results.causes.traits import TRAITS

ID_DIGITS = 8
"""The number of hexadecimal digits of the ID of a cause."""

SYMPTOMS: Mapping[str, str] = {
    "crashed": "the process ends",
    "timed_out": "the call does not return",
    "out_of_memory": "the process runs out of memory",
    "error": "the call returns an error",
    "exception": "the call raises an exception",
    "guards": "memory outside a tensor is written",
    "inputs": "an input is changed",
    "gaps": "memory between the elements of a tensor is written",
    "process_state": "the state of the process is changed",
    "written_late": "results are written after the call's work in the stream",
    "unwritten": "elements are not written",
    "form.missing": "a result is not allocated",
    "form.negative_size": "the queried workspace size is negative",
    "form.dtype": "a result has the wrong element type",
    "form.shape": "a result has the wrong shape",
    "form.strides": "a result has the wrong memory format",
    "form": "a result has the wrong form",
    "wrong_value": "wrong numbers",
    "rounding": "errors beyond the budget",
    "lost_nan": "NaN is lost",
    "invented_nan": "NaN instead of a number",
    "lost_infinity": "infinity is lost",
    "invented_infinity": "infinity instead of a number",
    "sign_of_zero": "the sign of a zero is wrong",
    "flushed": "subnormal numbers become 0",
    "draws.seed_changed": "the seed of the generator is changed",
    "draws.offset_not_advanced": "the generator is not advanced",
    "draws.drawn_without_training": "numbers are drawn although none are needed",
    "draws.state_ignored": "equal generator states give different results",
    "draws": "the generator is used incorrectly",
    "validity.unchanged": "the tensor to be filled with random numbers is as it was before the call",
    "validity.zeros": "zeros instead of random numbers",
    "validity": "results that are not valid",
    "read_early": "inputs are read before they have arrived",
    "repeat": "equal calls give different results",
    "order": "work is not done in the order of the stream",
    "layout": "inputs in another layout give wrong results",
    "inplace": "the in-place form gives other results",
    "leaks": "memory stays allocated after the call",
    "in_flight": "calls in flight at the same time give wrong results",
    "soak": "a later call gives wrong results",
    "growth": "memory grows with every call",
    "refused.success": "success is returned for an invalid call",
    "refused.no_reason": "an invalid call is rejected without a reason",
    "refused": "an invalid call is not rejected",
    "untouched": "a failed call changes its results",
}
"""What is observed, by the name of the symptom. The first symptom of this table that a case has is its main symptom."""

PLAIN_SYMPTOMS = frozenset(
    {"guards", "inputs", "gaps", "process_state", "written_late", "read_early", "leaks", "growth"}
    | {"lost_nan", "lost_infinity", "sign_of_zero", "flushed"}
    | {"refused.success", "refused.no_reason", "refused", "untouched"}
)
"""Symptoms that determine the defect on their own, so that pattern and traits are ignored."""

RELATIONS: Mapping[str, str] = {
    "unchanged": "the result is as it was before the call",
    "zero": "zeros instead of results",
    "saturated": "the largest number of the type instead of results",
    "constant": "a constant instead of results",
    "negated": "results have the opposite sign",
    "scaled": "results are scaled by a constant factor",
    "shifted": "results are shifted by a constant",
    "wrapped": "results of elements that are 32,768 or 65,536 places away",
    "partly_unchanged": "elements are as they were before the call",
    "rearranged": "results in another order",
    "misplaced": "results of other elements",
    "bfloat16": "results have only the precision of bfloat16",
    "float16": "results have only the precision of float16",
    "float32": "results have only the precision of float32",
    "through_float32": "integers are rounded to float32",
    "through_float64": "integers are rounded to float64",
    "in_32_bits": "integers are truncated to 32 bits",
    "integral": "fractions are dropped",
    "narrow": "errors of arithmetic in a narrower type",
}
"""What the wrong elements are instead of the expected ones, by the name of the relation."""

PATTERNS: Mapping[str, str] = {
    "single": "in one element",
    "slice": "in one slice of the tensor",
    "period": "in every k-th element",
    "range": "in a contiguous range of elements",
    "tail": "in the last, incomplete tile",
    "end": "after the first elements",
    "blocks": "in whole blocks of elements",
}
"""Where in the tensor the wrong elements are, by the name of the pattern."""

STATES: Mapping[str, str] = {
    "after_other_cases": "only after other cases",
    "second call": "only in a second call with tensors at other addresses",
    "queued": "only while inputs are still being copied",
    "relaid": "only with inputs in another layout",
}
"""In which state of the process or of the arguments a case fails, by the name of the state."""


@final
@dataclass(frozen=True, kw_only=True)
class Signature:
    """What the failed cases of a cause have in common. An empty field means that the cases may differ in it.

    Attributes:
        symptom: what was observed, a key of `SYMPTOMS`.
        relation: what the wrong elements are, a key of `RELATIONS`.
        pattern: where the wrong elements are, a key of `PATTERNS`.
        state: in which state the cases fail, a key of `STATES`.
        trait: which property of the arguments makes the cases fail, a key of `TRAITS`.
        detail: a text without numbers and names of functions: an error message, or a signal with a stack frame.
        scope: the function that fails, including its in-place and scalar forms; empty if functions can share the
            defect.
    """

    symptom: str
    relation: str = ""
    pattern: str = ""
    state: str = ""
    trait: str = ""
    detail: str = ""
    scope: str = ""

    @property
    def id(self) -> str:
        """Return the ID of the cause: it depends only on the signature."""
        fields = (self.symptom, self.relation, self.pattern, self.state, self.trait, self.detail, self.scope)
        return hashlib.sha256("|".join(fields).encode()).hexdigest()[:ID_DIGITS]

    @property
    def sentence(self) -> str:
        """Return the signature in words."""
        observed = RELATIONS.get(self.relation) or SYMPTOMS[self.symptom]
        if self.detail:
            observed = f"{observed}: {self.detail}"
        parts = [observed, PATTERNS.get(self.pattern, ""), STATES.get(self.state, "")]
        text = " ".join(part for part in parts if part)
        condition = f" if {TRAITS[self.trait]}" if self.trait else ""
        scope = f" in {self.scope}" if self.scope else ""
        return f"{text}{scope}{condition}"

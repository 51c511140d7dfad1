"""The functions whose results the cases of other functions take as arguments."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from diopi_proto.families import load_families
from diopi_proto.interface import prototypes
from diopi_proto.prototype import Prototype
from diopi_test.cases.case import ResultOf, registered_cases, tensor_specs
from diopi_test.cases.facts import CaseFacts


@cache
def result_dependencies() -> Mapping[str, frozenset[str]]:
    """Return, by function, the other functions whose results its cases take as arguments (`ResultOf`)."""
    load_families("diopi_test.cases")
    return {name: found for name, prototype in prototypes().items() if (found := _sources_of(prototype))}


def _sources_of(prototype: Prototype) -> frozenset[str]:
    specs = (
        spec
        for case in registered_cases(prototype)
        for argument in case.arguments.values()
        for spec in tensor_specs(argument)
    )
    rules = [spec.compute for spec in specs if isinstance(spec.compute, ResultOf)]
    rules += CaseFacts.declared_for(prototype).saved.values()
    return frozenset(rule.function for rule in rules)

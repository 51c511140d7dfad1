"""The functions whose results the cases of other functions take as arguments.

To find these functions, all cases must be created, which takes seconds. The result is therefore stored in a generated
file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from diopi_proto.families import load_families
from diopi_proto.interface import prototypes
from diopi_proto.prototype import Prototype
from diopi_test.cases.case import ResultOf, registered_cases
from diopi_test.cases.facts import CaseFacts

FILE = "result_dependencies.json"
"""The stored dependencies; `python -m diopi_test refresh` regenerates the file."""


@cache
def result_dependencies() -> Mapping[str, frozenset[str]]:
    """Return, by function, the other functions whose results its cases take as arguments (`ResultOf`)."""
    content: Mapping[str, list[str]] = json.loads(files(__package__).joinpath(FILE).read_text("utf-8"))
    return {name: frozenset(sources) for name, sources in content.items()}


def render_dependencies() -> str:
    """Return the content of the generated file."""
    dependencies = {name: sorted(sources) for name, sources in sorted(find_result_dependencies().items())}
    return json.dumps(dependencies, indent=1) + "\n"


def find_result_dependencies() -> Mapping[str, frozenset[str]]:
    """Return, by function, the other functions whose results its cases take as arguments."""
    load_families("diopi_test.cases")
    return {name: sources for name, prototype in prototypes().items() if (sources := _sources_of(prototype))}


def _sources_of(prototype: Prototype) -> frozenset[str]:
    """Return the functions whose results the cases of a function take as arguments."""
    specs = (spec for case in registered_cases(prototype) for _, spec in case.tensors)
    rules = [spec.compute for spec in specs if isinstance(spec.compute, ResultOf)]
    rules += CaseFacts.declared_for(prototype).saved.values()
    return frozenset(rule.function for rule in rules)

"""Measure `diopi-test import-config` on a configuration of the size that the original suite has.

    python benchmarks/original_config.py FILE [--entries 350] [--cases 14143]
    /usr/bin/time -v diopi-test import-config FILE --output /tmp/imported

The script writes FILE: a Python module in the form of the original's configurations, with one dictionary of entries.
The entries are derived from the project's cases, so that they include every function that an original name can mean.
Each list has the shapes and attributes of one function's cases, repeated until the entry has the wanted number of
cases.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, final

import click

from diopi_proto.interface import prototypes
from diopi_proto.parameters import Generators, InOutSize, Pointer
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, CaseClass, TensorSpec
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import draw_arguments
from diopi_test.oracle.records import BaselineTensor
from diopi_test.original.gradients import gradient_of
from diopi_test.original.names import meanings

MAX_VALUES = 120
"""The maximum number of cases of an entry, counting each element type."""

TYPES = (Dtype.float16, Dtype.float32, Dtype.float64)
"""The element types that most entries of the original have."""


@final
@dataclass(frozen=True)
class ConfigEntry:
    """An entry of a configuration.

    Attributes:
        name: The original name of the function.
        prototype: The function.
        dtypes: The element types of each tensor argument; the j-th types of all lists belong together.
        cases: The cases that provide the shapes and attributes.
    """

    name: str
    prototype: Prototype
    dtypes: Mapping[str, Sequence[Dtype]]
    cases: Sequence[Case]

    @property
    def size(self) -> int:
        """Return the number of cases, counting each element type."""
        return len(self.cases) * max(map(len, self.dtypes.values()), default=1)

    def resize(self, size: int) -> ConfigEntry:
        """Return the entry with about as many cases."""
        count = max(1, min(size, MAX_VALUES) // max(map(len, self.dtypes.values()), default=1))
        repeated = [self.cases[number % len(self.cases)] for number in range(count)]
        return ConfigEntry(self.name, self.prototype, self.dtypes, repeated)

    def source(self, title: str) -> str:
        """Return the entry as Python source."""
        attributes = [p.name for p in self.prototype.arguments if p.name not in self.dtypes and p.name != "generator"]
        para = {name: _to_source([_plain(case.arguments[name]) for case in self.cases]) for name in attributes}
        args = [self._argument(name) for name in self.dtypes]
        lines = [
            f"    {title!r}: dict(",
            f"        name=[{self.name!r}],",
            '        interface=["torch"],',
            "        atol=1e-3, rtol=1e-4, atol_half=1e-2, rtol_half=1e-2, tag=[],",
            f"        para=dict({', '.join(f'{name}={values}' for name, values in para.items())}),",
            '        tensor_para=dict(gen_policy="default", args=[',
            *(f"            {argument}," for argument in args),
            "        ]),",
            "    ),",
        ]
        return "\n".join(lines)

    def _argument(self, name: str) -> str:
        """Return the specification of one argument as Python source."""
        values = [case.arguments[name] for case in self.cases]
        shapes = tuple(_shape(size) for size in values)
        types = ", ".join(f"np.{dtype.name}" for dtype in self.dtypes[name])
        floating = any(dtype.name.startswith("float") for dtype in self.dtypes[name])
        grad = ", requires_grad=[True]" if floating and gradient_of(self.prototype) else ""
        if not floating and any(dtype is Dtype.float32 for column in self.dtypes.values() for dtype in column):
            specs = [draw_arguments(self.prototype, case)[name] for case in self.cases]  # positions, say
            if all(isinstance(value, BaselineTensor) for value in specs):
                return f"dict(ins=[{name!r}], value={[value.values.tolist() for value in specs]!r}, dtype=[{types}])"
        return f"dict(ins=[{name!r}], shape={shapes!r}, dtype=[{types}]{grad})"


def _to_source(values: Sequence[Any]) -> str:
    """Return a list as Python source, with `float("inf")` and `float("nan")` for values that have no literal."""
    return re.sub(r"(?<![\w'])(inf|nan)(?![\w'])", r'float("\1")', repr(values))


def _plain(value: Any) -> Any:
    """Return a value without enumerations and ranges."""
    return value.name if isinstance(value, Enum) else list(value) if isinstance(value, range) else value


def _shape(value: Any) -> Any:
    """Return the shape of a tensor, or the shapes of an array of tensors; None for other values."""
    if isinstance(value, list):
        return tuple(_shape(size) for size in value)
    return value.shape if isinstance(value, TensorSpec) else None


def entries(functions: Iterable[Prototype] | None = None) -> Iterator[ConfigEntry]:
    """Yield the entries of the functions (all by default) for which the original suite has a name."""
    for prototype in functions or prototypes().values():
        if prototype.form == "plain" and not prototype.is_gradient and not _has_addresses(prototype):
            name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", prototype.name.removeprefix("diopi")).lower()
            if prototype.name in {meaning.prototype.name for meaning in meanings(name)}:
                yield from _entries_of(name, prototype)


def _has_addresses(prototype: Prototype) -> bool:
    """Return whether a function takes workspaces, which the original suite can't describe."""
    return any(issubclass(p.annotation, InOutSize | Pointer | Generators) for p in prototype.arguments)


def _entries_of(name: str, prototype: Prototype) -> Iterator[ConfigEntry]:
    """Yield an entry with the set of tensor arguments that most cases of a function have; none without cases."""
    groups: dict[tuple[str, ...], dict[str, list[Case]]] = defaultdict(lambda: defaultdict(list))
    for case in select_cases(prototype.name, "full"):
        if case.case_class in (CaseClass.basic, CaseClass.types) and _is_drawn(case):
            tensors = tuple(n for n, v in case.arguments.items() if isinstance(v, TensorSpec) or _is_array(v))
            groups[tensors][case.label.partition("-")[2]].append(case)
    if not groups:
        return
    tensors, by_label = max(groups.items(), key=lambda group: len(group[1]))
    rows = {tuple(_dtype(case.arguments[n]) for n in tensors) for cases in by_label.values() for case in cases}
    usual = [row for row in rows if row and row[0] in TYPES] or sorted(rows, key=str)[:3]
    columns = {name: [row[i] for row in sorted(usual, key=str)] for i, name in enumerate(tensors)}
    yield ConfigEntry(name, prototype, columns, [cases[0] for cases in by_label.values()])


def _is_drawn(case: Case) -> bool:
    """Return whether all tensors of a case are random and all results are plain, which an entry can express."""
    specs = [
        s for v in case.arguments.values() for s in (v if isinstance(v, list) else [v]) if isinstance(s, TensorSpec)
    ]
    all_random = not any(name.startswith("_") for name in case.arguments) and all(
        spec.compute is None for spec in specs
    )
    return all_random and not any(
        override is None or override.dtype or override.shape for override in case.results.values()
    )


def _is_array(value: Any) -> bool:
    """Return whether a value is an array of tensors."""
    return isinstance(value, list) and bool(value) and all(isinstance(spec, TensorSpec) for spec in value)


def _dtype(value: Any) -> Dtype:
    """Return the element type of a tensor, or of the first tensor of an array."""
    dtype: Dtype = value[0].dtype if isinstance(value, list) else value.dtype
    return dtype


def configuration(kinds: Sequence[ConfigEntry], number: int, cases: int) -> str:
    """Return a configuration with `number` entries of these kinds, and `cases` cases if the entries can have them."""
    chosen = [kinds[place % len(kinds)] for place in range(number)]
    left, lines = cases, []
    for place, entry in enumerate(chosen):
        sized = entry.resize(
            min(MAX_VALUES, 2 * left // (number - place)) if place % 2 else left // (2 * (number - place))
        )
        left -= sized.size
        lines.append(sized.source(f"{entry.name}_{place}"))
    return "import numpy as np\nfrom gen_input import Genfunc\n\ndiopi_configs = {\n" + "\n".join(lines) + "\n}\n"


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--entries", "number", default=350, show_default=True)
@click.option("--cases", default=14_143, show_default=True)
def main(file: Path, number: int, cases: int) -> None:
    """Write a configuration of the original's size to FILE."""
    file.write_text(configuration(list(entries()), number, cases), "utf-8")


if __name__ == "__main__":
    main()

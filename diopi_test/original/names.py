"""The standard functions that the name of a function in the original suite may mean.

They are found by their own names, which resemble the original ones, and by the table of PyTorch's operators. Where the
module speaks of an *original name*, it means a name that a configuration uses for a function or an argument.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from typing import Any, final

from diopi_proto.aten.table import ArgumentOf, Constant, rows
from diopi_proto.interface import prototypes
from diopi_proto.prototype import Prototype

PREFIX = "diopi"
"""The beginning of every function's name."""

ENDINGS = ("", "loss", "all", "tensor", "nearest", "linear", "withindices", "inp", "mmcv")
"""The endings that a function's name may have after the original name: `max` may also mean diopiMaxAll."""

SPELLINGS: Mapping[str, str] = {
    "conv2d": "convolution2d",
    "conv3d": "convolution3d",
    "interpolate": "upsample",
    "clip_grad_norm_": "clipgradnorm",
    "split": "splitwithsizes",
    "slice_op": "slice",
    "rotary_emb": "rotaryembedding",
}
"""Original names that the standard spells differently."""

RENAMED: Mapping[str, str] = {
    "x": "input",
    "self": "input",
    "tensor": "input",
    "param_grad": "grad",
    "dimension": "dim",
    "axis": "dim",
    "kernel_size": "ksize",
    "idx": "indices",
    "start": "from",
}
"""Original names of arguments, and the prototypes' names."""

FUNCTION_RENAMED: Mapping[str, Mapping[str, str]] = {
    "diopiCopyInp": {"other": "src", "input": "dest"},
    "diopiRotaryEmbedding": {"input": "x"},
    "diopiUniformInp": {"end": "to"},
    "diopiRandomInp": {"end": "to"},
    "diopiCdist": {"x1": "input1", "x2": "input2"},
    "diopiEmbedding": {"input": "indices"},
    "diopiNms": {"scores": "confidence"},
    "diopiRoiAlign": {"boxes": "rois"},
    "diopiSplitWithSizes": {"split_size_or_sections": "splitSizes"},
}
"""Original names of arguments that depend on the function, and the prototypes' names."""

IMPLIED: Mapping[str, Mapping[str, Any]] = {
    "diopiStd": {"unbiased": True},
    "diopiUpsampleNearest": {"mode": "nearest", "align_corners": False},
}
"""Arguments of the original function that the standard's function lacks because it always acts as with this value, by
function.
"""


@final
@dataclass(frozen=True)
class Meaning:
    """A function that an original name may mean.

    Attributes:
        prototype: The function, in its plain form if it has one.
        argument_names: The prototype's names of arguments, by original names that differ.
        constants: The values of arguments that the original name implies, by the prototype's names.
    """

    prototype: Prototype
    argument_names: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)

    def entry(self, name: str) -> tuple[str, int] | None:
        """Return the array of tensors that has `name` as an entry, and the index; None if there is none.

        For example, `idx2` is entry 1 of `indices`.
        """
        match = re.fullmatch(r"([a-z]+?)_?([1-9])", name)
        if match is None:
            return None
        arrays = {p.name for p in self.prototype.arguments if p.is_tensor_array}
        array = next((n for n in (self.parameter(match[1]), self.parameter(f"{match[1]}s")) if n in arrays), None)
        return None if array is None else (array, int(match[2]) - 1)

    def result(self, name: str) -> str | None:
        """Return the result that takes the caller's tensor `name`; None if there is none."""
        results = {_normalize(p.name): p.name for p in self.prototype.results}
        standard_name = FUNCTION_RENAMED.get(self.prototype.base, {}).get(name, name)
        if result := results.get(_normalize(standard_name)):
            return result
        return self.prototype.results[0].name if standard_name in ("input", "self") and self.prototype.results else None

    def parameter(self, name: str) -> str | None:
        """Return the prototype's name of an argument; None if it has no such argument."""
        names = {_normalize(p.name): p.name for p in self.prototype.arguments}
        first = self.prototype.arguments[0].name if self.prototype.arguments else ""
        standard_name = {**FUNCTION_RENAMED.get(self.prototype.base, {}), **self.argument_names}.get(name, name)
        if parameter_name := names.get(_normalize(standard_name)) or names.get(RENAMED.get(standard_name, "")):
            return parameter_name
        return first if standard_name == "input" and first in ("self", "inputs") else None

    def implies(self, name: str, value: Any) -> bool:
        """Return whether the function implies this value of an original argument that it does not have."""
        implied = {"return_indices": False, **IMPLIED.get(self.prototype.base, {})}
        return value is None or name == "inplace" or (name in implied and implied[name] == value)


def meanings(name: str) -> list[Meaning]:
    """Return the functions that an original name may mean, the likeliest first; an empty list if there are none."""
    candidates = [*_meanings_by_operator(name), *(Meaning(prototype) for prototype in _prototypes_by_name(name))]
    return list(
        {
            (meaning.prototype.name, str(meaning.argument_names), str(meaning.constants)): meaning
            for meaning in candidates
        }.values()
    )


def similar_functions(name: str) -> list[str]:
    """Return up to three functions whose names are spelled like an original name."""
    return [
        _prototypes_by_key()[key][0].name
        for key in get_close_matches(_normalize(name), _prototypes_by_key(), n=3, cutoff=0.7)
    ]


def _prototypes_by_name(name: str) -> Iterator[Prototype]:
    """Yield the prototypes whose name without prefix equals the original name, ignoring case and underscores."""
    squeezed = _normalize(SPELLINGS.get(name, name))
    for ending in ENDINGS:
        yield from _prototypes_by_key().get(squeezed + ending, ())


def _meanings_by_operator(name: str) -> Iterator[Meaning]:
    """Yield the meanings of the rows of the operator table for a name and PyTorch's variants of the name."""
    for operator in (name, f"_{name}", f"{name}_", f"native_{name}"):
        for row in _rows_by_operator().get(operator, ()):
            prototype = prototypes().get(row.function)
            sources = row.sources.items()
            if prototype is not None:
                parameter_names = {source.name: p for p, source in sources if isinstance(source, ArgumentOf)}
                constants = {p: source.value for p, source in sources if isinstance(source, Constant)}
                yield Meaning(prototype, parameter_names, constants)


@cache
def _prototypes_by_key() -> Mapping[str, list[Prototype]]:
    """Return the prototypes of base functions by their normalized name without prefix."""
    by_key: dict[str, list[Prototype]] = defaultdict(list)
    for prototype in prototypes().values():
        if prototype.base == prototype.name:
            by_key[_normalize(prototype.name.removeprefix(PREFIX))].append(prototype)
    return by_key


@cache
def _rows_by_operator() -> Mapping[str, Collection[Any]]:
    """Return the rows of the table of PyTorch's operators by operator name without overload."""
    by_operator: dict[str, list[Any]] = defaultdict(list)
    for operator, row in rows().items():
        by_operator[operator.partition(".")[0]].append(row)
    return by_operator


def _normalize(name: str) -> str:
    """Return a name in lower case without underscores, which is the same for snake case and camel case."""
    return name.replace("_", "").lower()

"""Which standard function an original name means: by the functions' names, and by the table of PyTorch's operators."""

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

ENDINGS = ("", "loss", "all", "tensor", "nearest", "linear", "withindices", "inp", "mmcv")
"""What a function's name may have after an original one: `max` is diopiMaxAll too."""

SPELT_OUT: Mapping[str, str] = {
    "conv2d": "convolution2d",
    "conv3d": "convolution3d",
    "interpolate": "upsample",
    "clip_grad_norm_": "clipgradnorm",
    "split": "splitwithsizes",
    "slice_op": "slice",
    "rotary_emb": "rotaryembedding",
}
"""Original names whose functions spell a word otherwise."""

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
"""Arguments that some original functions name otherwise, and the prototypes' names."""

RENAMED_OF: Mapping[str, Mapping[str, str]] = {
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
"""As `RENAMED`, by function."""

SAID: Mapping[str, Mapping[str, Any]] = {
    "diopiStd": {"unbiased": True},
    "diopiUpsampleNearest": {"mode": "nearest", "align_corners": False},
}
"""By function, arguments of the original one that it has not, with the value for which it stands."""


@final
@dataclass(frozen=True)
class Meaning:
    """A function that an original name may mean.

    Attributes:
        prototype: the function, in its plain form if it has one.
        renamed: the prototype's names of arguments that are called otherwise.
        constants: arguments that the name decides.
    """

    prototype: Prototype
    argument_names: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)

    def entry(self, name: str) -> tuple[str, int] | None:
        """Return the array of tensors of which `name` is an entry, and its place: `idx2` is the second of `indices`."""
        found = re.fullmatch(r"([a-z]+?)_?([1-9])", name)
        if found is None:
            return None
        arrays = {p.name for p in self.prototype.arguments if p.is_tensor_array}
        array = next((n for n in (self.parameter(found[1]), self.parameter(f"{found[1]}s")) if n in arrays), None)
        return None if array is None else (array, int(found[2]) - 1)

    def result(self, name: str) -> str | None:
        """Return the result that the caller's tensor `name` is for; None if it is for no result."""
        results = {_squeezed(p.name): p.name for p in self.prototype.results}
        wanted = RENAMED_OF.get(self.prototype.base, {}).get(name, name)
        if found := results.get(_squeezed(wanted)):
            return found
        return self.prototype.results[0].name if wanted in ("input", "self") and self.prototype.results else None

    def parameter(self, name: str) -> str | None:
        """The prototype's name of an argument; None if it has no such argument."""
        known = {_squeezed(p.name): p.name for p in self.prototype.arguments}
        first = self.prototype.arguments[0].name if self.prototype.arguments else ""
        wanted = {**RENAMED_OF.get(self.prototype.base, {}), **self.argument_names}.get(name, name)
        if found := known.get(_squeezed(wanted)) or known.get(RENAMED.get(wanted, "")):
            return found
        return first if wanted == "input" and first in ("self", "inputs") else None

    def says(self, name: str, value: Any) -> bool:
        """Whether an argument of the original function, which this one has not, is what it is here anyway."""
        said = {"return_indices": False, **SAID.get(self.prototype.base, {})}
        return value is None or name == "inplace" or (name in said and said[name] == value)


def meanings(name: str) -> list[Meaning]:
    """The functions that `name` may mean, the likeliest first; none if it means nothing."""
    found = [*_of_operator(name), *(Meaning(prototype) for prototype in _of_name(name))]
    return list({(one.prototype.name, str(one.argument_names), str(one.constants)): one for one in found}.values())


def near(name: str) -> list[str]:
    """Functions with names like `name`."""
    return [_by_name()[key][0].name for key in get_close_matches(_squeezed(name), _by_name(), n=3, cutoff=0.7)]


def _of_name(name: str) -> Iterator[Prototype]:
    squeezed = _squeezed(SPELT_OUT.get(name, name))
    for ending in ENDINGS:
        yield from _by_name().get(squeezed + ending, ())


def _of_operator(name: str) -> Iterator[Meaning]:
    """What the lines of the table say whose operators have the name, as PyTorch calls it or its own variants."""
    for operator in (name, f"_{name}", f"{name}_", f"native_{name}"):
        for row in _rows_by_operator().get(operator, ()):
            prototype = prototypes().get(row.function)
            sources = row.sources.items()
            if prototype is not None:
                renamed = {source.name: p for p, source in sources if isinstance(source, ArgumentOf)}
                constants = {p: source.value for p, source in sources if isinstance(source, Constant)}
                yield Meaning(prototype, renamed, constants)


@cache
def _by_name() -> Mapping[str, list[Prototype]]:
    found: dict[str, list[Prototype]] = defaultdict(list)
    for prototype in prototypes().values():
        if prototype.base == prototype.name:
            found[_squeezed(prototype.name.removeprefix(PREFIX))].append(prototype)
    return found


@cache
def _rows_by_operator() -> Mapping[str, Collection[Any]]:
    found: dict[str, list[Any]] = defaultdict(list)
    for operator, row in rows().items():
        found[operator.partition(".")[0]].append(row)
    return found


def _squeezed(name: str) -> str:
    """A name without underscores and capitals, the same in snake case and as DIOPI writes it."""
    return name.replace("_", "").lower()

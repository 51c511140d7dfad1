"""Original functions whose attributes say the same in other words than the standard's functions do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

from diopi_proto.prototype import Prototype
from diopi_test.cases.model import ResultOverride, TensorSpec
from diopi_test.original.entries import EntryError


@final
@dataclass
class Call:
    """The call of a case while it is translated.

    Attributes:
        prototype: The function.
        values: The values of its arguments, by the prototype's names.
        ordered: Attributes by which the original function orders its result, which is here the caller's tensor.
        others: Attributes that the function does not have, by their original names.
        results: What the caller passes for the results; None for a result that is left out.
    """

    prototype: Prototype
    values: dict[str, Any]
    ordered: dict[str, Any] = field(default_factory=dict)
    others: dict[str, Any] = field(default_factory=dict)
    results: dict[str, ResultOverride | None] = field(default_factory=dict)


COMPUTE_MODES: Mapping[Any, int] = {
    "use_mm_for_euclid_dist_if_necessary": 0,
    "use_mm_for_euclid_dist": 1,
    "donot_use_mm_for_euclid_dist": 2,
}
"""How `cdist` names its modes, and their numbers."""


def adapt(call: Call) -> None:
    """Change a call to what the standard's function takes.

    Raises:
        EntryError: An attribute has a value that has no meaning.
    """
    if adapter := _ADAPTERS.get(call.prototype.base):
        adapter(call)


def _pool(call: Call) -> None:
    values = call.values
    includes_padding = call.others.pop("count_include_pad", True)
    values.setdefault("exclusive", not includes_padding)
    values.setdefault("adaptive", values.get("output_size") is not None)
    values.setdefault("output_size", ())
    if values["adaptive"]:
        for name in ("ksize", "stride", "padding", "dilation"):
            values.setdefault(name, 1)


def _cdist(call: Call) -> None:
    mode = call.values.get("compute_mode")
    if isinstance(mode, str):
        if mode not in COMPUTE_MODES:
            raise EntryError(f"compute_mode: expected one of {', '.join(COMPUTE_MODES)}, found {mode!r}")
        call.values["compute_mode"] = COMPUTE_MODES[mode]


def _expand(call: Call) -> None:
    """A size of −1 is that of the input, whose axes are the last ones."""
    name = next((name for name in ("size", "shape") if name in call.ordered), None)
    given, spec = call.ordered.get(name or ""), call.values.get("input")
    if name is None or not isinstance(given, list | tuple) or not isinstance(spec, TensorSpec):
        return
    before = len(given) - len(spec.shape)
    if any(size == -1 and axis < before for axis, size in enumerate(given)):
        raise EntryError(f"{name}: -1 stands for no axis of the input, whose shape is {spec.shape}: {given!r}")
    call.ordered[name] = tuple(spec.shape[axis - before] if size == -1 else size for axis, size in enumerate(given))


def _slice(call: Call) -> None:
    index = call.others.pop("index", None)
    values, spec = call.values, call.values.get("input")
    if isinstance(index, slice):
        values |= {"start": index.start, "end": index.stop, "step": index.step}
    elif index is not None:
        raise EntryError(f"index: expected slice(…), found {index!r}")
    if isinstance(spec, TensorSpec) and type(dim := values.get("dim", 0)) is int and dim < len(spec.shape):
        ends = {"start": 0, "end": spec.shape[dim] if spec.shape else 0, "step": 1}
        values |= {name: end for name, end in ends.items() if values.get(name) is None}


def _unique(call: Call) -> None:
    if not call.others.pop("return_inverse", False):
        call.results["indices"] = None
    if not call.values.get("return_counts", False):
        call.results["counts"] = None


_ADAPTERS: Mapping[str, Callable[[Call], None]] = {
    **{f"diopiPool{axes}d": _pool for axes in (1, 2, 3)},
    "diopiCdist": _cdist,
    "diopiExpand": _expand,
    "diopiSlice": _slice,
    "diopiSliceScatter": _slice,
    "diopiUnique": _unique,
}
"""By function, what changes its calls."""

"""Adapters for original functions whose attributes differ from those of the standard's functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

from diopi_proto.prototype import Prototype
from diopi_test.cases.case import ResultOverride, TensorSpec
from diopi_test.original.entries import EntryError


@final
@dataclass(kw_only=True)
class CallDraft:
    """The call of a case while it is translated; the steps of the translation change it in place.

    Attributes:
        prototype: The function.
        values: The values of the arguments, by the prototype's names: as the entry has them, or already converted.
        result_attributes: The attributes that determine the result in the original; here the caller allocates it.
        unmatched: The attributes that the standard's function does not have, by their original names.
        results: The tensors that the caller passes for the results; None for an omitted result.
    """

    prototype: Prototype
    values: dict[str, Any]
    result_attributes: dict[str, Any] = field(default_factory=dict)
    unmatched: dict[str, Any] = field(default_factory=dict)
    results: dict[str, ResultOverride | None] = field(default_factory=dict)


COMPUTE_MODES: Mapping[Any, int] = {
    "use_mm_for_euclid_dist_if_necessary": 0,
    "use_mm_for_euclid_dist": 1,
    "donot_use_mm_for_euclid_dist": 2,
}
"""The numbers of the standard's attribute `compute_mode` of diopiCdist, by the strings that PyTorch accepts."""


def adapt_call(call: CallDraft) -> None:
    """Change a call to the arguments of the standard's function.

    Args:
        call: The call, which is changed in place.

    Raises:
        EntryError: An attribute has an invalid value.
    """
    if adapter := _ADAPTERS.get(call.prototype.base):
        adapter(call)


def _pool(call: CallDraft) -> None:
    """Translate `count_include_pad` to its negation `exclusive`, and set the attributes that only the standard has."""
    values = call.values
    includes_padding = call.unmatched.pop("count_include_pad", True)
    values.setdefault("exclusive", not includes_padding)
    values.setdefault("adaptive", values.get("output_size") is not None)
    values.setdefault("output_size", ())
    if values["adaptive"]:
        for name in ("ksize", "stride", "padding", "dilation"):
            values.setdefault(name, 1)


def _cdist(call: CallDraft) -> None:
    """Translate the name of the compute mode to its number; raise EntryError for an unknown name."""
    mode = call.values.get("compute_mode")
    if isinstance(mode, str):
        if mode not in COMPUTE_MODES:
            raise EntryError(f"compute_mode: expected one of {', '.join(COMPUTE_MODES)}, found {mode!r}")
        call.values["compute_mode"] = COMPUTE_MODES[mode]


def _expand(call: CallDraft) -> None:
    """Replace each size of −1 by the size of the input at this axis; the input's axes are the last of the result.

    Raises:
        EntryError: The input does not have an axis with the size −1.
    """
    name = next((name for name in ("size", "shape") if name in call.result_attributes), None)
    requested, spec = call.result_attributes.get(name or ""), call.values.get("input")
    if name is None or not isinstance(requested, list | tuple) or not isinstance(spec, TensorSpec):
        return
    leading_axes = len(requested) - len(spec.shape)
    if any(size == -1 and axis < leading_axes for axis, size in enumerate(requested)):
        raise EntryError(f"{name}: -1 is not at an axis of the input, whose shape is {spec.shape}: {requested!r}")
    call.result_attributes[name] = tuple(
        spec.shape[axis - leading_axes] if size == -1 else size for axis, size in enumerate(requested)
    )


def _slice(call: CallDraft) -> None:
    """Translate the index, a Python slice, to start, end and step; a missing part selects all elements of the axis.

    Raises:
        EntryError: The index is not a slice.
    """
    index = call.unmatched.pop("index", None)
    values, spec = call.values, call.values.get("input")
    if isinstance(index, slice):
        values |= {"start": index.start, "end": index.stop, "step": index.step}
    elif index is not None:
        raise EntryError(f"index: expected slice(…), found {index!r}")
    if isinstance(spec, TensorSpec) and type(dim := values.get("dim", 0)) is int and dim < len(spec.shape):
        ends = {"start": 0, "end": spec.shape[dim] if spec.shape else 0, "step": 1}
        values |= {name: end for name, end in ends.items() if values.get(name) is None}


def _unique(call: CallDraft) -> None:
    """Omit the results that the original call does not request."""
    if not call.unmatched.pop("return_inverse", False):
        call.results["indices"] = None
    if not call.values.get("return_counts", False):
        call.results["counts"] = None


_ADAPTERS: Mapping[str, Callable[[CallDraft], None]] = {
    **{f"diopiPool{axes}d": _pool for axes in (1, 2, 3)},
    "diopiCdist": _cdist,
    "diopiExpand": _expand,
    "diopiSlice": _slice,
    "diopiSliceScatter": _slice,
    "diopiUnique": _unique,
}
"""The adapters, by the name of the function in its plain form."""

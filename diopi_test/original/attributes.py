"""Conversion of original attributes to arguments of the standard, with the default values of PyTorch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

from diopi_proto import parameters as kinds
from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from diopi_test.original.entries import EntryError

DEFAULTS: Mapping[str, Any] = {
    "accumulate": False,
    "align_corners": False,
    "alpha": 1,
    "approximate": "none",
    "beta": 1,
    "blank": 0,
    "ceil_mode": False,
    "count_include_pad": True,
    "descending": False,
    "diagonal": 0,
    "dilation": 1,
    "error_if_nonfinite": False,
    "groups": 1,
    "ignore_index": -100,
    "input_is_result": False,
    "keepdim": False,
    "label_smoothing": 0.0,
    "largest": True,
    "max_val": 1,
    "min_val": -1,
    "negative_slope": 0.01,
    "norm_type": 2.0,
    "output_padding": 0,
    "padding": 0,
    "padding_idx": -1,
    "reduction": "mean",
    "replacement": False,
    "return_counts": False,
    "rounding_mode": "none",
    "scale_grad_byfreq": False,
    "sorted": True,
    "sparse": False,
    "stable": False,
    "upper": False,
    "zero_infinity": False,
}
"""PyTorch's default values of attributes, by name; they hold for every function that `FUNCTION_DEFAULTS` lacks."""

FUNCTION_DEFAULTS: Mapping[tuple[str, str], Any] = {
    **{(f"diopi{function}", "eps"): 1e-5 for function in ("BatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm")},
    **{(f"diopi{function}", "value"): 1 for function in ("Addcmul", "Addcdiv")},
    **{(f"diopi{function}", "dim"): 0 for function in ("Cat", "Stack")},
    **{(f"diopi{function}", "dim"): -1 for function in ("Sort", "Topk", "Argsort")},
    **{(f"diopi{function}", "dim"): () for function in ("Sum", "Mean", "Std", "Amax")},
    ("diopiBatchNorm", "momentum"): 0.1,
    ("diopiBatchNorm", "training"): False,
    ("diopiCholesky", "checkerror"): False,
    ("diopiCdist", "p"): 2.0,
    ("diopiDropout", "p"): 0.5,
    ("diopiDropout", "train"): True,
    **{(f"diopiPool{axes}d", "mode"): "max" for axes in (1, 2, 3)},
    **{(f"diopi{function}", "dim"): 0 for function in ("Slice", "SliceScatter", "SplitWithSizes")},
    ("diopiNorm", "p"): 2,
    ("diopiScatter", "reduce"): "",
    ("diopiScatterScalar", "reduce"): "",
    ("diopiSgd", "dampening"): 0.0,
    ("diopiSortBackward", "keepdim"): True,
    ("diopiTriangularSolve", "upper"): True,
    ("diopiSgd", "momentum"): 0.0,
    ("diopiSgd", "nesterov"): False,
    ("diopiSgd", "weight_decay"): 0.0,
}
"""PyTorch's default values that depend on the function."""

_LIST_OF_WINDOW = ("stride", "padding", "dilation", "kernel_size", "ksize", "output_padding", "output_size")
"""The attributes of windows, such as those of a pooling; a single number holds for all axes of the window."""

_AXES_OF_WINDOW = {"diopiIm2Col": 2, "diopiCol2Im": 2}
"""The number of axes of a window, by function; for functions whose names do not contain it, as in diopiPool2d."""


def has_default(function: str, name: str) -> bool:
    """Return whether an attribute has a known default value."""
    return (function, name) in FUNCTION_DEFAULTS or name in DEFAULTS


def default_of(function: str, name: str) -> Any:
    """Return the default value of an attribute; raise EntryError if it is unknown."""
    if (function, name) in FUNCTION_DEFAULTS:
        return FUNCTION_DEFAULTS[function, name]
    if name in DEFAULTS:
        return DEFAULTS[name]
    raise EntryError(f"{function} needs {name}, which the entry does not have")


def convert_attribute(prototype: Prototype, parameter: Parameter, value: Any) -> Any:
    """Convert the value of an attribute to the form that a case has.

    Args:
        prototype: The function.
        parameter: The parameter that takes the attribute.
        value: The value in the configuration.

    Returns:
        The converted value.

    Raises:
        EntryError: The value is not valid for the parameter.
    """
    kind = parameter.annotation
    if value is None and parameter.optional:
        return None
    if issubclass(kind, Enum):
        return _member(kind, parameter, value)
    if issubclass(kind, kinds.Size):
        return _size(prototype, parameter, value)
    if issubclass(kind, kinds.Text):
        return _check_type(parameter, "" if value is None else value, str)
    if issubclass(kind, kinds.boolean):
        return _check_type(parameter, value, bool)
    if issubclass(kind, kinds.i64 | kinds.i32 | kinds.c_int):
        return _check_type(parameter, int(value) if isinstance(value, bool) else value, int)
    if issubclass(kind, kinds.f64 | kinds.f32):
        return float(_check_type(parameter, value, int | float))
    if issubclass(kind, kinds.Scalar):
        return _check_type(parameter, value, bool | int | float)
    raise EntryError(f"{parameter.name} is a {kind.__name__}, which is not translated")


def _member(kind: Any, parameter: Parameter, value: Any) -> Any:
    """Return the member of an enumeration with this name or number; None stands for the member `none`.

    Raises:
        EntryError: The enumeration has no such member.
    """
    if type(value) is int and value in [int(member) for member in kind]:
        return kind(value)
    name = "none" if value is None else value
    if name not in kind.__members__:
        raise EntryError(f"{parameter.name}: expected one of {', '.join(kind.__members__)}, found {value!r}")
    return kind[name]


def _size(prototype: Prototype, parameter: Parameter, value: Any) -> tuple[int, ...]:
    """Return a list attribute as a tuple: empty for None, and a single number once per axis of the window.

    Raises:
        EntryError: The value is neither an integer nor a list of integers.
    """
    window = re.search(r"([123])d", prototype.base)
    axes = int(window[1]) if window else _AXES_OF_WINDOW.get(prototype.base, 1)
    axes = axes if parameter.name in _LIST_OF_WINDOW else 1
    if value is None:
        return ()
    if isinstance(value, list | tuple) and all(type(size) is int for size in value):
        return tuple(value)
    if type(value) is not int:
        raise EntryError(f"{parameter.name}: expected integers, found {value!r}")
    return (value,) * axes


def _check_type(parameter: Parameter, value: Any, kind: Any) -> Any:
    """Return the value of an attribute; raise EntryError if it is not of the type `kind`, or of one of these types."""
    if not isinstance(value, kind):
        expected = getattr(kind, "__name__", str(kind))
        raise EntryError(f"{parameter.name}: expected {expected}, found {value!r}")
    return value

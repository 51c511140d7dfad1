"""Functions that differ from an operator of ATen only in the names of their arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from diopi_impl.vendor import Vendor
from diopi_proto.aten.table import ArgumentOf, Row, rows
from diopi_proto.interface import lookup

RENAMED = """
Amax Cat Clamp ClampMax ClampMin Col2Im Complex EmbeddingBackward Flip Gather Hardtanh HardtanhBackward Im2Col Index
IndexSelect LeakyRelu LeakyReluBackward LerpTensor MSELoss MSELossBackward MaskedFill MaskedScatter MaskedSelect
MaxAll MinAll Nonzero Polar PowScalar PowTensor Repeat Roll SelectBackward SelectScatter SigmoidBackward SliceBackward
SliceScatter Stack TanhBackward Threshold ThresholdBackward Tril Triu UnfoldBackward Where
"""
"""The functions, without the prefix `diopi`."""


def register_renamed(vendor: Vendor) -> None:
    """Register the functions that differ from an ATen operator only in the names of their arguments."""
    for name in RENAMED.split():
        vendor.implements(f"diopi{name}")(_operator_call(f"diopi{name}"))


def _operator_call(name: str) -> Callable[..., Any]:
    """Return the implementation of a function that passes its arguments to an operator in the operator's order."""
    candidates = [row for row in rows().values() if row.function == name and _takes_tensors(row)]
    row = min(candidates, key=lambda row: "Scalar" in row.operator)  # overloads for tensors also take numbers
    operator_name, _, overload = row.operator.partition(".")
    packet: Any = getattr(torch.ops.aten, operator_name)
    schema = getattr(packet, overload or "default")._schema.arguments
    sources = {p.name: row.source(p.name, [argument.name for argument in schema]) for p in lookup(name).arguments}
    parameters = {source.name: p for p, source in sources.items() if isinstance(source, ArgumentOf)}
    parameter_kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    declared = [inspect.Parameter(parameters[a.name], parameter_kind) for a in schema if a.name in parameters]
    # the functions of the module torch take half the time of torch.ops
    call = partial(getattr(torch, operator_name, None) or getattr(torch._C._nn, operator_name, None) or packet)
    call.__module__ = __name__  # instead of PyTorch's, because the runner reads all that an implementing module imports
    call.__signature__ = inspect.Signature(declared)  # type: ignore[attr-defined]  # inspect reads it
    return call


def _takes_tensors(row: Row) -> bool:
    """Return whether an operator takes single tensors, and tensors wherever the function takes tensors."""
    return not row.operator.startswith("_foreach") and not any(
        isinstance(source, ArgumentOf) and source.as_tensor for source in row.sources.values()
    )

"""Prototypes refer only to existing parameters and functions in their facts, result rules and gradients."""

from collections.abc import Mapping

import pytest

from diopi_proto.interface import lookup, prototypes
from diopi_proto.parameters import NewOuts, Role


def test_argument_dtypes_name_tensor_arguments() -> None:
    for prototype in prototypes().values():
        tensors = {p.name for p in prototype.parameters if p.is_argument and (p.is_tensor or p.is_tensor_array)}
        scalars = {p.name for p in prototype.parameters} if prototype.form in ("scalar", "inplace_scalar") else set()
        assert prototype.argument_dtypes.keys() <= tensors | scalars, prototype.name


def test_result_rules_name_every_result() -> None:
    """A result that is updated in place keeps its element type, so it needs no rule.

    Entries of `NewOuts` have names.
    """
    for prototype in prototypes().values():
        if not isinstance(prototype.result, Mapping) or any(p.annotation is NewOuts for p in prototype.parameters):
            continue
        written = {p.name for p in prototype.results if p.is_tensor or p.is_tensor_array}
        outputs = {p.name for p in prototype.results if p.name in written and p.role is Role.output}
        assert outputs <= prototype.result.keys(), prototype.name
        assert prototype.result.keys() <= written or prototype.is_inplace, prototype.name


def test_tensor_arguments_have_dtypes() -> None:
    arguments = [(prototype, p) for prototype in prototypes().values() for p in prototype.arguments if p.is_tensor]
    assert [(prototype.name, p.name) for prototype, p in arguments if not prototype.dtypes_of(p.name)] == []


@pytest.mark.parametrize(
    ("function", "repeats_bits"),
    [
        ("diopiFloor", True),
        ("diopiSoftmax", True),
        ("diopiSoftmaxBackward", False),
        ("diopiIndexPut", False),
        ("diopiScatterInp", False),
        ("diopiRoiAlignBackwardMmcv", False),
        ("diopiNormal", False),
        ("diopiTopk", False),
    ],
)
def test_equal_bits_are_guaranteed_unless_the_order_of_additions_is_free(function: str, repeats_bits: bool) -> None:
    assert lookup(function).repeats_bits == repeats_bits

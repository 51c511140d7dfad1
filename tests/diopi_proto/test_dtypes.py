"""Type promotion agrees with PyTorch, and the result rules agree with their documentation."""

import pytest

from diopi_proto import dtypes
from diopi_proto.dtypes import (
    COMPLEX,
    COMPONENT,
    ELEMENT_SIZE,
    DtypeSet,
    ResultRule,
    category,
    constant,
    promote,
    same_as_input,
)
from diopi_proto.types import Dtype

CODES = {
    "b1": Dtype.bool,
    "u1": Dtype.uint8,
    "i1": Dtype.int8,
    "i2": Dtype.int16,
    "i4": Dtype.int32,
    "i8": Dtype.int64,
    "f2": Dtype.float16,
    "bf": Dtype.bfloat16,
    "f4": Dtype.float32,
    "f8": Dtype.float64,
    "c4": Dtype.complex32,
    "c8": Dtype.complex64,
    "cx": Dtype.complex128,
}

"""A code per element type: a letter for the category, and the number of bytes if it has one digit."""

PYTORCH_PROMOTION = """
   b1 u1 i1 i2 i4 i8 f2 bf f4 f8 c4 c8 cx
b1 b1 u1 i1 i2 i4 i8 f2 bf f4 f8 c4 c8 cx
u1 u1 u1 i2 i2 i4 i8 f2 bf f4 f8 c4 c8 cx
i1 i1 i2 i1 i2 i4 i8 f2 bf f4 f8 c4 c8 cx
i2 i2 i2 i2 i2 i4 i8 f2 bf f4 f8 c4 c8 cx
i4 i4 i4 i4 i4 i4 i8 f2 bf f4 f8 c4 c8 cx
i8 i8 i8 i8 i8 i8 i8 f2 bf f4 f8 c4 c8 cx
f2 f2 f2 f2 f2 f2 f2 f2 f4 f4 f8 c4 c8 cx
bf bf bf bf bf bf bf f4 bf f4 f8 c8 c8 cx
f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f8 c8 c8 cx
f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 cx cx cx
c4 c4 c4 c4 c4 c4 c4 c4 c8 c8 cx c4 c8 cx
c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 cx c8 c8 cx
cx cx cx cx cx cx cx cx cx cx cx cx cx cx
"""
"""The results of torch.promote_types in PyTorch 2.13, for the types of row and column.

The unsigned types above uint8 are missing: PyTorch does not promote them, and no prototype accepts them.
"""


def promotion_entries() -> list[tuple[str, str, str]]:
    """Return the triples (first type, second type, promoted type) of PyTorch's table."""
    header, *rows = (line.split() for line in PYTORCH_PROMOTION.strip().splitlines())
    return [(row[0], column, entry) for row in rows for column, entry in zip(header, row[1:], strict=True)]


def test_the_table_covers_every_pair_of_accepted_dtypes() -> None:
    assert len(promotion_entries()) == len(CODES) ** 2
    assert {*CODES.values()} == {*dtypes.all_dtypes, Dtype.complex32}


@pytest.mark.parametrize(("first", "second", "common"), promotion_entries(), ids=lambda code: code)
def test_promotion_agrees_with_pytorch(first: str, second: str, common: str) -> None:
    assert promote(CODES[first], CODES[second]) is CODES[common]


def test_promotion_accepts_any_number_of_dtypes() -> None:
    assert promote(Dtype.int8, Dtype.bool, Dtype.uint8, Dtype.float16) is Dtype.float16
    assert promote(Dtype.bfloat16, Dtype.int64, Dtype.float16) is Dtype.float32
    assert promote(Dtype.int32) is Dtype.int32


def test_dtypes_have_categories() -> None:
    assert [category(CODES[code]) for code in ("b1", "u1", "i8", "bf", "f8", "c4", "cx")] == [0, 1, 1, 2, 2, 3, 3]


def test_element_sizes_match_the_type_codes() -> None:
    assert {code: ELEMENT_SIZE[dtype] for code, dtype in CODES.items()} == {
        code: {"bf": 2, "cx": 16}.get(code) or int(code[1]) for code in CODES
    }
    assert ELEMENT_SIZE.keys() == {*Dtype} - {Dtype.unsupported}


def test_complex_dtypes_and_their_components_correspond() -> None:
    for whole, part in COMPONENT.items():
        assert COMPLEX[part] is whole
        assert ELEMENT_SIZE[whole] == 2 * ELEMENT_SIZE[part]


def members(*names: str) -> set[Dtype]:
    """Return the element types with these names."""
    return {Dtype[name] for name in names}


FLOATING = members("float16", "bfloat16", "float32", "float64")
INTEGER = members("int8", "int16", "int32", "int64", "uint8")
BOOL = members("bool")
COMPLEXES = members("complex64", "complex128")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("half", members("float16", "bfloat16")),
        ("single", members("float32")),
        ("narrow", members("float16", "bfloat16", "float32")),
        ("wide", members("float32", "float64")),
        ("floating", FLOATING),
        ("signed", INTEGER - members("uint8")),
        ("integer", INTEGER),
        ("boolean", BOOL),
        ("integral", INTEGER | BOOL),
        ("index", members("int32", "int64")),
        ("complexes", COMPLEXES),
        ("numeric", FLOATING | INTEGER),
        ("real", FLOATING | INTEGER | BOOL),
        ("all_dtypes", FLOATING | INTEGER | BOOL | COMPLEXES),
    ],
)
def test_sets_of_dtypes_have_the_documented_members(name: str, expected: set[Dtype]) -> None:
    named: DtypeSet = getattr(dtypes, name)
    assert set(named) == expected
    assert len(named) == len(expected)


@pytest.mark.parametrize(
    ("rule", "inputs", "result"),
    [
        (dtypes.same, "i4 f4", "i4"),
        (dtypes.promoted, "i4 f2", "f2"),
        (dtypes.promoted, "u1 i1 b1", "i2"),
        (dtypes.promoted_to_floating, "i8", "f4"),
        (dtypes.promoted_to_floating, "b1 i2", "f4"),
        (dtypes.promoted_to_floating, "i8 bf", "bf"),
        (dtypes.promoted_to_floating, "f8 i8", "f8"),
        (dtypes.promoted_to_floating, "c8", "c8"),
        (dtypes.summed, "b1", "i8"),
        (dtypes.summed, "u1", "i8"),
        (dtypes.summed, "f2", "f2"),
        (dtypes.summed, "c8", "c8"),
        (dtypes.component, "c8", "f4"),
        (dtypes.component, "cx", "f8"),
        (dtypes.component, "c4", "f2"),
        (dtypes.component, "bf", "bf"),
        (dtypes.statistic, "f2", "f4"),
        (dtypes.statistic, "bf", "f4"),
        (dtypes.statistic, "f4", "f4"),
        (dtypes.statistic, "f8", "f8"),
        (dtypes.truth, "f4", "b1"),
        (dtypes.position, "f4", "i8"),
        (constant(Dtype.uint8), "cx f4", "u1"),
        (same_as_input(0), "f4 i4 f2", "f4"),
        (same_as_input(1), "f4 i4 f2", "i4"),
        (same_as_input(-1), "f4 i4 f2", "f2"),
    ],
)
def test_rules_derive_the_result_type(rule: ResultRule, inputs: str, result: str) -> None:
    assert rule([CODES[code] for code in inputs.split()]) is CODES[result]


@pytest.mark.parametrize("rule", [dtypes.same, dtypes.promoted, constant(Dtype.int64), same_as_input(-1)])
def test_every_rule_has_a_docstring(rule: ResultRule) -> None:
    assert rule.__doc__

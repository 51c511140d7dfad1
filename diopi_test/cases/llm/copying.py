"""Cases of `diopiDestIndexCopyKV`, which copies tokens into the slots of a cache that an index tensor lists.

A slot is the part of the cache that stores one token. A template describes cases that differ only in their element type
(`diopi_test.cases.template`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.cases.domains import any_value
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.llm.numbers import F16, I32, I64, Shape
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, tensor
from diopi_test.cases.tensors import (
    literal,
    positions,
)


@dataclass(frozen=True, kw_only=True)
class CopySizes:
    """The sizes of a call that copies tokens into a cache, from which `copy_arguments` derives the arguments.

    Attributes:
        token_count: The number of copied tokens.
        slot_count: The number of slots of the cache. It is at least `token_count`, because no slot is written twice.
        token_shape: The shape of a token and of a slot.
        index_dtype: The element type of the tensor that lists the destination slots.
    """

    token_count: int
    slot_count: int
    token_shape: Shape = (2, 3)
    index_dtype: Dtype = I64


def copy_template(
    label: str, token_count: int, slot_count: int, *token_shape: int, index_dtype: Dtype = I64, **fields: Any
) -> CaseTemplate[CopySizes]:
    """Return a template of a call that copies tokens into different random slots of a cache.

    Args:
        label: The label of the cases.
        token_count: The number of tokens.
        slot_count: The number of slots.
        *token_shape: The shape of a token; (2, 3) if it is empty.
        index_dtype: The element type of the destination slots.
        **fields: Fields of the template.

    Returns:
        The template.
    """
    return CaseTemplate(
        label,
        CopySizes(
            token_count=token_count, slot_count=slot_count, token_shape=token_shape or (2, 3), index_dtype=index_dtype
        ),
        **fields,
    )


def copy_arguments(template: CaseTemplate[CopySizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiDestIndexCopyKV` for the sizes of a template.

    Args:
        template: The template. Its layout applies to the cache and the tokens.
        dtype: Not used; cache and tokens have the type under test.

    Returns:
        The arguments by name. The destination slots are random and differ.
    """
    sizes, layout = template.sizes, template.layout
    return {
        "out": tensor(sizes.slot_count, *sizes.token_shape, domain=any_value, layout=layout),
        "k": tensor(sizes.token_count, *sizes.token_shape, domain=any_value, layout=layout),
        "dest_loc": positions(sizes.token_count, end=sizes.slot_count, distinct_along=0, dtype=sizes.index_dtype),
    }


register(
    "diopiDestIndexCopyKV",
    templates=(
        copy_template("", 4, 7, **SMOKE_IN_ALL_DTYPES),
        copy_template("int32", 4, 7, index_dtype=I32, dtypes=DtypeSelection.one_per_size),
        copy_template("one-token", 1, 9),
        copy_template("all-slots", 8, 8),
        copy_template("no-tokens", 0, 5),
        copy_template("many", 300, 517, 1, 3),
        copy_template("head-size-128", 3, 5, 2, 128, dtypes=half),
        copy_template("head-size-80", 3, 5, 4, 80),
        copy_template("one-number", 5, 9, 1, 1),
        copy_template("transposed", 4, 7, layout=transposed),
        copy_template("strided", 4, 7, layout=strided, dtypes=DtypeSelection.one_per_size),
        copy_template("in-order", 4, 7).replace(arguments={"dest_loc": literal([2, 3, 4, 5])}),
        copy_template("backwards", 4, 7).replace(arguments={"dest_loc": literal([6, 4, 2, 0])}),
        copy_template("many", 517, 2053, 5, 67, large=True),
        copy_template("int32", 4099, 9001, 1, 19, index_dtype=I32, dtypes=[F16], large=True),
    ),
    derive=copy_arguments,
    non_discriminating={"all-slots": "every element is overwritten"},
)

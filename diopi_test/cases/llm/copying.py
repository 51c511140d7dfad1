"""Tokens copied into slots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.cases.domains import any_value
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.llm.common import F16, I32, I64, Shape
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, tensor
from diopi_test.cases.tensors import distinct_positions, literal


@dataclass(frozen=True, kw_only=True)
class Copied:
    """The numbers of copied tokens and of slots, and the shape of a token."""

    tokens: int
    slots: int
    token: Shape = (2, 3)
    index: Dtype = I64


def copied(label: str, tokens: int, slots: int, *token: int, index: Dtype = I64, **fields: Any) -> CaseTemplate[Copied]:
    """Return a template that copies this many tokens to random slots of a cache."""
    return CaseTemplate(label, Copied(tokens=tokens, slots=slots, token=token or (2, 3), index=index), **fields)


def of_copied(template: CaseTemplate[Copied], dtype: Dtype) -> Mapping[str, Any]:
    """Derive the arguments of `diopiDestIndexCopyKV` from the sizes of a template."""
    sizes, layout = template.sizes, template.layout
    return {
        "out": tensor(sizes.slots, *sizes.token, domain=any_value, layout=layout),
        "k": tensor(sizes.tokens, *sizes.token, domain=any_value, layout=layout),
        "dest_loc": distinct_positions(sizes.tokens, below=sizes.slots, dtype=sizes.index),
    }


register(
    "diopiDestIndexCopyKV",
    templates=(
        copied("", 4, 7, **SMOKE_IN_ALL_DTYPES),
        copied("int32", 4, 7, index=I32, dtypes=DtypeSelection.one_per_size),
        copied("one-token", 1, 9),
        copied("all-slots", 8, 8),
        copied("no-tokens", 0, 5),
        copied("many", 300, 517, 1, 3),
        copied("head-size-128", 3, 5, 2, 128, dtypes=half),
        copied("head-size-80", 3, 5, 4, 80),
        copied("one-number", 5, 9, 1, 1),
        copied("transposed", 4, 7, layout=transposed),
        copied("strided", 4, 7, layout=strided, dtypes=DtypeSelection.one_per_size),
        copied("in-order", 4, 7).replace(arguments={"dest_loc": literal([2, 3, 4, 5])}),
        copied("backwards", 4, 7).replace(arguments={"dest_loc": literal([6, 4, 2, 0])}),
        copied("many", 517, 2053, 5, 67, large=True),
        copied("int32", 4099, 9001, 1, 19, index=I32, dtypes=[F16], large=True),
    ),
    derive=of_copied,
    non_discriminating={"all-slots": "every element is overwritten"},
)

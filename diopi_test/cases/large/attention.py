"""Large cases of attention, and of the other functions in a transformer layer.

Lengths are long where there are few heads, and there are many heads where there are few rows: the work is per head.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from diopi_proto.dtypes import floating
from diopi_test.cases.attention.calls import CAUSAL, attention, ragged, window
from diopi_test.cases.attention.customized import of_customized, of_customized_var_len
from diopi_test.cases.attention.flash import of_flash, of_flash_var_len
from diopi_test.cases.attention.masked_softmax import masked, of_masked
from diopi_test.cases.attention.multi_head import of_multi_head, of_multi_head_var_len
from diopi_test.cases.attention.rms_norm import normed, of_normed
from diopi_test.cases.attention.rotary import of_both, of_turned, rotated_query_and_key, turned
from diopi_test.cases.layouts import transposed
from diopi_test.cases.model import LARGE, ResultOverride, cases_for
from diopi_test.cases.template import CaseTemplate, Derive, expand

F16, BF16, F32, F64 = floating


def register_large(*names: str, templates: Sequence[CaseTemplate[Any]], derive: Derive[Any]) -> None:
    """Register these templates as the large cases of functions."""
    cases_for(*names, level=LARGE)(lambda prototype: expand(prototype, templates, derive))


register_large(
    "diopiRotaryEmbedding",
    templates=(
        turned("rows", (3, 517, 7, 66), 517, 1, 33),
        turned("transposed", (2, 263, 5, 130), 263, 1, 65, layout=transposed, dtypes=[F16]),
    ),
    derive=of_turned,
)
register_large(
    "diopiRotaryEmbeddingV2", templates=(rotated_query_and_key("tokens", (1031, 396), (1031, 132), 66),), derive=of_both
)
register_large(
    "diopiRMSNorm",
    "diopiRMSNormBackward",
    templates=[
        t.replace(results={name: ResultOverride() for name in ("inv_rms", "grad_weight", "grad_bias")})
        for t in (
            normed("rows", (257, 4099)),
            normed("many-rows", (70_001, 3)),
            normed("half", (3, 131, 517), dtypes=[BF16]),
        )
    ],
    derive=of_normed,
)
register_large(
    "diopiScaledMaskedSoftmax",
    "diopiScaledMaskedSoftmaxBackward",
    templates=(
        masked("attention", (2, 5, 131, 257), 2, 1, 131, 257, dtypes=[F16]),
        masked("triangle", (3, 517, 517), 3, 517, 517, triangle=True),
        masked("rows", (70_001, 3), 70_001, 3),
    ),
    derive=of_masked,
)

MANY_HEADS = attention(
    "many-heads", CAUSAL, batch=1, queries=131, keys=131, heads=32, key_heads=8, size=128, dtypes=[BF16]
)
LONG = attention("long", CAUSAL, batch=1, queries=2048, keys=2048, heads=1, key_heads=1, size=64)
GROUPED = attention(
    "grouped", window(100, 30), batch=1, queries=517, keys=517, heads=4, key_heads=1, size=80, dtypes=[F16]
)
RAGGED = ragged(
    "long", CAUSAL, queries=(1031, 1, 517, 259, 240), keys=(1031, 5, 517, 259, 240), heads=1, key_heads=1, size=64
)
RAGGED_HEADS = ragged(
    "many-heads", queries=(131, 67, 3), keys=(139, 71, 9), heads=32, key_heads=8, size=80, dtypes=[BF16]
)

for _gradient in ("", "Backward"):
    register_large(f"diopiFlashAttention{_gradient}", templates=(LONG, MANY_HEADS, GROUPED), derive=of_flash)
    register_large(f"diopiFlashAttentionVarLen{_gradient}", templates=(RAGGED, RAGGED_HEADS), derive=of_flash_var_len)
    register_large(
        f"diopiMultiHeadAttention{_gradient}",
        templates=[
            t.with_sizes(key_heads=t.sizes.heads, batch=1).replace(results={"debug_attn_mask": None})
            for t in (LONG, MANY_HEADS)
        ],
        derive=of_multi_head,
    )
    register_large(
        f"diopiMultiHeadAttentionVarLen{_gradient}",
        templates=[
            t.with_sizes(key_heads=t.sizes.heads).replace(results={"debug_attn_mask": None})
            for t in (RAGGED, RAGGED_HEADS)
        ],
        derive=of_multi_head_var_len,
    )
    register_large(
        f"diopiCustomizedFlashAttention{_gradient}",
        templates=(
            LONG.with_sizes(mask="triangle"),
            MANY_HEADS.with_sizes(mask="triangle", layout="SBH"),
        ),
        derive=of_customized,
    )
    register_large(
        f"diopiCustomizedFlashAttentionVarLen{_gradient}",
        templates=(RAGGED.with_sizes(mask="triangle", keys=RAGGED.sizes.queries), RAGGED_HEADS.with_sizes(mask="some")),
        derive=of_customized_var_len,
    )

"""Large cases of serving kernels."""

from __future__ import annotations

from diopi_proto.dtypes import floating
from diopi_proto.types import Dtype
from diopi_test.cases.large.attention import register_large
from diopi_test.cases.layouts import transposed
from diopi_test.cases.llm.blocks import of_paged, paged
from diopi_test.cases.llm.copying import copied, of_copied
from diopi_test.cases.llm.penalties import of_penalised, of_penalised_each, penalised
from diopi_test.cases.llm.products import of_product, product
from diopi_test.cases.llm.prompts import of_padded, padded
from diopi_test.cases.llm.tokens import of_tokens, tokens

F16, BF16, F32, F64 = floating

register_large(
    "diopiDestIndexCopyKV",
    templates=(copied("many", 517, 2053, 5, 67), copied("int32", 4099, 9001, 1, 19, index=Dtype.int32, dtypes=[F16])),
    derive=of_copied,
)

TOKENS = (
    tokens("many", 1031, 3, 517, heads=3, size=66),
    tokens("heads", 131, 67, heads=32, size=128, dtypes=[F16]),
)
register_large("diopiTokenAttentionInference", "diopiTokenSoftmaxReduceVInference", templates=TOKENS, derive=of_tokens)
register_large(
    "diopiContextAttentionInference",
    templates=[t.with_sizes(is_context=True) for t in TOKENS],
    derive=of_tokens,
)
register_large(
    "diopiPagedAttention",
    templates=(
        paged("many", 2048, 1031, 3, block=16, heads=8, key_heads=2, size=64, dtypes=[F16]),
        paged("masked", 517, 131, block=33, heads=4, key_heads=4, size=130, masked="each"),
    ),
    derive=of_paged,
)
register_large(
    "diopiPromptFlashAttention",
    templates=(
        padded("long", 1031, 1031, 517, heads=2, key_heads=1, size=66, masked=3),
        padded("heads", 67, 67, 33, heads=32, key_heads=8, size=128, dtypes=[BF16]),
    ),
    derive=of_padded,
)

VOCABULARY = (
    penalised("vocabulary", 517, 1031, 3, vocabulary=32_003),
    penalised("half", *(67, 131) * 9, vocabulary=4099, layout=transposed, dtypes=[F16]),
)
register_large("diopiApplyPenalty", templates=VOCABULARY, derive=of_penalised)
register_large("diopiApplyPenaltyV2", templates=VOCABULARY, derive=of_penalised_each)
register_large(
    "diopiMatmulAllReduce",
    templates=(
        product("square", 257, 1031, columns=509),
        product("half", 3, 131, 517, columns=263, layout=transposed, dtypes=[F16]),
    ),
    derive=of_product,
)

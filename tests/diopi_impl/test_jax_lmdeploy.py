"""Memory use of the LMDeploy engine's attention on jax_cpu, with 2,048 tokens, 32 query heads and 8 key heads."""

from __future__ import annotations

import numpy as np
import pytest
from implementations import with_all_parameters
from memory import assert_little_memory, shape
from sampling import sampled

from diopi_impl.jax_cpu.lmdeploy import attention

QUERIES, KEYS, TOKENS, BATCH = 32, 8, 2048, 4
THETA = 10000.0


def _weight(size: int) -> object:
    """Return the stored shape of the weight of queries, keys and values with heads of this size."""
    return shape(QUERIES * size, (QUERIES + 2 * KEYS) * size)


@pytest.mark.parametrize("size", sampled([64, 80, 128], 1, slow=2))
def test_prefill_of_2048_tokens_needs_limited_memory(size: int) -> None:
    cache = shape(1, 1, KEYS, TOKENS, size)
    assert_little_memory(
        lambda x, weight, keys, values: with_all_parameters(attention.fused_context_attention)(
            *(x, weight, None, None, 0, False, None, 0, 0, keys, values, 0),
            *(QUERIES, KEYS, size, TOKENS, TOKENS, TOKENS, size, THETA),
        ),
        *(shape(TOKENS, QUERIES * size), _weight(size), cache, cache),
    )


@pytest.mark.parametrize("size", sampled([64, 80, 128], 1, slow=2))
def test_decoding_after_2047_tokens_needs_limited_memory(size: int) -> None:
    cache = shape(1, BATCH, KEYS, TOKENS, size)
    assert_little_memory(
        lambda x, weight, keys, values, lengths: with_all_parameters(attention.fused_decoder_attention)(
            *(x, weight, None, None, 0, 0, keys, values, None, None, lengths, TOKENS, 0),
            *(QUERIES, KEYS, size, TOKENS, size, THETA),
        ),
        *(shape(BATCH, QUERIES * size), _weight(size), cache, cache, shape(BATCH, dtype=np.int32)),
    )

"""The references of serving kernels agree with plain loops, plain attention, and other partitions of caches."""

from typing import Any

import numpy as np
import pytest
from references import call_reference

from diopi_test.oracle.reference import PartlySpecified, find_reference

Array = np.ndarray[Any, Any]
LENGTHS = (3, 7, 1)


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a generator of random numbers with a fixed seed."""
    return np.random.default_rng(7)


def close(actual: Any, expected: Any) -> None:
    """Assert that arrays agree to about nine digits."""
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-11)


def attention(q: Array, k: Array, v: Array, hidden: Array | None = None) -> Array:
    """Compute attention of one sequence [rows, heads, size] with NumPy operations on whole arrays."""
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat(group, axis=1) for x in (k, v))
    scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(q.shape[-1])
    if hidden is not None:
        scores = np.where(hidden, -np.inf, scores)
    e = np.exp(scores)
    return np.einsum("hij,jhd->ihd", e / e.sum(-1, keepdims=True), v)


def test_tokens_are_copied_into_their_slots(rng: np.random.Generator) -> None:
    out, k, places = rng.normal(size=(9, 2, 3)), rng.normal(size=(4, 2, 3)), np.array([7, 0, 3, 8])
    found = call_reference("diopiDestIndexCopyKV", out, k, places)
    for slot in range(9):
        expected = k[list(places).index(slot)] if slot in places else out[slot]
        assert np.array_equal(found[slot], expected)


def tables(rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Return slots aligned to the right at 7, the starts of packed sequences, and lengths."""
    slots, table, used = rng.permutation(20), np.full((3, 9), 19), 0
    for row, length in zip(table, LENGTHS, strict=True):
        row[7 - length : 7] = slots[used : used + length]
        used += length
    return table, np.array([1, 4, 12]), np.array(LENGTHS)


def test_token_kernels_combine_to_attention(rng: np.random.Generator) -> None:
    q, k, v = rng.normal(size=(3, 2, 4)), rng.normal(size=(20, 2, 4)), rng.normal(size=(20, 2, 4))
    table, starts, lengths = tables(rng)
    before = rng.normal(size=(2, 14))
    scores = call_reference("diopiTokenAttentionInference", before, q, k, table, starts, lengths, 7)
    out = call_reference("diopiTokenSoftmaxReduceVInference", scores, v, table, starts, lengths, 7, 3)
    covered = np.zeros(14, bool)
    for b, length in enumerate(LENGTHS):
        slots = [table[b, 7 - length + t] for t in range(length)]
        covered[starts[b] : starts[b] + length] = True
        for t, slot in enumerate(slots):
            close(scores[:, starts[b] + t], [q[b, h] @ k[slot, h] / 2 for h in range(2)])
        close(out[b], attention(q[b][None], k[slots], v[slots])[0])
    assert np.array_equal(scores[:, ~covered], before[:, ~covered])


def test_prefill_attends_within_packed_sequences(rng: np.random.Generator) -> None:
    q, k, v, before = rng.normal(size=(4, 14, 2, 3))
    starts, lengths = np.array([1, 4, 12]), np.array(LENGTHS)
    out = call_reference("diopiContextAttentionInference", before, q, k, v, starts, lengths, 7)
    left = np.ones(14, bool)
    for start, length in zip(starts, lengths, strict=True):
        rows = slice(start, start + length)
        left[rows] = False
        close(out[rows], attention(q[rows], k[rows], v[rows], np.triu(np.ones((length, length), bool), 1)))
    assert np.array_equal(out[left], before[left])


def cut_into_blocks(tokens: list[Array], block: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Store sequences in a cache of blocks in any order; return the cache and the table of blocks."""
    used = [-(-len(token_ids) // block) for token_ids in tokens]
    blocks = rng.permutation(sum(used) + 1)
    cache, table = (
        rng.normal(size=(len(blocks) * block, tokens[0].shape[1])),
        np.full((len(used), max(used)), blocks[-1]),
    )
    for row, token_ids, end, count in zip(table, tokens, np.cumsum(used), used, strict=True):
        row[:count] = blocks[end - count : end]
        for t, token in enumerate(token_ids):
            cache[row[t // block] * block + t % block] = token
    return cache, table


@pytest.mark.parametrize("block", [1, 3, 16])
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_paged_attention_does_not_depend_on_the_block_size(rng: np.random.Generator, block: int, rows: int) -> None:
    q = rng.normal(size=(3, 12))
    keys, values = ([rng.normal(size=(length, 6)) for length in LENGTHS] for _ in range(2))
    mask = rng.random((rows, 7)) < 0.3 if rows else None
    if mask is not None:
        mask[:, 0] = False
    state = rng.bit_generator.state
    k, table = cut_into_blocks(keys, block, rng)
    rng.bit_generator.state = state
    v, _ = cut_into_blocks(values, block, rng)
    out = call_reference("diopiPagedAttention", q, k, v, mask, LENGTHS, 4, 2, 3, table, block)
    blocks = call_reference(
        "diopiPagedAttention", q, *(x.reshape(-1, block, 6) for x in (k, v)), mask, LENGTHS, 4, 2, 3, table, block
    )
    assert np.array_equal(out, blocks)
    for b, length in enumerate(LENGTHS):
        hidden = None if mask is None else mask[b % rows, None, :length]
        arguments = q[b].reshape(1, 4, 3), keys[b].reshape(-1, 2, 3), values[b].reshape(-1, 2, 3)
        close(out[b].reshape(4, 3), attention(*arguments, hidden)[0])


@pytest.mark.parametrize("shape", [None, (7, 7), (3, 7, 7), (3, 1, 7, 7)])
def test_prefill_attends_within_padded_sequences(rng: np.random.Generator, shape: tuple[int, ...] | None) -> None:
    q, k, v = rng.normal(size=(21, 12)), rng.normal(size=(21, 6)), rng.normal(size=(21, 6))
    mask = None if shape is None else rng.random(shape) < 0.3
    if mask is not None:
        mask[..., 0] = False
    reference = find_reference("diopiPromptFlashAttention")
    assert reference is not None
    found = reference(q, k, v, mask, LENGTHS, 7, 4, 2, 3)
    assert isinstance(found, PartlySpecified)
    for b, length in enumerate(LENGTHS):
        rows = slice(7 * b, 7 * b + length)
        hidden = np.triu(np.ones((length, length), bool), 1)
        if mask is not None:
            hidden |= np.broadcast_to(mask.reshape(-1, 7, 7), (3, 7, 7))[b, :length, :length]
        heads = q[rows].reshape(-1, 4, 3), k[rows].reshape(-1, 2, 3), v[rows].reshape(-1, 2, 3)
        close(found.value.value[rows].reshape(-1, 4, 3), attention(*heads, hidden))
        assert found.specified[rows].all() and not found.specified[rows.stop : 7 * b + 7].any()


def test_paged_attention_without_block_table_reads_tokens_in_order(rng: np.random.Generator) -> None:
    """LMDeploy passes rank 3, one query, one cache of all slots, and no table."""
    q, k, v = rng.normal(size=(1, 1, 12)), rng.normal(size=(1, 9, 6)), rng.normal(size=(1, 9, 6))
    out = call_reference("diopiPagedAttention", q, k, v, None, (7,), 4, 2, 3, None, 128)
    assert out.shape == q.shape
    heads = q.reshape(1, 4, 3), k[0, :7].reshape(7, 2, 3), v[0, :7].reshape(7, 2, 3)
    close(out.reshape(1, 4, 3), attention(*heads))
    table = np.arange(3).reshape(1, 3)
    close(call_reference("diopiPagedAttention", q[0], k[0], v[0], None, (7,), 4, 2, 3, table, 3), out[0])


def test_missing_lengths_mean_full_sequences(rng: np.random.Generator) -> None:
    q, k, v = rng.normal(size=(2, 5, 12)), rng.normal(size=(2, 5, 6)), rng.normal(size=(2, 5, 6))
    reference = find_reference("diopiPromptFlashAttention")
    assert reference is not None
    of_callers = reference(q, k, v, None, (), 5, 4, 2, 3)
    flat = reference(q.reshape(10, 12), k.reshape(10, 6), v.reshape(10, 6), None, (5, 5), 5, 4, 2, 3)
    assert isinstance(of_callers, PartlySpecified)
    assert isinstance(flat, PartlySpecified)
    assert of_callers.specified.all()
    close(of_callers.value.value, flat.value.value.reshape(2, 5, 12))


def test_apply_penalty_matches_loops(rng: np.random.Generator) -> None:
    logits, presence, frequency = rng.normal(size=(2, 9)), rng.normal(size=2), rng.normal(size=2)
    ids, counts, ends = np.array([4, 0, 8, 4]), np.array([1, 3, 2, 5]), np.array([0, 3, 4])
    expected = logits.copy()
    for b, (first, last) in enumerate([(0, 3), (3, 4)]):
        for e in range(first, last):
            expected[b, ids[e]] -= counts[e] * frequency[b] + presence[b]
    close(call_reference("diopiApplyPenalty", logits, presence, frequency, ids, counts, ends, 3), expected)


def test_apply_penalty_v2_matches_loops(rng: np.random.Generator) -> None:
    logits, (presence, frequency, repetition) = rng.normal(size=(2, 9)), rng.uniform(0.5, 2, size=(3, 4))
    logits[0, 4] = 0
    ids, counts = np.array([4, 10, 17, 2]), np.array([1, 3, 2, 5])
    expected = logits.copy()
    for e, place in enumerate(ids):
        x = logits[place // 9, place % 9]
        x = x / repetition[e] if x > 0 else x * repetition[e]
        expected[place // 9, place % 9] = x - counts[e] * frequency[e] - presence[e]
    close(call_reference("diopiApplyPenaltyV2", logits, presence, frequency, repetition, ids, counts), expected)


def test_matmul_all_reduce_matches_loops(rng: np.random.Generator) -> None:
    x1, x2, bias = rng.normal(size=(2, 3, 4)), rng.normal(size=(4, 5)), rng.normal(size=5)
    expected = [[[sum(row * column) for column in x2.T] for row in part] for part in x1]
    close(call_reference("diopiMatmulAllReduce", x1, x2, None, "any", "sum", 0, 1), expected)
    close(call_reference("diopiMatmulAllReduce", x1, x2, bias, "any", "sum", 0, 1), np.array(expected) + bias)

"""The references of the LMDeploy engine agree with plain loops, and do not depend on unread arguments."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from references import call_reference

from diopi_test.cases.lmdeploy.words import word_table
from diopi_test.oracle.reference import PartlySpecified, find_reference
from diopi_test.oracle.reference.lmdeploy.sampling import top_k_draw, top_p_draw

Array = np.ndarray[Any, Any]

rng = np.random.default_rng(29)

HEADS, KEYS, SIZE, WIDTH, THETA = 4, 2, 6, 4, 100.0
"""The sizes of attention. The first `WIDTH` columns of a head are rotated."""


def test_rms_norms_match_rows() -> None:
    x, residual, bias, scale = rng.normal(size=(3, 5)), rng.normal(size=(3, 5)), rng.normal(size=5), rng.normal(size=5)

    def normed(row: Array) -> list[float]:
        size = math.sqrt(math.fsum(v * v for v in row) / len(row) + 0.125)
        return [v / size * s for v, s in zip(row, scale, strict=True)]

    actual = call_reference("diopiRootMeanSquareNormInp", x, scale, 0.125)
    np.testing.assert_allclose(actual, [normed(row) for row in x], rtol=1e-13)
    for added in (bias, None):
        result, total = call_reference("diopiFusedAddRootMeanSquareNormInp", x, residual, added, scale, 0.125)
        np.testing.assert_allclose(total, x + residual + (0 if added is None else added), rtol=1e-13)
        np.testing.assert_allclose(result, [normed(row) for row in total], rtol=1e-12)


def test_silu_ffn_matches_loops() -> None:
    x, up, gate, down = (rng.normal(size=shape) for shape in ((3, 4), (4, 5), (4, 5), (5, 4)))
    wanted = np.zeros((3, 4))
    for i in range(3):
        for j in range(5):
            a, b = math.fsum(x[i] * gate[:, j]), math.fsum(x[i] * up[:, j])
            wanted[i] += a / (1 + math.exp(-a)) * b * down[j]
    result, size = call_reference("diopiFusedSiluFfnInp", x, gate, down, up, None, 7, 0)
    np.testing.assert_allclose(result, wanted, rtol=1e-12)
    assert size == 7


# Attention


def attention_arguments(rows: int, batch: int, slots: int) -> dict[str, Any]:
    """Return the arguments that both kinds of fused attention share."""
    wide, cache = (HEADS + 2 * KEYS) * SIZE, (2, batch, KEYS, slots, SIZE)
    return {
        "inoutput": rng.normal(size=(rows, HEADS * SIZE)),
        "qkv_weight": rng.normal(size=(HEADS * SIZE, wide)) / 5,
        "qkv_bias": rng.normal(size=(1, wide)),
        **{"workspace": None, "workspace_size": 0, "fusion_level": 0},
        "key_cache": rng.normal(size=cache),
        "value_cache": rng.normal(size=cache),
        **{"layer_id": 1, "local_head_num": HEADS, "local_kv_head_num": KEYS, "size_per_head": SIZE},
        **{"max_seq_len": slots, "rotary_embedding": WIDTH, "rope_theta": THETA},
    }


def prefill(arguments: dict[str, Any], new: int, history: int) -> list[Array]:
    """Return the result and the caches of a prefill."""
    lengths = {"max_q_len": new, "max_kv_len": history + new}
    results = call_reference(
        "diopiFusedContextAttentionInp", **arguments, pre_work=None, pre_work_size=0, is_prepared=False, **lengths
    )
    return [results[0], *results[3:]]


def decode(
    arguments: dict[str, Any], lengths: Any, step: int, padding: Any = None, finished: Any = None
) -> list[Array]:
    """Return the result and the caches of a decoding step."""
    state = {"finished": finished, "total_padding_tokens": padding, "sequence_lengths": np.array(lengths)}
    results = call_reference("diopiFusedDecoderAttentionInp", **arguments, **state, step=step)
    return [results[0], *results[2:]]


def rotate_head(x: Array, position: int) -> Array:
    """Return a head's vector with its first columns rotated as complex numbers."""
    pairs = x[0:WIDTH:2] + 1j * x[1:WIDTH:2]
    turns = [complex(math.cos(angle), math.sin(angle)) for angle in angles(position)]
    pairs = np.array([pair * turn for pair, turn in zip(pairs, turns, strict=True)])
    return np.concatenate([np.ravel(np.column_stack([pairs.real, pairs.imag])), x[WIDTH:]])


def angles(position: int) -> list[float]:
    """Return the rotation angles of a position."""
    return [position / THETA ** (column / WIDTH) for column in range(0, WIDTH, 2)]


def project_row(arguments: dict[str, Any], row: int, position: int) -> tuple[Array, Array, Array]:
    """Return the rotated queries, the rotated keys and the values of one row."""
    projected = (arguments["inoutput"][row] @ arguments["qkv_weight"] + arguments["qkv_bias"][0]).reshape(-1, SIZE)
    q, k, v = projected[:HEADS], projected[HEADS : HEADS + KEYS], projected[HEADS + KEYS :]
    return np.array([rotate_head(x, position) for x in q]), np.array([rotate_head(x, position) for x in k]), v


def attend(q: Array, keys: list[Array], values: list[Array]) -> Array:
    """Return the attention of one token, head by head, to the keys and values of tokens."""
    result = []
    for h, query in enumerate(q):
        key_head = h // (HEADS // KEYS)
        scores = [math.fsum(query * k[key_head]) / math.sqrt(SIZE) for k in keys]
        shares = [math.exp(s - max(scores)) for s in scores]
        total = math.fsum(shares) + 1e-6
        result.append(sum(share / total * v[key_head] for share, v in zip(shares, values, strict=True)))
    return np.concatenate(result)


def test_prefill_matches_loops_over_tokens() -> None:
    new, history, batch = 3, 2, 2
    arguments = attention_arguments(new * batch, batch, 7)
    result, key_cache, value_cache = prefill(arguments, new, history)
    keys, values = arguments["key_cache"].copy(), arguments["value_cache"].copy()
    for b in range(batch):
        for i in range(new):
            q, k, v = project_row(arguments, b * new + i, history + i)
            keys[1, b, :, history + i], values[1, b, :, history + i] = k, v
            seen = range(history + i + 1)
            cached = [[cache[1, b, :, slot] for slot in seen] for cache in (keys, values)]
            np.testing.assert_allclose(result[b * new + i], attend(q, *cached), rtol=1e-10)
    np.testing.assert_allclose(key_cache, keys, rtol=1e-12)
    np.testing.assert_allclose(value_cache, values, rtol=1e-12)


def test_decoding_matches_loops_over_sequences() -> None:
    lengths, padding, finished, slots = [3, 9, 0], np.array([1, 0, 2]), np.array([False, False, True]), 5
    arguments = attention_arguments(3, 3, slots)
    result, key_cache, value_cache = decode(arguments, lengths, 11, padding, finished)
    keys, values = arguments["key_cache"].copy(), arguments["value_cache"].copy()
    for b in range(2):
        q, k, v = project_row(arguments, b, 10 - padding[b])
        keys[1, b, :, lengths[b] % slots], values[1, b, :, lengths[b] % slots] = k, v
        times = range(max(0, lengths[b] + 1 - slots), lengths[b] + 1)
        cached = [[cache[1, b, :, time % slots] for time in times] for cache in (keys, values)]
        np.testing.assert_allclose(result[b], attend(q, *cached), rtol=1e-10)
    np.testing.assert_allclose(key_cache, keys, rtol=1e-12)
    np.testing.assert_allclose(value_cache, values, rtol=1e-12)


def test_results_of_finished_sequences_are_unspecified() -> None:
    arguments = attention_arguments(2, 2, 5)
    state = {"finished": np.array([True, False]), "total_padding_tokens": None, "sequence_lengths": np.array([1, 2])}
    function = find_reference("diopiFusedDecoderAttentionInp")
    assert function is not None
    result = function(**arguments, **state, step=3)[0]
    assert isinstance(result, PartlySpecified)
    assert result.specified.all(1).tolist() == [False, True]


def test_prefill_in_pieces_equals_a_single_prefill() -> None:
    at_once = attention_arguments(6, 1, 8)
    result, keys, values = prefill(at_once, 6, 0)
    caches = {name: at_once[name] for name in ("key_cache", "value_cache")}
    for start, end in ((0, 1), (1, 4), (4, 6)):
        piece = {**at_once, **caches, "inoutput": at_once["inoutput"][start:end]}
        rows, caches["key_cache"], caches["value_cache"] = prefill(piece, end - start, start)
        np.testing.assert_allclose(rows, result[start:end], rtol=1e-10)
    np.testing.assert_allclose(caches["key_cache"], keys, rtol=1e-12)
    np.testing.assert_allclose(caches["value_cache"], values, rtol=1e-12)


def test_decoding_steps_equal_a_prefill() -> None:
    at_once = attention_arguments(5, 1, 8)
    result, keys, values = prefill(at_once, 5, 0)
    caches = {name: at_once[name] for name in ("key_cache", "value_cache")}
    for time in range(5):
        single_step = {**at_once, **caches, "inoutput": at_once["inoutput"][time : time + 1]}
        rows, caches["key_cache"], caches["value_cache"] = decode(single_step, [time], time + 1)
        np.testing.assert_allclose(rows[0], result[time], rtol=1e-10)
    np.testing.assert_allclose(caches["key_cache"], keys, rtol=1e-12)
    np.testing.assert_allclose(caches["value_cache"], values, rtol=1e-12)


def test_attention_depends_only_on_relative_positions() -> None:
    arguments = attention_arguments(1, 1, 8)
    caches = {name: arguments[name] for name in ("key_cache", "value_cache")}
    shifted = dict(caches)
    tokens = rng.normal(size=(4, 1, HEADS * SIZE))
    for time, token in enumerate(tokens):
        here, caches["key_cache"], caches["value_cache"] = decode(
            {**arguments, **caches, "inoutput": token}, [time], time + 1
        )
        there, shifted["key_cache"], shifted["value_cache"] = decode(
            {**arguments, **shifted, "inoutput": token}, [time], time + 18
        )
        np.testing.assert_allclose(here, there, rtol=1e-9)


def test_decoding_does_not_depend_on_the_order_of_sequences() -> None:
    arguments, order, lengths = attention_arguments(4, 4, 6), [2, 0, 3, 1], np.array([1, 5, 0, 7])
    result, keys, _ = decode(arguments, lengths, 8)
    caches = {name: arguments[name][:, order] for name in ("key_cache", "value_cache")}
    reordered, other_keys, _ = decode(
        {**arguments, **caches, "inoutput": arguments["inoutput"][order]}, lengths[order], 8
    )
    np.testing.assert_allclose(reordered, result[order], rtol=1e-10)
    np.testing.assert_allclose(other_keys, keys[:, order], rtol=1e-12)


@pytest.mark.parametrize("name", ["diopiFusedContextAttentionInp", "diopiFusedDecoderAttentionInp"])
def test_workspace_query_changes_nothing(name: str) -> None:
    arguments = attention_arguments(2, 2, 4)
    arguments["workspace_size"] = -1
    results = prefill(arguments, 1, 0) if "Context" in name else decode(arguments, [1, 1], 2)
    for result, argument in zip(results, ("inoutput", "key_cache", "value_cache"), strict=True):
        np.testing.assert_array_equal(result, arguments[argument])


# Sampling


def sampling_arguments(batch: int, width: int) -> dict[str, Any]:
    """Return the arguments that both kinds of sampling share."""
    return {
        "output_ids": np.full((3, batch), -1),
        "logits": rng.normal(size=(batch, width)),
        "end_ids": np.full(batch, 3),
        "finished": np.arange(batch) % 5 == 4,
        "sequence_lengths": np.arange(batch),
        "step": 1,
        "runtime_top_k": np.full(batch, 4),
        "runtime_top_p": np.full(batch, 0.8),
        "skip_decode": np.arange(batch) % 7 == 2,
        "cum_log_probs": np.arange(batch) * -1.0,
        "output_log_probs": np.zeros(batch),
    }


def draw_by_loop(row: Array, k: int, p: float, number: float) -> tuple[int, float, float]:
    """Draw a token with a loop.

    Returns:
        The token, the logarithm of its probability, and the logarithm of its share of the sum of the k largest
        probabilities.
    """
    total = math.fsum(math.exp(x - max(row)) for x in row) + 1e-6
    shares = sorted(((math.exp(x - max(row)) / total, -i) for i, x in enumerate(row)), reverse=True)[:k]
    left = number * p * (math.fsum(share for share, _ in shares) if k < len(row) else 1.0)
    kept_total = math.fsum(share for share, _ in shares)
    while True:
        share, place = shares.pop(0)
        left -= share
        if left <= 0 or not shares:
            return -place, math.log(share), math.log(share) - math.log(kept_total)


@pytest.mark.parametrize(("draw", "k"), [(top_k_draw, 4), (top_p_draw, 9)])
def test_sampling_matches_loops(draw: Callable[[Any], Any], k: int) -> None:
    batch, is_top_k = 60, k == 4
    arguments, numbers = sampling_arguments(batch, 9), 1 - rng.random(60)
    ids, finished, lengths, cum, log_probs = draw(arguments)[1](numbers)
    for b in range(batch):
        if arguments["skip_decode"][b]:
            assert (ids[1, b], finished[b], lengths[b], cum[b], log_probs[b]) == (
                -1,
                arguments["finished"][b],
                b,
                -b,
                0,
            )
        elif arguments["finished"][b]:
            assert (ids[1, b], finished[b], lengths[b]) == (3, True, b)
            np.testing.assert_allclose([cum[b], log_probs[b]], [-b, 0], atol=1e-6)
        else:
            token, logarithm, share = draw_by_loop(arguments["logits"][b], k, 0.8, numbers[b])
            assert (ids[1, b], finished[b], lengths[b]) == (token, token == 3, b + 1)
            np.testing.assert_allclose(
                [cum[b], log_probs[b]], [logarithm - b, share if is_top_k else logarithm], atol=1e-9
            )
    assert (ids[[0, 2]] == -1).all()


def test_top_p_takes_the_lowest_of_equally_probable_tokens() -> None:
    arguments = sampling_arguments(2, 4)
    arguments["logits"] = np.array([[0.0, 5.0, 5.0, 1.0], [0.0, 1.0, 9.0, 0.0]])
    arguments |= {"finished": None, "skip_decode": None, "runtime_top_p": np.array([0.4, 0.5])}
    for number in (1e-9, 0.5, 1.0):
        assert top_p_draw(arguments)[1](np.full(2, number))[0][1].tolist() == [1, 2]


# Logits and criteria


def test_repetition_penalty_matches_loops() -> None:
    logits, ids = rng.normal(size=(2, 9)), rng.integers(0, 9, (6, 2))
    penalties, lengths = np.array([1.5, 2.0]), np.array([1, 3])
    for kind in range(3):
        wanted = logits.copy()
        for b in range(2):
            for token in {ids[t, b] for t in range(5) if t < lengths[b] or t >= 3}:
                old, penalty = logits[b, token], penalties[b]
                wanted[b, token] = [old, old - penalty, old * penalty if old < 0 else old / penalty][kind]
        actual = call_reference(
            "diopiBatchApplyRepetitionPenaltyInp", logits, penalties, ids, 2, 9, lengths, 3, 5, kind
        )
        np.testing.assert_array_equal(actual, wanted)


def test_word_criteria_match_a_text_search() -> None:
    """Tokens are letters. The last letter of a word is banned after its other letters. A stop word ends the text."""
    ids = rng.integers(1, 4, (7, 2))
    words = [[1, 2], [3], [2, 2, 1], [1, 1, 1, 1], [2, 3, 3]]
    table = np.array(word_table(20, *words))
    for step in range(7):
        logits = call_reference("diopiBanBadWordsInp", np.zeros((2, 5)), ids, table, 0, 20, True, 2, 5, step)
        tables = np.array([table, table])
        stopped = call_reference("diopiStopWordsCriterion", ids, tables, np.zeros(2, bool), 0, 20, 2, step)
        for b in range(2):
            before, spelt = ("".join(map(str, ids[:end, b])) for end in (step, step + 1))
            texts = ["".join(map(str, word)) for word in words]
            banned = {int(text[-1]) for text in texts if before.endswith(text[:-1])}
            assert set(np.flatnonzero(np.isneginf(logits[b])).tolist()) == banned
            assert stopped[b] == any(spelt.endswith(text) for text in texts)


def test_gather_output_matches_loops() -> None:
    lengths, longest, times = np.array([2, 4, 1]), 4, 7
    ids, before = rng.integers(0, 99, (9, 3)), rng.integers(100, 199, (3, 8))
    wanted = before.copy()
    for b in range(3):
        for t in range(times):
            if not lengths[b] <= t < longest:
                wanted[b, t if t < lengths[b] else t - (longest - lengths[b])] = ids[t, b]
    np.testing.assert_array_equal(
        call_reference("diopiGatherOutput", before, ids, lengths, longest, times, 8, 3), wanted
    )


def test_sampling_setup_replaces_invalid_arguments() -> None:
    ks, ps = np.array([0, 0, 3, 2000, 7]), np.array([0.0, 0.5, 0.0, 1.5, -1.0])
    k, p, skip = call_reference("diopiSetupTopkRuntimeArgsInp", ks, ps, 5, 9, 5, 0.5, 5)
    assert (k.tolist(), p.tolist(), skip.tolist()) == (
        [1, 0, 3, 1024, 7],
        [1, 0.5, 1, 1, 0],
        [False, True] + [False] * 3,
    )
    k, p, skip, first, decay, least, reset = call_reference(
        "diopiSetupToppRuntimeArgsInp", ks, ps, 5, 9, 5, 0.5, 5, 1.5, 0.25, -1
    )
    assert (k.tolist(), p.tolist(), first.tolist()) == ([1, 0, 3, 2000, 7], [0, 0.5, 0, 1, 0], [0, 0.5, 0, 1, 0])
    assert (skip.tolist(), set(decay), set(least), set(reset)) == ([True, False, True, True, True], {1.0}, {0.25}, {-1})


def test_sampling_arguments_of_size_1_are_not_read() -> None:
    """TurboMind's kernels read the tensors only if there are several values."""
    ks, ps = np.array([40, 7]), np.array([0.75, 0.25])
    for function, options in (("diopiSetupTopkRuntimeArgsInp", ()), ("diopiSetupToppRuntimeArgsInp", (0.5, 0.25, -1))):
        k, p, *_ = call_reference(function, ks, ps, 2, 9, 1, 0.5, 1, *options)
        assert (k.tolist(), p.tolist()) == ([9, 9], [0.5, 0.5])

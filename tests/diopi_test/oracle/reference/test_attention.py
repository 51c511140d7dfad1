"""The references of attention agree with plain loops, with PyTorch and with finite differences."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from references import call_reference, numerical_gradient

from diopi_test.cases.case import ResultOverride
from diopi_test.oracle.budget import K
from diopi_test.oracle.reference import find_reference

Array = np.ndarray[Any, Any]
THREE = (ResultOverride(),) * 3


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a generator of random numbers with a fixed seed."""
    return np.random.default_rng(5)


def close(actual: Any, expected: Any) -> None:
    """Assert that arrays agree to about nine digits."""
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-11)


def flash(q: Array, k: Array, v: Array, **changes: Any) -> Any:
    """Return the results of the reference of `diopiFlashAttention` with default options."""
    options = {"slopes": None, "p": 0.0, "scale": 0.5, "causal": False, "left": -1, "right": -1, "gen": None, **changes}
    gen = options.pop("gen")
    return call_reference("diopiFlashAttention", gen, q, k, v, *options.values())


def tensors(rng: np.random.Generator, *shapes: tuple[int, ...]) -> list[Array]:
    """Return arrays of these shapes with normally distributed numbers."""
    return [rng.normal(size=shape) for shape in shapes]


def by_loops(
    q: Array, k: Array, v: Array, scale: float, is_visible: Callable[[int, int], bool], slope: Sequence[float]
) -> Any:
    """Compute attention of one sequence [rows, heads, head size] with a loop over all numbers."""
    out, lse = np.zeros(q.shape), np.full(q.shape[:2], np.inf)
    offset = len(k) - len(q)
    for i in range(len(q)):
        for h in range(q.shape[1]):
            key_head = h * k.shape[1] // q.shape[1]
            scores = {}
            for j in range(len(k)):
                if is_visible(i, j):
                    dot = sum(float(a) * float(b) for a, b in zip(q[i, h], k[j, key_head], strict=True))
                    scores[j] = scale * dot - slope[h] * abs(i + offset - j)
            total = sum(np.exp(s) for s in scores.values())
            for j, score in scores.items():
                out[i, h] += np.exp(score) / total * v[j, key_head]
            lse[i, h] = np.log(total) if scores else np.inf
    return out, lse


LENGTHS = [(5, 5), (3, 7), (7, 3), (1, 4)]


@pytest.mark.parametrize(("queries", "keys"), LENGTHS)
@pytest.mark.parametrize(("left", "window_right"), [(-1, -1), (2, 1), (0, 0), (1, -1), (-1, 0)])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_matches_loops(
    rng: np.random.Generator, queries: int, keys: int, left: int, window_right: int, causal: bool
) -> None:
    q, k, v = tensors(rng, (2, queries, 4, 3), (2, keys, 2, 3), (2, keys, 2, 3))
    slopes = rng.uniform(0.1, 1, size=(2, 4))
    out, lse = flash(q, k, v, slopes=slopes, causal=causal, left=left, right=window_right)

    def is_visible(i: int, j: int) -> bool:
        place, last = i + keys - queries, 0 if causal else window_right
        return (left < 0 or j >= place - left) and (last < 0 or j <= place + last)

    for b in range(2):
        expected, sums = by_loops(q[b], k[b], v[b], 0.5, is_visible, slopes[b])
        close(out[b], expected)
        close(lse[b], sums.T)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_matches_pytorch(rng: np.random.Generator, causal: bool) -> None:
    torch = pytest.importorskip("torch")
    q, k, v = tensors(rng, (2, 6, 4, 8), (2, 6, 2, 8), (2, 6, 2, 8))
    as_torch = (torch.from_numpy(np.moveaxis(x, 1, 2).copy()) for x in (q, k, v))
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        expected = torch.nn.functional.scaled_dot_product_attention(
            *as_torch, is_causal=causal, scale=0.3, enable_gqa=True
        )
    close(flash(q, k, v, scale=0.3, causal=causal)[0], np.moveaxis(expected.numpy(), 1, 2))


def test_attention_does_not_depend_on_the_order_of_keys(rng: np.random.Generator) -> None:
    q, k, v = tensors(rng, (1, 3, 2, 4), (1, 9, 2, 4), (1, 9, 2, 4))
    order = rng.permutation(9)
    for actual, reordered in zip(flash(q, k, v), flash(q, k[:, order], v[:, order]), strict=True):
        close(actual, reordered)


def test_scores_do_not_change_when_all_positions_are_shifted(rng: np.random.Generator) -> None:
    (x,), frequencies = tensors(rng, (1, 6, 2, 8)), 10.0 ** -np.arange(4)

    def rotate_from(first: int) -> Array:
        angles = (first + np.arange(6))[:, None, None] * frequencies
        return call_reference("diopiRotaryEmbedding", x, np.cos(angles), np.sin(angles), False, False)

    scores, shifted_scores = (
        np.einsum("bihd,bjhd->bhij", rotate_from(first), rotate_from(first)) for first in (0, 100)
    )
    np.testing.assert_allclose(scores, shifted_scores, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_embedding_rotates_pairs_as_complex_numbers(rng: np.random.Generator, interleaved: bool) -> None:
    x, angle = rng.normal(size=(3, 8)), rng.normal(size=(3, 4))
    a, b = (x[:, ::2], x[:, 1::2]) if interleaved else (x[:, :4], x[:, 4:])
    expected = (a + 1j * b) * np.exp(1j * angle)
    y = call_reference("diopiRotaryEmbedding", x, np.cos(angle), np.sin(angle), False, interleaved)
    actual = y[:, ::2] + 1j * y[:, 1::2] if interleaved else y[:, :4] + 1j * y[:, 4:]
    close(actual, expected)
    close(call_reference("diopiRotaryEmbedding", y, np.cos(angle), np.sin(angle), True, interleaved), x)


def test_rotary_embedding_v2_rotates_each_head(rng: np.random.Generator) -> None:
    q, k, angle = rng.normal(size=(5, 3, 8)), rng.normal(size=(5, 1, 8)), rng.normal(size=(5, 1, 4))
    cos, sin = (np.concatenate([f(angle)] * 2, -1) for f in (np.cos, np.sin))
    flat = call_reference("diopiRotaryEmbeddingV2", q.reshape(5, 24), k.reshape(5, 8), cos, sin, 8)
    for actual, x in zip(flat, (q, k), strict=True):
        close(
            actual.reshape(x.shape),
            call_reference("diopiRotaryEmbedding", x, np.cos(angle), np.sin(angle), False, False),
        )
    for actual, x in zip(call_reference("diopiRotaryEmbeddingV2", q, k, cos, sin, 8), flat, strict=True):
        close(actual.ravel(), x.ravel())


def test_rotary_embedding_v2_accepts_angles_with_more_axes(rng: np.random.Generator) -> None:
    """LMDeploy passes cosines and sines as [1, T, 1, D], or [B, S, 1, D] for several sequences."""
    q, k, cos, sin = tensors(rng, (2, 5, 3, 8), (2, 5, 1, 8), (2, 5, 1, 8), (2, 5, 1, 8))
    batch_results = call_reference("diopiRotaryEmbeddingV2", q, k, cos, sin, 8)
    for b in range(2):
        of_sequence = call_reference("diopiRotaryEmbeddingV2", q[b], k[b], cos[b], sin[b], 8)
        in_batch = call_reference("diopiRotaryEmbeddingV2", q[b], k[b], cos[b : b + 1], sin[b : b + 1], 8)
        for part, single, same in zip(batch_results, of_sequence, in_batch, strict=True):
            close(part[b], single)
            close(same, single)
    packed = call_reference("diopiRotaryEmbeddingV2", q.reshape(10, 24), k.reshape(10, 8), cos, sin, 8)
    for part, same in zip(batch_results, packed, strict=True):
        close(same.ravel(), part.ravel())


# Packed sequences, layouts, masks

ENDS_Q, ENDS_K = [0, 3, 3, 8], [0, 4, 6, 11]
NUMBERS = 0.0, 0.5, True, 2, -1


def test_packed_sequences_are_independent(rng: np.random.Generator) -> None:
    q, k, v = tensors(rng, (8, 4, 3), (11, 2, 3), (11, 2, 3))
    slopes = rng.uniform(0.1, 1, size=(3, 4))
    begins = np.array(ENDS_Q), np.array(ENDS_K)
    out, lse = call_reference("diopiFlashAttentionVarLen", None, q, k, v, *begins, slopes, 6, 9, *NUMBERS)
    assert lse.shape == (3, 4, 6)
    for number, ((a, b), (c, d)) in enumerate(zip(pairwise(ENDS_Q), pairwise(ENDS_K), strict=True)):
        single = call_reference(
            "diopiFlashAttention", None, q[None, a:b], k[None, c:d], v[None, c:d], slopes[number], *NUMBERS
        )
        close(out[a:b], single[0][0])
        close(lse[number, :, : b - a], single[1][0])


@pytest.mark.parametrize("layout", ["BSND", "BNSD", "BSH", "SBH"])
def test_layouts_give_equal_results(rng: np.random.Generator, layout: str) -> None:
    q, k, v, g = tensors(rng, (2, 5, 4, 3), (2, 6, 2, 3), (2, 6, 2, 3), (2, 5, 4, 3))
    mask = rng.random((5, 6)) < 0.3

    def laid(x: Array) -> Array:
        flat = x.reshape(*x.shape[:2], -1)
        return {"BSND": x, "BNSD": x.swapaxes(1, 2), "BSH": flat, "SBH": flat.swapaxes(0, 1)}[layout]

    def forward(name: str, laid: Callable[[Array], Array]) -> Any:
        numbers = None, mask, 0.0, 0.5, False, -1, -1, 4, name
        return call_reference("diopiCustomizedFlashAttention", None, laid(q), laid(k), laid(v), *numbers)

    def backward(name: str, laid: Callable[[Array], Array], found: Any) -> Any:
        arguments = laid(g), laid(q), laid(k), laid(v), None, found[0], mask, None, *found[2:]
        return call_reference("diopiCustomizedFlashAttentionBackward", *arguments, 0.0, 0.5, False, -1, -1, 4, name)

    plain, actual = forward("BSND", lambda x: x), forward(layout, laid)
    close(actual[0], laid(plain[0]))
    for b in range(2):
        expected, lse = by_loops(q[b], k[b], v[b], 0.5, lambda i, j: not mask[i, j], [0] * 4)
        close(plain[0][b], expected)
        close(plain[2][b, ..., 0] + np.log(plain[3][b, ..., 0]), lse.T)
    pairs = zip(backward("BSND", lambda x: x, plain), backward(layout, laid, actual), strict=True)
    for reference, same in pairs:
        close(same, laid(reference))


@pytest.mark.parametrize("batch", [1, 2])
def test_each_sequence_may_have_its_own_mask(rng: np.random.Generator, batch: int) -> None:
    """LMDeploy passes masks as [1, 1, S, S] and [B, 1, S, S]."""
    q, k, v = tensors(rng, (2, 5, 4, 3), (2, 5, 2, 3), (2, 5, 2, 3))
    mask = rng.random((batch, 1, 5, 5)) < 0.3
    out = call_reference(
        "diopiCustomizedFlashAttention", None, q, k, v, None, mask, 0.0, 0.5, False, -1, -1, 4, "BSND"
    )[0]
    for b in range(2):
        sequence_mask = mask[b % batch, 0]
        close(
            out[b],
            by_loops(q[b], k[b], v[b], 0.5, lambda i, j, sequence_mask=sequence_mask: not sequence_mask[i, j], [0] * 4)[
                0
            ],
        )


def test_packed_sequences_use_the_corner_of_the_mask(rng: np.random.Generator) -> None:
    q, k, v = tensors(rng, (8, 2, 3), (11, 2, 3), (11, 2, 3))
    mask = rng.random((6, 7)) < 0.3
    ends = ENDS_Q[1:], ENDS_K[1:]
    out = call_reference(
        "diopiCustomizedFlashAttentionVarLen", None, q, k, v, *ends, None, mask, 6, 7, 0.0, 0.5, False, -1, -1
    )[0]
    for (a, b), (c, d) in zip(pairwise(ENDS_Q), pairwise(ENDS_K), strict=True):
        close(out[a:b], by_loops(q[a:b], k[c:d], v[c:d], 0.5, lambda i, j: not mask[i, j], [0, 0])[0])


def test_small_causal_triangle_represents_a_large_one(rng: np.random.Generator) -> None:
    rows = 2050
    q, k, v = tensors(rng, (1, rows, 1, 2), (1, rows, 1, 2), (1, rows, 1, 2))
    numbers = 0.0, 0.5, True, -1, -1, 1, "BSND"
    small, large = (np.triu(np.ones((n, n), bool), 1) for n in (2048, rows))
    with_triangle, with_full_mask = (
        call_reference("diopiCustomizedFlashAttention", None, q, k, v, None, m, *numbers)[0] for m in (small, large)
    )
    close(with_triangle, with_full_mask)


# Gradients

FEATURES = [
    {},
    {"causal": True},
    {"left": 2, "right": 1},
    {"causal": True, "left": 1},
    {"slopes": np.array([0.3, 0.7])},
    {"p": 0.4, "gen": 3},
]


@pytest.mark.parametrize("features", FEATURES)
def test_attention_gradients_match_differences(rng: np.random.Generator, features: dict[str, Any]) -> None:
    q, k, v, g = tensors(rng, (1, 5, 2, 3), (1, 5, 1, 3), (1, 5, 1, 3), (1, 5, 2, 3))
    options = {"slopes": None, "p": 0.0, "scale": 0.5, "causal": False, "left": -1, "right": -1, **features}
    gen, slopes = options.pop("gen", None), options.pop("slopes")
    out, lse = flash(q, k, v, **features)
    grads = call_reference("diopiFlashAttentionBackward", g, gen, q, k, v, slopes, out, lse, *options.values())
    for place, grad in enumerate(grads):

        def moved(x: Array, place: int = place) -> Array:
            changed = [q, k, v]
            changed[place] = x
            return flash(*changed, **features)[0]

        np.testing.assert_allclose(grad, numerical_gradient(moved, [q, k, v][place], g), rtol=1e-7, atol=1e-9)


def test_gradients_of_packed_sequences_match_differences(rng: np.random.Generator) -> None:
    q, k, v, g = tensors(rng, (8, 2, 3), (11, 2, 3), (11, 2, 3), (8, 2, 3))
    begins = np.array(ENDS_Q), np.array(ENDS_K)

    def forward(*arguments: Array) -> Any:
        return call_reference(
            "diopiMultiHeadAttentionVarLen", *arguments, *begins, 5, 5, 0.0, True, False, 0.5, None, out=THREE
        )

    out, lse, _ = forward(q, k, v)
    grads = call_reference(
        "diopiMultiHeadAttentionVarLenBackward", g, q, k, v, out, lse, *begins, 5, 5, 0.0, True, None, 0.5
    )
    flash_grads = call_reference(
        "diopiFlashAttentionVarLenBackward", g, None, q, k, v, *begins, None, out, lse, 5, 5, 0.0, 0.5, True, -1, -1
    )
    for place, grad in enumerate(grads):

        def moved(x: Array, place: int = place) -> Array:
            changed = [q, k, v]
            changed[place] = x
            return forward(*changed)[0]

        np.testing.assert_allclose(grad, numerical_gradient(moved, [q, k, v][place], g), rtol=1e-7, atol=1e-9)
        close(grad, flash_grads[place])


def test_multi_head_attention_is_flash_attention(rng: np.random.Generator) -> None:
    q, k, v, g = tensors(rng, (2, 4, 2, 3), (2, 4, 2, 3), (2, 4, 2, 3), (2, 4, 2, 3))
    out, lse, mask = call_reference("diopiMultiHeadAttention", q, k, v, 0.0, True, True, 0.5, None, out=THREE)
    expected = flash(q, k, v, causal=True)
    close(out, expected[0])
    close(lse, expected[1])
    assert mask.shape == (2, 2, 4, 4)
    grads = call_reference("diopiMultiHeadAttentionBackward", g, q, k, v, out, lse, 0.0, True, None, 0.5)
    flash_grads = call_reference(
        "diopiFlashAttentionBackward", g, None, q, k, v, None, out, lse, 0.0, 0.5, True, -1, -1
    )
    for grad, flash_grad in zip(grads, flash_grads, strict=True):
        close(grad, flash_grad)


@pytest.mark.parametrize(("share", "is_lost"), [(1e-39, True), (1e-37, False)])
def test_gradients_allow_for_subnormal_weights(share: float, is_lost: bool) -> None:
    """Only the part that comes from subnormal weights may be missing completely."""
    q, k = np.array([[1.0]]), np.array([[0.0], [np.log(share)]])
    v, g = np.array([[1.0], [3.0]]), np.array([[1.0]])
    rows = [x[np.newaxis, :, np.newaxis] for x in (g, q, k, v)]
    out, lse = flash(*rows[1:], scale=1.0)
    reference = find_reference("diopiFlashAttentionBackward")
    assert reference is not None
    _, *of_keys = reference(rows[0], None, *rows[1:], None, out, lse, 0.0, 1.0, False, -1, -1)
    for grad in of_keys:
        value, allowed = np.abs(grad.value).ravel(), np.ravel(K * np.finfo(np.float32).eps * grad.terms)
        assert 0 < value[1] < 1e-36
        assert (allowed[1] > value[1]) == is_lost
        assert allowed[0] < 1e-4


def test_gradient_of_keys_hidden_from_a_nan_query_is_open(rng: np.random.Generator) -> None:
    q, k, v, g = tensors(rng, (1, 4, 1, 3), (1, 4, 1, 3), (1, 4, 1, 3), (1, 4, 1, 3))
    q[0, 1, 0, 0] = np.nan
    out, lse = flash(q, k, v, causal=True)
    reference = find_reference("diopiFlashAttentionBackward")
    assert reference is not None
    _, *of_keys = reference(g, None, q, k, v, None, out, lse, 0.0, 1.0, True, -1, -1)
    for grad in of_keys:
        assert np.isnan(grad.value.value[0, :2]).all()
        assert grad.specified[0, :, 0, 0].tolist() == [True, True, False, False]


def test_gradients_with_a_mask_match_differences(rng: np.random.Generator) -> None:
    q, k, v, g = tensors(rng, (8, 2, 3), (11, 1, 3), (11, 1, 3), (8, 2, 3))
    numbers = None, rng.random((5, 5)) < 0.3, 5, 5, 0.0, 0.5, False, -1, -1
    ends = ENDS_Q[1:], ENDS_K[1:]

    def forward(*arguments: Array) -> Any:
        return call_reference("diopiCustomizedFlashAttentionVarLen", None, *arguments, *ends, *numbers)

    out, bits, *records = forward(q, k, v)
    assert bits.size == 0
    slopes, mask, *options = numbers
    saved = slopes, out, mask, None, *records
    grads = call_reference("diopiCustomizedFlashAttentionVarLenBackward", g, q, k, v, *ends, *saved, *options)
    for place, grad in enumerate(grads):

        def moved(x: Array, place: int = place) -> Array:
            changed = [q, k, v]
            changed[place] = x
            return forward(*changed)[0]

        np.testing.assert_allclose(grad, numerical_gradient(moved, [q, k, v][place], g), rtol=1e-7, atol=1e-9)


def test_dropout_preserves_the_mean(rng: np.random.Generator) -> None:
    q, k = rng.normal(size=(1, 64, 8, 4)), rng.normal(size=(1, 64, 8, 4))
    v = np.broadcast_to(np.eye(64)[:, None], (1, 64, 8, 64))
    wide = np.concatenate([q, np.zeros((1, 64, 8, 60))], -1), np.concatenate([k, np.zeros((1, 64, 8, 60))], -1)
    shares, dropped = flash(*wide, v)[0], flash(*wide, v, p=0.3, gen=1)[0]
    assert abs((dropped == 0).mean() - 0.3) < 0.02
    close(dropped[dropped != 0], shares[dropped != 0] / 0.7)
    assert not flash(*wide, v, p=1.0, gen=1)[0].any()


# RMS norm and masked softmax


@pytest.mark.parametrize("axes", [1, 2])
def test_rms_norm_matches_pytorch(rng: np.random.Generator, axes: int) -> None:
    torch = pytest.importorskip("torch")
    x, g = tensors(rng, (3, 4, 5), (3, 4, 5))
    shape = x.shape[3 - axes :]
    w, b = tensors(rng, shape, shape)
    out, inv_rms = call_reference("diopiRMSNorm", x, shape, w, b, 0.1)
    expected = torch.nn.functional.rms_norm(torch.from_numpy(x), list(shape), torch.from_numpy(w), 0.1).numpy() + b
    close(out, expected)
    assert inv_rms.shape == x.shape[: 3 - axes]
    grads = call_reference("diopiRMSNormBackward", g, x, w, b, inv_rms, shape, 7.0)
    forms = [
        lambda x: call_reference("diopiRMSNorm", x, shape, w, b, 0.1)[0],
        lambda w: call_reference("diopiRMSNorm", x, shape, w, b, 0.1)[0],
        lambda b: call_reference("diopiRMSNorm", x, shape, w, b, 0.1)[0],
    ]
    for grad, form, argument in zip(grads, forms, (x, w, b), strict=True):
        np.testing.assert_allclose(grad, numerical_gradient(form, argument, g), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("triangle", [False, True])
def test_scaled_masked_softmax_matches_pytorch(rng: np.random.Generator, triangle: bool) -> None:
    torch = pytest.importorskip("torch")
    x, g = tensors(rng, (2, 3, 4, 4), (2, 3, 4, 4))
    mask = rng.random((2, 1, 4, 4)) < 0.4
    hidden = np.broadcast_to(np.triu(np.ones((4, 4), bool), 1) if triangle else mask, x.shape)
    y = call_reference("diopiScaledMaskedSoftmax", x, mask, 1.3, triangle)
    scores = torch.from_numpy(1.3 * x).masked_fill(torch.from_numpy(hidden.copy()), -10000.0)
    close(y, torch.softmax(scores, -1).numpy())
    grad = call_reference("diopiScaledMaskedSoftmaxBackward", g, y, mask, 1.3, triangle)

    def forward(x: Array) -> Any:
        return call_reference("diopiScaledMaskedSoftmax", x, mask, 1.3, triangle)

    np.testing.assert_allclose(grad, numerical_gradient(forward, x, g), rtol=1e-7, atol=1e-9)

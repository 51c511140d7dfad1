"""Attention on the device: the fast paths of evaluation, and all forms of products with a softmax."""

import copy
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from sampling import sampled
from torch_devices import AlteredVendor

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

import diopi_torch  # noqa: E402  # behind the check for PyTorch
from diopi_proto.types import Error  # noqa: E402  # behind the check, too

attention = torch.nn.functional.scaled_dot_product_attention

PADDING = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
LATER = torch.ones(5, 5).triu(1).bool()


def numbers(*shape: int, seed: int = 0) -> Any:
    """Return a tensor of normally distributed random numbers, which depend on the seed and the shape."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


def to_device(named: dict[str, Any]) -> dict[str, Any]:
    """Return the named arguments with copies of the tensors on the device."""
    return {name: value.to("diopi") if isinstance(value, torch.Tensor) else value for name, value in named.items()}


MASKS = [
    {},
    {"src_key_padding_mask": PADDING},
    {"src_mask": LATER, "is_causal": True},
    {"src_mask": LATER, "src_key_padding_mask": PADDING},
]


@pytest.mark.parametrize(("masks", "norm_first"), sampled(product(MASKS, [True, False]), 2), ids=str)
def test_encoder_layers_in_evaluation_mode_equal_the_cpu(vendor: AlteredVendor, masks: Any, norm_first: bool) -> None:
    layer = torch.nn.TransformerEncoderLayer(16, 4, 8, norm_first=norm_first, batch_first=True).eval()
    x = numbers(2, 5, 16)
    with torch.inference_mode():
        found = copy.deepcopy(layer).to("diopi")(x.to("diopi"), **to_device(masks))
        torch.testing.assert_close(found.cpu(), layer(x, **masks))
    assert "diopiSoftmax" in vendor.called
    assert diopi_torch.fallbacks() == {}


@pytest.mark.parametrize("options", [{}, {"average_attn_weights": False}, {"need_weights": False}], ids=str)
def test_attention_in_evaluation_returns_the_requested_weights(vendor: AlteredVendor, options: Any) -> None:
    layer = torch.nn.MultiheadAttention(16, 4, batch_first=True).eval()
    x, options = numbers(2, 5, 16), {**options, "key_padding_mask": PADDING}
    with torch.inference_mode():
        found = copy.deepcopy(layer).to("diopi")(*[x.to("diopi")] * 3, **to_device(options))
        torch.testing.assert_close(
            [tensor if tensor is None else tensor.cpu() for tensor in found], list(layer(x, x, x, **options))
        )
    assert diopi_torch.fallbacks() == {}


def test_encoders_pad_because_there_are_no_nested_tensors(vendor: AlteredVendor) -> None:
    layer = torch.nn.TransformerEncoderLayer(16, 4, 8, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 1, enable_nested_tensor=False).eval()
    x, masks = numbers(2, 5, 16), {"src_key_padding_mask": PADDING}
    with torch.inference_mode():
        on_device, unchecked = (torch.nn.TransformerEncoder(layer, 1, mask_check=check) for check in (True, False))
        found = on_device.eval().to("diopi")(x.to("diopi"), **to_device(masks))
        torch.testing.assert_close(found.cpu()[~PADDING], encoder(x, **masks)[~PADDING])
        with pytest.raises(NotImplementedError, match="_nested_tensor_from_mask"):
            unchecked.eval().to("diopi")(x.to("diopi"), **to_device(masks))


SCALED_DOT_PRODUCTS = [
    ((2, 4, 5, 8), (2, 4, 7, 8), {}),
    ((2, 4, 5, 8), (2, 4, 5, 8), {"is_causal": True}),
    ((2, 4, 5, 8), (2, 2, 7, 8), {"enable_gqa": True, "scale": 0.3}),
    ((4, 5, 8), (4, 5, 8), {"attn_mask": ~LATER}),
    ((5, 8), (5, 8), {"attn_mask": numbers(5, 5), "dropout_p": 0.0}),
    ((2, 4, 5, 8), (2, 4, 5, 8), {"attn_mask": torch.zeros(2, 1, 5, 5).bool()}),
    ((2, 4, 5, 8), (2, 4, 0, 8), {}),
]
"""The shapes of the queries and of the keys, and options."""


@pytest.mark.parametrize(("queries", "keys", "options"), sampled(SCALED_DOT_PRODUCTS, 2), ids=str)
def test_scaled_dot_products_equal_the_cpu(vendor: AlteredVendor, queries: Any, keys: Any, options: Any) -> None:
    found = []
    for device in ("cpu", "diopi"):
        tensors = [numbers(*shape).to(device).requires_grad_() for shape in (queries, keys, keys)]
        result = attention(*tensors, **(options if device == "cpu" else to_device(options)))
        gradients = torch.autograd.grad(result.square().sum(), tensors)
        found.append([tensor.detach().cpu() for tensor in (result, *gradients)])
    torch.testing.assert_close(found[1], found[0])
    assert diopi_torch.fallbacks() == {}


FUNCTIONS = ["diopiMultiHeadAttention", "diopiMultiHeadAttentionBackward"]


@pytest.fixture
def altered_vendor(activate_vendor: Callable[[Any], Any]) -> AlteredVendor:
    """Return the device with host-addressable memory."""
    return activate_vendor(AlteredVendor())


def _trained(device: str, dtype: Any, options: Any, keys: int = 5, computed: Any = None) -> list[Any]:
    """Return the result and the gradients for numbers of an element type, computed in this or another type."""
    shapes = [(2, 3, 5, 4), (2, 3, keys, 4), (2, 3, keys, 4), (2, 3, 5, 4)]
    samples = [numbers(*shape, seed=seed).to(device, dtype).to(computed or dtype) for seed, shape in enumerate(shapes)]
    tensors, gradient = [tensor.requires_grad_() for tensor in samples[:3]], samples[3]
    result = attention(*tensors, **options)
    return [tensor.detach().cpu() for tensor in (result, *torch.autograd.grad(result, tensors, gradient))]


def _assert_near(found: Any, exact: Any, dtype: Any) -> None:
    """Assert that results differ by at most eight eps of an element type."""
    bound = 8 * torch.finfo(dtype).eps
    torch.testing.assert_close(found, exact, rtol=bound, atol=bound, check_dtype=False)


FORMS = list(product([{}, {"is_causal": True}, {"scale": 0.3}], [torch.float32, torch.float16, torch.bfloat16]))
"""Options and element types."""


@pytest.mark.parametrize(("options", "dtype"), sampled(FORMS, 2), ids=str)
def test_attention_and_its_gradient_call_one_function_each(
    altered_vendor: AlteredVendor, options: Any, dtype: Any
) -> None:
    found = _trained("diopi", dtype, options)
    _assert_near(found, _trained("cpu", dtype, options, computed=torch.float64), dtype)
    assert [name for name in altered_vendor.called if "Attention" in name] == FUNCTIONS
    assert not {"diopiBmm", "diopiSoftmax"} & set(altered_vendor.called)


def test_attention_reads_and_writes_heads_without_copies(vendor: AlteredVendor) -> None:
    packed = numbers(2, 5, 3, 12)
    found = []
    for device in ("cpu", "diopi"):
        packed_on_device = packed.to(device).requires_grad_()
        heads = [tensor.unflatten(-1, (3, 4)).transpose(1, 2) for tensor in packed_on_device.unbind(2)]
        result = attention(*heads).transpose(1, 2)
        assert result.is_contiguous()
        found.append([result.detach().cpu(), torch.autograd.grad(result.sin().sum(), packed_on_device)[0].cpu()])
    torch.testing.assert_close(found[1], found[0])
    assert "diopiMultiHeadAttention" in vendor.called


UNSUPPORTED = [
    (torch.float64, {}, 5),
    (torch.float32, {"is_causal": True}, 7),
    (torch.float32, {"attn_mask": torch.zeros(5, 5)}, 5),
]
"""The element type, options and the number of keys."""


@pytest.mark.parametrize(("dtype", "options", "keys"), sampled(UNSUPPORTED, 1, ids=("float64", "causal", "mask")))
def test_unsupported_attention_is_composed_of_products(
    altered_vendor: AlteredVendor, dtype: Any, options: Any, keys: int
) -> None:
    found = _trained("diopi", dtype, to_device(options), keys)
    torch.testing.assert_close(found, _trained("cpu", dtype, options, keys))
    assert not set(FUNCTIONS) & set(altered_vendor.called)


def test_attention_is_composed_if_the_vendor_lacks_it_or_the_program_requests_it(altered_vendor: AlteredVendor) -> None:
    packed_on_device = torch.float32, {}
    expected = _trained("cpu", *packed_on_device)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        torch.testing.assert_close(_trained("diopi", *packed_on_device), expected)
    altered_vendor.lacks = [FUNCTIONS[1]]
    torch.testing.assert_close(_trained("diopi", *packed_on_device), expected)
    assert not set(FUNCTIONS) & set(altered_vendor.called)
    assert diopi_torch.fallbacks() == {}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_attention_that_the_vendor_refuses_falls_back(vendor: AlteredVendor, dtype: Any) -> None:
    vendor.error_codes, options = dict.fromkeys(FUNCTIONS, Error.DtypeNotSupported), {"is_causal": True}
    found = _trained("diopi", dtype, options)
    _assert_near(found, _trained("cpu", dtype, options, computed=torch.float64), dtype)
    operator = "_scaled_dot_product_fused_attention_overrideable"
    assert diopi_torch.fallbacks() == {operator: 1, f"{operator}_backward": 1}


def test_attention_is_compared_by_the_budgets_of_the_function(altered_vendor: AlteredVendor) -> None:
    """In the function, rows precede heads."""
    with diopi_torch.autocompare(".*attention.*", quiet=True) as comparison:
        _trained("diopi", torch.float32, {"is_causal": True})
    assert [(counts["compared"], counts["wrong"]) for counts in comparison.counts.values()] == [(1, 0), (1, 0)]

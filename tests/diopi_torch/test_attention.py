"""Attention on the device: the paths of evaluation, and products with a softmax between them in all their forms."""

import copy
from typing import Any

import pytest
from torch_devices import Altered

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

import diopi_torch  # noqa: E402  # behind the check for PyTorch

attention = torch.nn.functional.scaled_dot_product_attention

PADDING = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
LATER = torch.ones(5, 5).triu(1).bool()


def numbers(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def there(named: dict[str, Any]) -> dict[str, Any]:
    return {name: value.to("diopi") if isinstance(value, torch.Tensor) else value for name, value in named.items()}


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize(
    "masks",
    [
        {},
        {"src_key_padding_mask": PADDING},
        {"src_mask": LATER, "is_causal": True},
        {"src_mask": LATER, "src_key_padding_mask": PADDING},
    ],
    ids=lambda masks: "+".join(masks) or "no mask",
)
def test_encoder_layers_in_evaluation(vendor: Altered, masks: Any, norm_first: bool) -> None:
    layer = torch.nn.TransformerEncoderLayer(16, 4, 8, norm_first=norm_first, batch_first=True).eval()
    x = numbers(2, 5, 16)
    with torch.inference_mode():
        found = copy.deepcopy(layer).to("diopi")(x.to("diopi"), **there(masks))
        torch.testing.assert_close(found.cpu(), layer(x, **masks))
    assert "diopiSoftmax" in vendor.called
    assert diopi_torch.fallbacks() == {}


@pytest.mark.parametrize("options", [{}, {"average_attn_weights": False}, {"need_weights": False}], ids=str)
def test_attention_in_evaluation_gives_the_weights_that_are_wanted(vendor: Altered, options: Any) -> None:
    layer = torch.nn.MultiheadAttention(16, 4, batch_first=True).eval()
    x, options = numbers(2, 5, 16), {**options, "key_padding_mask": PADDING}
    with torch.inference_mode():
        found = copy.deepcopy(layer).to("diopi")(*[x.to("diopi")] * 3, **there(options))
        torch.testing.assert_close(
            [one if one is None else one.cpu() for one in found], list(layer(x, x, x, **options))
        )
    assert diopi_torch.fallbacks() == {}


def test_encoders_pad_as_there_are_no_nested_tensors(vendor: Altered) -> None:
    layer = torch.nn.TransformerEncoderLayer(16, 4, 8, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 1, enable_nested_tensor=False).eval()
    x, masks = numbers(2, 5, 16), {"src_key_padding_mask": PADDING}
    with torch.inference_mode():
        on_device, unchecked = (torch.nn.TransformerEncoder(layer, 1, mask_check=check) for check in (True, False))
        found = on_device.eval().to("diopi")(x.to("diopi"), **there(masks))
        torch.testing.assert_close(found.cpu()[~PADDING], encoder(x, **masks)[~PADDING])
        with pytest.raises(NotImplementedError, match="no nested tensors, which _nested_tensor_from_mask"):
            unchecked.eval().to("diopi")(x.to("diopi"), **there(masks))


@pytest.mark.parametrize(
    ("queries", "keys", "options"),
    [
        ((2, 4, 5, 8), (2, 4, 7, 8), {}),
        ((2, 4, 5, 8), (2, 4, 5, 8), {"is_causal": True}),
        ((2, 4, 5, 8), (2, 2, 7, 8), {"enable_gqa": True, "scale": 0.3}),
        ((4, 5, 8), (4, 5, 8), {"attn_mask": ~LATER}),
        ((5, 8), (5, 8), {"attn_mask": numbers(5, 5), "dropout_p": 0.0}),
        ((2, 4, 5, 8), (2, 4, 5, 8), {"attn_mask": torch.zeros(2, 1, 5, 5).bool()}),
        ((2, 4, 5, 8), (2, 4, 0, 8), {}),
    ],
    ids=str,
)
def test_scaled_products(vendor: Altered, queries: Any, keys: Any, options: Any) -> None:
    found = []
    for device in ("cpu", "diopi"):
        tensors = [numbers(*shape).to(device).requires_grad_() for shape in (queries, keys, keys)]
        result = attention(*tensors, **(options if device == "cpu" else there(options)))
        gradients = torch.autograd.grad(result.square().sum(), tensors)
        found.append([one.detach().cpu() for one in (result, *gradients)])
    torch.testing.assert_close(found[1], found[0])
    assert diopi_torch.fallbacks() == {}

"""Original names, and PyTorch's default values of attributes."""

import re

import pytest

from diopi_proto.aten.table import ArgumentOf, rows
from diopi_proto.interface import prototypes
from diopi_proto.parameters import Size
from diopi_test.original.attributes import DEFAULTS, FUNCTION_DEFAULTS
from diopi_test.original.names import meanings, similar_functions


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("conv2d", "diopiConvolution2d"),
        ("conv_transpose2d", "diopiConvTranspose2d"),
        ("relu", "diopiRelu"),
        ("log_softmax", "diopiLogSoftmax"),
        ("cross_entropy", "diopiCrossEntropyLoss"),
        ("binary_cross_entropy_with_logits", "diopiBCEWithLogits"),
        ("native_layer_norm", "diopiLayerNorm"),
        ("masked_fill", "diopiMaskedFill"),
        ("clip_grad_norm_", "diopiClipGradNorm"),
        ("adamw", "diopiAdamW"),
        ("uniform", "diopiUniformInp"),
    ],
)
def test_an_original_name_means_a_function(name: str, function: str) -> None:
    assert meanings(name)[0].prototype.name == function


def test_an_unknown_name_has_suggestions() -> None:
    assert meanings("no_such_thing") == []
    assert "diopiSoftmax" in similar_functions("softmaxx")


def test_every_plain_function_is_found_by_its_name_in_snake_case() -> None:
    for name, prototype in prototypes().items():
        if prototype.base == name:
            snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.removeprefix("diopi")).lower()
            assert name in {meaning.prototype.name for meaning in meanings(snake)}, snake


def test_default_values_equal_those_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="what PyTorch takes is read off PyTorch")
    seen = set()
    for operator, row in rows().items():
        prototype = prototypes().get(row.function)
        name, _, overload = operator.partition(".")
        packet = getattr(torch.ops.aten, name, None)
        if prototype is None or packet is None:
            continue
        signature = {
            a.name: a for a in getattr(packet, overload or "default")._schema.arguments if a.has_default_value()
        }
        for parameter in prototype.arguments:
            source = row.sources.get(parameter.name, ArgumentOf(parameter.name))
            key = (prototype.base, parameter.name)
            known = key in FUNCTION_DEFAULTS or parameter.name in DEFAULTS
            if not isinstance(source, ArgumentOf) or source.name not in signature or not known or prototype.is_gradient:
                continue
            value, default = (
                signature[source.name].default_value,
                FUNCTION_DEFAULTS.get(key, DEFAULTS.get(parameter.name)),
            )
            if isinstance(value, list) and issubclass(parameter.annotation, Size):
                assert set(value) <= {default}, (operator, parameter.name)
            elif parameter.name == "reduction":
                assert ("none", "mean", "sum")[value] == default
            elif value is not None:
                assert value == default, (operator, parameter.name)
            seen.add(key)
    assert len(seen) >= 40

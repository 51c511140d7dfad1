"""Original names, and what PyTorch takes for attributes that are not given."""

import re

import pytest

from diopi_proto.aten.table import ArgumentOf, rows
from diopi_proto.interface import prototypes
from diopi_proto.parameters import Size
from diopi_test.original.attributes import USUAL, USUAL_OF
from diopi_test.original.names import meanings, near


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
def test_names(name: str, function: str) -> None:
    assert meanings(name)[0].prototype.name == function


def test_a_name_that_means_nothing_has_near_ones() -> None:
    assert meanings("no_such_thing") == []
    assert "diopiSoftmax" in near("softmaxx")


def test_every_plain_function_is_found_by_its_name_in_snake_case() -> None:
    for name, prototype in prototypes().items():
        if prototype.base == name:
            snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.removeprefix("diopi")).lower()
            assert name in {meaning.prototype.name for meaning in meanings(snake)}, snake


def test_what_is_usual_is_what_pytorch_takes() -> None:
    torch = pytest.importorskip("torch", reason="what PyTorch takes is read off PyTorch")
    seen = set()
    for operator, row in rows().items():
        prototype = prototypes().get(row.function)
        name, _, overload = operator.partition(".")
        packet = getattr(torch.ops.aten, name, None)
        if prototype is None or packet is None:
            continue
        given = {a.name: a for a in getattr(packet, overload or "default")._schema.arguments if a.has_default_value()}
        for parameter in prototype.arguments:
            source = row.sources.get(parameter.name, ArgumentOf(parameter.name))
            key = (prototype.base, parameter.name)
            known = key in USUAL_OF or parameter.name in USUAL
            if not isinstance(source, ArgumentOf) or source.name not in given or not known or prototype.is_gradient:
                continue
            value, ours = given[source.name].default_value, USUAL_OF.get(key, USUAL.get(parameter.name))
            if isinstance(value, list) and issubclass(parameter.annotation, Size):
                assert set(value) <= {ours}, (operator, parameter.name)
            elif parameter.name == "reduction":
                assert ("none", "mean", "sum")[value] == ours
            elif value is not None:
                assert value == ours, (operator, parameter.name)
            seen.add(key)
    assert len(seen) >= 40

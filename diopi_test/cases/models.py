"""Cases of calls that networks make (`diopi_test.models`): their shapes, types, strides and attributes, other values.

Values come from where the function's own cases draw them: the case that is most like the call lends its domains.
Indices, classes and lengths lie in the range they had in the network; what a forward function has saved for its
gradient is that function's result for the case's own arguments.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import is_complex, is_floating
from diopi_proto.families import load_families
from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, Reduction, RoundMode
from diopi_test.cases.domains import Domain, integer_values, normal
from diopi_test.cases.layouts import Layout, contiguous, strides
from diopi_test.cases.model import Case, CaseClass, ResultOf, ResultOverride, TensorSpec, registered_cases, tensor_specs
from diopi_test.cases.tensors import distinct_positions
from diopi_test.models.calls import TracedCall, TracedTensor
from diopi_test.models.files import load_shipped_trace, model_names

SAVED: Mapping[str, Mapping[str, ResultOf]] = {
    **{
        f"diopi{kind}Backward": {"indices": ResultOf(f"diopi{kind}WithIndices", "indices")}
        for kind in ("MaxPool2d", "MaxPool3d", "AdaptiveMaxPool2d")
    },
    "diopiBatchNormBackward": {
        "save_mean": ResultOf("diopiBatchNormStats", "mean"),
        "save_invstd": ResultOf("diopiBatchNormStats", "invstd"),
    },
    "diopiCTCLoss": {
        "log_probs": ResultOf("diopiLogSoftmax", argument_names={"input": "_logits"}, extra_arguments={"dim": 2})
    },
    "diopiCTCLossBackward": {
        "log_probs": ResultOf("diopiLogSoftmax", argument_names={"input": "_logits"}, extra_arguments={"dim": 2}),
        "neg_log_likelihood": ResultOf("diopiCTCLoss", "neg_log_likelihood"),
        "log_alpha": ResultOf("diopiCTCLoss", "log_alpha"),
    },
    "diopiCdistBackward": {"cdist": ResultOf("diopiCdist")},
    "diopiGroupNormBackward": {
        "mean": ResultOf("diopiGroupNorm", "save_mean", extra_arguments={"bias": None, "eps": 1e-5}),
        "rstd": ResultOf("diopiGroupNorm", "save_invstd", extra_arguments={"bias": None, "eps": 1e-5}),
    },
    "diopiLayerNormBackward": {
        "mean": ResultOf("diopiLayerNorm", "save_mean", extra_arguments={"eps": 1e-5}),
        "rstd": ResultOf("diopiLayerNorm", "save_invstd", extra_arguments={"eps": 1e-5}),
    },
    "diopiLogSoftmaxBackward": {"output": ResultOf("diopiLogSoftmax", argument_names={"input": "_input"})},
    "diopiNLLLossV2Backward": {"totalWeight": ResultOf("diopiNLLLossV2", "totalWeight")},
    "diopiRMSNormBackward": {"inv_rms": ResultOf("diopiRMSNorm", "inv_rms")},
    "diopiSoftmaxBackward": {"output": ResultOf("diopiSoftmax", argument_names={"input": "_input"})},
}
"""By gradient function, the arguments that the forward function has saved; drawn for them is what `renamed` names."""

PLACES = {"diopiScatter": "input", "diopiScatterScalar": "input"}
"""Functions that write at positions along an axis of a tensor, which must differ for the result to have one answer."""


_numbers, _usual = cache(integer_values), cache(normal)
"""Domains that are one object for equal bounds, which what is known of domains is kept by."""


def models_cases(prototype: Prototype, names: Iterable[str] | None = None) -> Sequence[Case]:
    """The cases of a function that these networks give, or all; equal calls of several networks are one case."""
    load_families("diopi_test.cases")
    donors = [case for case in registered_cases(prototype) if _may_lend(case)]
    return [_case(prototype, call, donors) for _, call in sorted(_calls(prototype.name, names).items())]


def model_keys(prototype: Prototype, names: Iterable[str] | None = None) -> Sequence[str]:
    """What the cases of a function depend on besides sources: the calls as text."""
    return [call.key for call in _calls(prototype.name, names).values()]


def models_of(function: str, label: str) -> Sequence[str]:
    """The networks that make the call of a case, sorted."""
    return [name for name in model_names() if label in _labelled(name).get(function, {})]


def labels_of(name: str) -> Mapping[str, Sequence[str]]:
    """The labels of the cases a network gives, by function."""
    return {function: list(calls) for function, calls in _labelled(name).items()}


def label_of(call: TracedCall) -> str:
    """The label of the case of a call: its element type and shape, and a digest of all that tells it from others."""
    digest = hashlib.sha256(call.key.encode()).hexdigest()[:10]
    shape = next((tensor.shape for tensor in _tensors(call)), ())
    return "-".join([_tested(call).name, "x".join(map(str, shape)) or "scalar", digest])


@cache
def _labelled(name: str) -> Mapping[str, Mapping[str, TracedCall]]:
    """The calls of a network by function and label."""
    found: dict[str, dict[str, TracedCall]] = {}
    for call in load_shipped_trace(name).calls:
        found.setdefault(call.function, {})[label_of(call)] = call
    return found


def _calls(function: str, names: Iterable[str] | None) -> Mapping[str, TracedCall]:
    """The calls of a function that these networks make, or all, by label."""
    chosen = model_names() if names is None else names
    return {label: call for name in chosen for label, call in _labelled(name).get(function, {}).items()}


def _tensors(call: TracedCall) -> Iterator[TracedTensor]:
    """The tensors of a call: of its arguments, then of its results."""
    for value in (*call.arguments.values(), *call.results.values()):
        yield from (one for one in (value if isinstance(value, list) else [value]) if isinstance(one, TracedTensor))


def _tested(call: TracedCall) -> Dtype:
    """The element type under test: of the first floating tensor, or of the first if there is none."""
    dtypes = [tensor.dtype for tensor in _tensors(call)]
    return next(
        (dtype for dtype in dtypes if is_floating(dtype) or is_complex(dtype)), next(iter(dtypes), Dtype.float32)
    )


def _may_lend(case: Case) -> bool:
    """Whether a case has usual values."""
    odd = ("special", "ends", "nan", "infin", "large", "huge", "tiny", "masked", "all-", "ties", "empty")
    usual = (CaseClass.basic, CaseClass.types, CaseClass.layout, CaseClass.optional)
    return (
        not case.exact
        and not case.non_discriminating
        and case.case_class in usual
        and not any(word in case.label for word in odd)
    )


def _case(prototype: Prototype, call: TracedCall, donors: Sequence[Case]) -> Case:
    dtype = _tested(call)
    donor = max(donors, key=lambda case: _likeness(case, call, dtype), default=None)
    drawn, saved = {}, {}
    for parameter in prototype.arguments:
        value = call.arguments[parameter.name]
        rule = SAVED.get(prototype.base, {}).get(parameter.name)
        if rule is not None and isinstance(value, TracedTensor):
            saved[parameter.name] = TensorSpec(value.shape, value.dtype, layout=_layout(value), compute=rule)
            for hidden in (name for name in rule.argument_names.values() if name.startswith("_")):
                drawn[hidden] = TensorSpec(value.shape, value.dtype, _usual())
        else:
            drawn[parameter.name] = _argument(prototype, parameter, call, donor)
    results = {name: _result(prototype, call, name, value, dtype) for name, value in call.results.items()}
    return Case(label_of(call), dtype, {**drawn, **saved}, results)


def _likeness(case: Case, call: TracedCall, dtype: Dtype) -> tuple[int, ...]:
    """How much a case is like a call: its attributes, what is left out, its element type, that it is a basic one."""
    names = [name for name in call.arguments if name in case.arguments]
    same = sum(_is_tensor(case.arguments[n]) == _is_tensor(call.arguments[n]) for n in names)
    equal = sum(_name_of(case.arguments[n]) == call.arguments[n] for n in names if not _is_tensor(call.arguments[n]))
    drawn = sum(spec.compute is None for n in names for spec in tensor_specs(case.arguments[n]))
    return same, equal, drawn, case.dtype is dtype, case.smoke


def _name_of(value: Any) -> Any:
    return value.name if isinstance(value, Reduction | RoundMode) else value


def _is_tensor(value: Any) -> bool:
    return isinstance(value, TracedTensor | TensorSpec | list)


def _argument(prototype: Prototype, parameter: Parameter, call: TracedCall, donor: Case | None) -> Any:
    """An argument of the case of a call, with the donor's domain if it is a tensor."""
    value = call.arguments[parameter.name]
    lent = [] if donor is None else tensor_specs(donor.arguments.get(parameter.name))
    domain = next((spec.domain for spec in lent if spec.compute is None), None)
    if isinstance(value, list):
        return [None if one is None else _spec(prototype, parameter, one, call, domain) for one in value]
    if issubclass(parameter.annotation, Reduction | RoundMode):
        return parameter.annotation[value]
    return _spec(prototype, parameter, value, call, domain) if isinstance(value, TracedTensor) else value


def _spec(
    prototype: Prototype, parameter: Parameter, tensor: TracedTensor, call: TracedCall, domain: Domain | None
) -> TensorSpec:
    layout = _layout(tensor)
    if tensor.dtype is Dtype.bool:
        chosen = _chosen(prototype, tensor, call) if parameter.name == "indices" else None
        return TensorSpec(tensor.shape, tensor.dtype, _numbers(0, 1) if chosen is None else _true(chosen), layout)
    written = PLACES.get(prototype.base)
    if parameter.name == "index" and written and tensor.shape:
        axis = call.arguments["dim"]
        below = call.arguments[written].shape[axis]
        return distinct_positions(*tensor.shape, below=below, axis=axis, dtype=tensor.dtype, layout=layout)
    if tensor.bounds is not None and _names_places(prototype, parameter):
        least, most = tensor.bounds
        return TensorSpec(tensor.shape, tensor.dtype, _numbers(max(least, min(0, most)), most), layout)
    return TensorSpec(tensor.shape, tensor.dtype, domain or _usual(), layout)


def _chosen(prototype: Prototype, mask: TracedTensor, call: TracedCall) -> int | None:
    """How many elements a mask chooses, where the shape of what is put there tells; None if any number will do."""
    if prototype.base != "diopiIndexPut":
        return None
    target, values = (call.arguments[name].shape for name in ("input", "values"))
    if len(values) != len(target) - len(mask.shape) + 1 or values[0] == 1:
        return None  # stretched over the places
    return int(values[0])


@cache
def _true(count: int) -> Domain:
    """So many true elements, anywhere."""

    def draw(rng: Generator, size: int, dtype: Dtype) -> NDArray[Any]:
        return rng.permutation(size) < count

    return draw


def _names_places(prototype: Prototype, parameter: Parameter) -> bool:
    """Whether a tensor of integers names positions, classes or lengths, and no numbers to compute with."""
    return (
        parameter.name in prototype.argument_dtypes
        or parameter.is_tensor_array
        or not any(is_floating(dtype) for dtype in prototype.dtypes_of(parameter.name))
    )


def _layout(tensor: TracedTensor) -> Layout:
    return contiguous if tensor.is_dense else strides(*tensor.strides)


def _result(prototype: Prototype, call: TracedCall, name: str, value: Any, dtype: Dtype) -> ResultOverride | None:
    """What the caller passes for a result; of an array of results all are alike."""
    if isinstance(value, list):
        return ResultOverride()
    if value is None:
        return None
    usual = prototype.infer(name, call.arguments, otherwise=dtype)
    own = None if usual is value.dtype else value.dtype
    return ResultOverride(own, _layout(value), value.shape)

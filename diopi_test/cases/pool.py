"""Pooling over the last one, two or three axes, and its gradients: the same settings for every rank."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf, nan
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import floating
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.case import Case, ResultOverride, TensorSpec, cases_for
from diopi_test.cases.computed import result_of
from diopi_test.domains import Domain, between, choice, distinct, normal, whole
from diopi_test.layouts import Layout, channels_last, contiguous, expanded, strided, transposed

single = Dtype.float32


def _with_one(value: float) -> Domain:
    """Values in the middle of which is this one."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        values = distinct(rng, count, dtype)
        values[count // 2] = value
        return values

    return draw


def _nothing_in_half(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """-inf in the first half of the elements, all different numbers in the other."""
    values = distinct(rng, count, dtype)
    values[: count // 2] = -inf
    return values


TIED = choice([3.0, *[2.0] * 4, *[1.0] * 15])
"""The more elements a window has, the greater its maximum; mostly several elements have it."""


@dataclass(frozen=True)
class Setting:
    """One way to pool, for each of several element types; of a list of three, the last `rank` entries count.

    Attributes:
        label: the part of the case's label after the element type.
        size: the spatial sizes of the input.
        kernel, stride, padding, dilation, ceil_mode, include_pad, divisor: as the functions have them.
        output: the result's spatial sizes, of adaptive pooling.
        leading: the other axes of the input.
        domain, gradient: where input and grad_output are drawn from.
        layout: where all large tensors lie, but results if it is for arguments only.
        indices: the element type of positions.
        dtypes, smoke, exact: as in `Case`, one case an element type.
    """

    label: str
    size: tuple[int, ...]
    kernel: tuple[int, ...] = (2, 2, 2)
    stride: tuple[int, ...] = ()
    padding: tuple[int, ...] = (0, 0, 0)
    dilation: tuple[int, ...] = (1, 1, 1)
    ceil_mode: bool = False
    include_pad: bool = True
    divisor: int | None = None
    output: tuple[int, ...] = (2, 2, 2)
    leading: tuple[int, ...] = (2, 2)
    domain: Domain = distinct
    gradient: Domain = field(default_factory=normal)
    layout: Layout = contiguous
    indices: Dtype = Dtype.int64
    dtypes: Sequence[Dtype] = (single,)
    smoke: bool = False
    exact: bool = False

    @property
    def result(self) -> Layout:
        """Where results lie."""
        return contiguous if self.layout is expanded else self.layout

    def attributes(self, rank: int) -> dict[str, Any]:
        """Every attribute a pooling function may have."""
        return {
            "kernel_size": self.kernel[-rank:],
            "ksize": self.kernel[-rank:],
            "stride": self.stride[-rank:],
            "padding": self.padding[-rank:],
            "dilation": self.dilation[-rank:],
            "ceil_mode": self.ceil_mode,
            "count_include_pad": self.include_pad,
            "exclusive": not self.include_pad,
            "divisor_override": self.divisor,
            "output_size": self.output[-rank:],
        }


def _rank(prototype: Prototype) -> int:
    found = re.search(r"([123])d", prototype.name)
    assert found
    return int(found[1])


def pool_case(prototype: Prototype, kind: str, setting: Setting, dtype: Dtype, **more: Any) -> Case:
    """A case of a function that pools as `diopi<kind><rank>d` does, or of its gradient; `more` are other arguments."""
    rank = _rank(prototype)
    shape = (*setting.leading, *setting.size[-rank:])
    attributes = setting.attributes(rank)
    function = f"diopi{kind}{rank}d"
    result = result_of(function, **attributes)({"input": np.zeros(shape)}).shape
    places = result_of(f"{function}WithIndices", "indices", **attributes) if "Max" in kind else None
    arguments = {
        "input": TensorSpec(shape, dtype, setting.domain, setting.layout),
        **attributes,
        "indices": TensorSpec(result, setting.indices, layout=setting.layout, compute=places) if places else None,
        "grad_output": TensorSpec(result, dtype, setting.gradient, setting.layout),
        **more,
    }
    known = {p.name for p in prototype.arguments}
    own_type = {"indices": setting.indices}
    return Case(
        f"{dtype.name}-{setting.label}",
        dtype,
        {name: value for name, value in arguments.items() if name in known or name.startswith("_")},
        {p.name: ResultOverride(own_type.get(p.name), setting.result) for p in prototype.results},
        smoke=setting.smoke,
        exact=setting.exact,
    )


def _cases(prototype: Prototype, kind: str, settings: Sequence[Setting]) -> Iterator[Case]:
    return (pool_case(prototype, kind, setting, dtype) for setting in settings for dtype in setting.dtypes)


PLAIN = Setting("plain", (3, 5, 6), (2, 3, 2), (1, 2, 3), leading=(1, 3), dtypes=floating, smoke=True)
PADDED = Setting("padded", (4, 5, 6), (2, 3, 5), (2, 1, 3), (1, 1, 2), dtypes=floating)
CEIL = Setting("ceil", (5, 6, 8), (2, 3, 3), (2, 2, 2), ceil_mode=True, dtypes=floating)
CEIL_PADDED = Setting("ceil-padded", (4, 6, 6), (3, 3, 3), (2, 2, 2), (1, 1, 1), ceil_mode=True)

LAYOUTS = (
    Setting("unbatched", (4, 5, 6), (2, 3, 2), leading=(3,), output=(3, 2, 4)),
    Setting("no-samples", (4, 5, 6), (2, 3, 2), leading=(0, 3)),
    Setting("one-channel", (3, 4, 7), (2, 2, 3), leading=(3, 1)),
    Setting(
        "channels-last",
        (4, 5, 6),
        (2, 3, 2),
        leading=(2, 3),
        output=(3, 2, 4),
        layout=channels_last,
        dtypes=(single, Dtype.float16),
    ),
    Setting("many-channels-last", (2, 3, 5), (2, 2, 2), leading=(1, 37), layout=channels_last, domain=normal()),
    Setting("strided", (3, 4, 6), (2, 2, 3), layout=strided),
    Setting("transposed", (3, 4, 5), (2, 3, 2), layout=transposed),
    Setting("expanded", (3, 4, 5), (2, 3, 2), leading=(3, 5), layout=expanded),
)
"""For every kind of pooling."""

SLIDING = (
    PLAIN,
    PADDED,
    CEIL,
    CEIL_PADDED,
    replace(CEIL, label="floor", ceil_mode=False, dtypes=(single,)),
    Setting("ceil-dropped", (4, 4, 4), (2, 2, 2), (3, 3, 3), (1, 1, 1), ceil_mode=True),
    Setting("ceil-touching", (3, 5, 8), (2, 3, 3), (4, 3, 3), (1, 1, 1), ceil_mode=True),
    Setting("ceil-fitting", (4, 6, 6), (2, 2, 2), (2, 2, 2), ceil_mode=True),
    Setting("default-stride", (4, 6, 7), (2, 3, 3)),
    Setting("gaps", (5, 7, 8), (2, 2, 2), (3, 4, 3)),
    Setting("overlapping", (3, 5, 6), (2, 3, 4), (1, 1, 1), dtypes=(single, Dtype.bfloat16)),
    Setting("whole", (3, 4, 5), (3, 4, 5), leading=(3, 5)),
    Setting("one-element-windows", (3, 2, 4), (1, 1, 1)),
    Setting("wide", (2, 3, 131), (1, 2, 3), (1, 1, 2), (0, 1, 1), leading=(1, 2)),
    *LAYOUTS,
)

DILATED = Setting("dilated", (5, 6, 8), (2, 3, 3), (1, 2, 1), (0, 0, 0), (2, 1, 3), dtypes=floating)

EDGES = (
    DILATED,
    replace(DILATED, label="dilated-padded", padding=(1, 1, 1), dtypes=(single,)),
    replace(DILATED, label="dilated-ceil", padding=(1, 1, 1), stride=(2, 3, 3), ceil_mode=True, dtypes=(single,)),
    replace(PADDED, label="negative-padded", domain=between(-9, -1)),
    replace(CEIL_PADDED, label="negative-ceil-padded", domain=between(-9, -1)),
    replace(PADDED, label="minus-infinity-padded", domain=_nothing_in_half, dtypes=(single,)),
    replace(PADDED, label="some-infinities", domain=choice([*[-inf] * 12, -2.0, 1.5, 1.0, inf]), dtypes=(single,)),
    replace(PADDED, label="nan", domain=_with_one(nan)),
    replace(PADDED, label="ties", domain=TIED, dtypes=(single, Dtype.float16)),
    replace(PADDED, label="indices32", indices=Dtype.int32, dtypes=(single,)),
)
"""For maxima by sliding windows only."""

EXACT_SUMS = Setting(
    "exact",
    (2, 4, 32),
    (2, 2, 16),
    (1, 2, 8),
    domain=whole(129, 255),
    gradient=whole(129, 255),
    output=(1, 2, 2),
    dtypes=floating,
    exact=True,
)
"""Sums that float32 holds exactly and half precision does not, divided by powers of two."""

NEARLY_TOO_LARGE = between(50000, 65000)
"""Sums of these are beyond the range of float16, their means are not."""

MEANS = (
    replace(PADDED, label="excluding-padding", include_pad=False),
    replace(CEIL_PADDED, label="ceil-excluding-padding", include_pad=False),
    replace(CEIL, label="ceil-excluding", include_pad=False, dtypes=(single,)),
    replace(PADDED, label="nan", domain=_with_one(nan), dtypes=(single,)),
    replace(PADDED, label="infinity", domain=_with_one(inf), dtypes=(single,)),
    replace(PADDED, label="large", domain=NEARLY_TOO_LARGE, include_pad=False, dtypes=(Dtype.float16,)),
    EXACT_SUMS,
)

DIVISORS = (
    replace(PADDED, label="divided-by-3", divisor=3),
    replace(PADDED, label="divided-by-minus-2", divisor=-2, include_pad=False, dtypes=(single,)),
    replace(CEIL_PADDED, label="ceil-divided-by-1", divisor=1),
)

ADAPTIVE = (
    Setting("plain", (3, 5, 4), output=(2, 3, 3), leading=(1, 2), dtypes=floating, smoke=True),
    Setting("divisible", (4, 6, 8), output=(2, 3, 4)),
    Setting("uneven", (3, 7, 11), output=(2, 5, 4), dtypes=floating),
    Setting("to-one", (3, 4, 5), output=(1, 1, 1), leading=(3, 5), dtypes=(single, Dtype.bfloat16)),
    Setting("same-size", (3, 2, 4), output=(3, 2, 4)),
    Setting("enlarging", (3, 2, 4), output=(5, 3, 7)),
    Setting("one-axis-whole", (3, 4, 6), output=(3, 1, 4)),
    Setting("wide", (2, 3, 131), output=(1, 2, 67), leading=(1, 2)),
    Setting("no-result", (3, 4, 5), output=(2, 0, 0)),
    Setting("negative", (5, 7, 5), output=(3, 4, 2), domain=between(-9, -1)),
    Setting("nan", (5, 7, 6), output=(3, 4, 4), domain=_with_one(nan)),
    *(replace(setting, output=(2, 3, 4)) for setting in LAYOUTS),
)

ADAPTIVE_MAXIMA = (
    Setting("ties", (5, 7, 6), output=(3, 4, 4), domain=TIED, dtypes=(single, Dtype.float16)),
    Setting("minus-infinity", (3, 4, 5), domain=_nothing_in_half),
    Setting("indices32", (5, 7, 6), output=(3, 4, 4), indices=Dtype.int32),
)

EXACT_GRADIENTS = Setting(
    "exact",
    (3, 4, 6),
    (2, 2, 4),
    (1, 1, 1),
    domain=choice([1.0, 2.0]),
    gradient=whole(513, 1023),
    output=(4, 5, 8),
    dtypes=floating,
    exact=True,
)
"""Many windows have one winner; float32 holds the sums of their gradients exactly, half precision does not."""


def _names(*patterns: str) -> tuple[str, ...]:
    return tuple(pattern.replace("*", str(rank)) for pattern in patterns for rank in (1, 2, 3))


@cases_for(*_names("diopiMaxPool*d", "diopiMaxPool*dWithIndices"))
def max_pool(prototype: Prototype) -> Iterator[Case]:
    return _cases(prototype, "MaxPool", (*SLIDING, *EDGES))


@cases_for(*_names("diopiMaxPool*dBackward"))
def max_pool_backward(prototype: Prototype) -> Iterator[Case]:
    yield from _cases(prototype, "MaxPool", (*SLIDING, *EDGES, EXACT_GRADIENTS))
    yield _of_other_values(prototype, "MaxPool", PADDED)


@cases_for(*_names("diopiAdaptiveMaxPool*d", "diopiAdaptiveMaxPool*dWithIndices"))
def adaptive_max_pool(prototype: Prototype) -> Iterator[Case]:
    return _cases(prototype, "AdaptiveMaxPool", (*ADAPTIVE, *ADAPTIVE_MAXIMA))


@cases_for(*_names("diopiAdaptiveMaxPool*dBackward"))
def adaptive_max_pool_backward(prototype: Prototype) -> Iterator[Case]:
    yield from _cases(prototype, "AdaptiveMaxPool", (*ADAPTIVE, *ADAPTIVE_MAXIMA, EXACT_GRADIENTS))
    yield _of_other_values(prototype, "AdaptiveMaxPool", ADAPTIVE[0])


def _of_other_values(prototype: Prototype, kind: str, setting: Setting) -> Case:
    """Indices that are not those of the input's values: of the input only the shape counts."""
    shown = replace(setting, label="other-values", domain=choice([nan]), smoke=False)
    case = pool_case(prototype, kind, shown, single)
    rank = _rank(prototype)
    indices = result_of(f"diopi{kind}{rank}dWithIndices", "indices", {"input": "_drawn"}, **setting.attributes(rank))
    arguments = dict(case.arguments)
    drawn = {"_drawn": replace(arguments.pop("input"), domain=distinct), "input": case.arguments["input"]}
    return replace(case, arguments={**drawn, **arguments, "indices": replace(arguments["indices"], compute=indices)})


@cases_for(*_names("diopiAvgPool*d", "diopiAvgPool*dBackward"))
def avg_pool(prototype: Prototype) -> Iterator[Case]:
    has_divisor = any(p.name == "divisor_override" for p in prototype.arguments)
    return _cases(prototype, "AvgPool", (*SLIDING, *MEANS, *(DIVISORS if has_divisor else ())))


@cases_for(*_names("diopiAdaptiveAvgPool*d", "diopiAdaptiveAvgPool*dBackward"))
def adaptive_avg_pool(prototype: Prototype) -> Iterator[Case]:
    large = replace(ADAPTIVE[0], label="large", domain=NEARLY_TOO_LARGE, dtypes=(Dtype.float16,), smoke=False)
    return _cases(prototype, "AdaptiveAvgPool", (*ADAPTIVE, large, EXACT_SUMS))


CHOICES = {
    ("max", False): ("MaxPool", (*SLIDING[:6], *EDGES[:4], *LAYOUTS[:4])),
    ("avg", False): ("AvgPool", (*SLIDING[:6], *MEANS, *LAYOUTS[:4])),
    ("max", True): ("AdaptiveMaxPool", (*ADAPTIVE[:6], *ADAPTIVE_MAXIMA, *LAYOUTS[:4])),
    ("avg", True): ("AdaptiveAvgPool", (*ADAPTIVE[:6], *LAYOUTS[:4])),
}
"""The kind of pooling for every mode and `adaptive`, and its settings."""


@cases_for(*_names("diopiPool*d", "diopiPool*dBackward"))
def pool(prototype: Prototype) -> Iterator[Case]:
    for (mode, adaptive), (kind, settings) in CHOICES.items():
        for setting in (*settings, *_with_ignored_attributes(mode, adaptive)):
            for dtype in setting.dtypes if setting.smoke or setting.exact else (single,):
                smoke = setting.smoke and (mode == "max" or dtype is single)
                labelled = replace(setting, label=f"{kind}-{setting.label}", smoke=smoke)
                yield pool_case(prototype, kind, labelled, dtype, mode=mode, adaptive=adaptive)
    unread = TensorSpec((1,), Dtype.int64, choice([-7]))
    labelled = replace(PADDED, label="AvgPool-indices-ignored")
    yield pool_case(prototype, "AvgPool", labelled, single, mode="avg", adaptive=False, indices=unread)


def _with_ignored_attributes(mode: str, adaptive: bool) -> Iterator[Setting]:
    """Settings of which some attributes don't count."""
    if adaptive:
        zeros = (0, 0, 0)
        yield replace(ADAPTIVE[2], label="zeros", kernel=zeros, stride=zeros, padding=zeros, dilation=zeros)
    elif mode == "avg":
        yield replace(PADDED, label="dilation-ignored", dilation=(2, 2, 2), output=(1, 1, 1))

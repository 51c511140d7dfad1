"""Automatic mixed precision: unscaling gradients, and the scale that follows what they show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diopi_proto.dtypes import floating
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.case import Case, TensorSpec, cases_for
from diopi_test.domains import Domain, choice, magnitudes, normal
from diopi_test.layouts import Layout, contiguous, strided, transposed

F16, BF16, F32, F64 = floating


def _one(value: float, shape: tuple[int, ...], dtype: Dtype = F32) -> TensorSpec:
    """A tensor of one element."""
    return TensorSpec(shape, dtype, choice([value]))


def _last_is(value: float) -> Domain:
    """Normal numbers, the last of them `value`."""

    def draw(rng: Any, count: int, dtype: Dtype) -> Any:
        return np.where(np.arange(count) == count - 1, value, rng.normal(0, 3, count))

    return draw


ORDINARY = normal(3)


@dataclass(frozen=True)
class Unscaling:
    """A case of unscaling: the gradients' shapes and domains, one after the other, and the state before."""

    label: str
    inv_scale: float = 0.125
    found_inf: float = 0.0
    shapes: Sequence[tuple[int, ...]] = ((3, 4), (5,), ())
    domains: Sequence[Domain] = (ORDINARY, ORDINARY, ORDINARY)
    layout: Layout = contiguous
    others: Dtype | None = None
    state: tuple[int, ...] = (1,)
    dtypes: Sequence[Dtype] = (F32,)
    smoke: bool = False
    weak: str = ""

    def case(self, dtype: Dtype) -> Case:
        """The case for an element type, which is that of the first gradient at least."""
        types = [dtype, *[self.others or dtype] * len(self.shapes)]
        arguments = {
            "scaled_grads": [
                TensorSpec(shape, kind, domain, self.layout)
                for shape, kind, domain in zip(self.shapes, types, self.domains, strict=False)
            ],
            "found_inf": _one(self.found_inf, self.state),
            "inv_scale": _one(self.inv_scale, self.state),
        }
        return Case(f"{dtype.name}-{self.label}", dtype, arguments, smoke=self.smoke, weak=self.weak)


FOUND = "what is not finite is found whatever was found before"

UNSCALINGS = (
    Unscaling("finite", dtypes=floating, smoke=True),
    Unscaling("finite-tenth", 0.1, state=(), dtypes=floating),
    Unscaling("infinite", domains=(ORDINARY, _last_is(np.inf), ORDINARY), dtypes=floating, smoke=True, weak=FOUND),
    Unscaling("negative-infinite", domains=(_last_is(-np.inf), ORDINARY, ORDINARY), dtypes=(F16, F32), weak=FOUND),
    Unscaling("nan-in-last", domains=(ORDINARY, ORDINARY, _last_is(np.nan)), dtypes=(BF16, F32), state=(), weak=FOUND),
    Unscaling("found-before", found_inf=1.0, dtypes=(F16, F32)),
    Unscaling("found-twice", 0.25, 1.0, domains=(_last_is(np.nan), ORDINARY, ORDINARY), weak=FOUND),
    Unscaling("overflowing-result", 4.0, domains=(_last_is(6e4), ORDINARY, ORDINARY), dtypes=(F16,)),
    Unscaling("overflowing-result", 2.0**9, domains=(_last_is(2.0**120), ORDINARY, ORDINARY), dtypes=(BF16, F32)),
    Unscaling("tiny-scale", 2.0**-16, domains=(magnitudes(4, 14),) * 3, dtypes=floating),
    Unscaling("strided", layout=strided, shapes=((3, 4), (2, 3, 2)), dtypes=floating),
    Unscaling("transposed", 0.3, layout=transposed, shapes=((3, 4), (2, 3, 2)), dtypes=(F32, BF16)),
    Unscaling("mixed", 0.3, others=F16),
    Unscaling("mixed-wide", 0.3, others=F64, dtypes=(BF16, F32)),
    Unscaling("one", shapes=((4, 5),), dtypes=(F16, F32)),
    Unscaling("with-empty", shapes=((2, 3), (0, 3), (4,))),
    Unscaling("no-gradients", shapes=()),
    Unscaling("no-gradients-found-before", found_inf=1.0, shapes=(), state=()),
    Unscaling("long", 0.7, shapes=((1031,), (7,)), dtypes=(F16, F32)),
    Unscaling("very-many", 0.3, shapes=((3,),) * 150, domains=(ORDINARY,) * 150),
    Unscaling(
        "infinite-in-last-of-many", shapes=((3,),) * 150, domains=(*[ORDINARY] * 149, _last_is(np.inf)), weak=FOUND
    ),
    Unscaling("infinite-at-the-end", shapes=((7,), (1031,)), domains=(ORDINARY, _last_is(np.inf)), weak=FOUND),
)


@cases_for("diopiAmpForeachNonFiniteCheckAndUnscaleInp")
def unscale(prototype: Prototype) -> Iterator[Case]:
    return (setting.case(dtype) for setting in UNSCALINGS for dtype in setting.dtypes)


@dataclass(frozen=True)
class Update:
    """A case of the scale's update."""

    label: str
    scale: float = 1024.0
    tracker: int = 3
    found_inf: float = 0.0
    growth: float = 2.0
    backoff: float = 0.5
    interval: int = 10
    shape: tuple[int, ...] = (1,)
    smoke: bool = False
    weak: str = ""

    def case(self, dtype: Dtype) -> Case:
        """The case for an element type."""
        arguments = {
            "current_scale": _one(self.scale, self.shape, dtype),
            "growth_tracker": _one(self.tracker, self.shape, Dtype.int32),
            "found_inf": _one(self.found_inf, self.shape, dtype),
            "scale_growth_factor": self.growth,
            "scale_backoff_factor": self.backoff,
            "growth_interval": self.interval,
        }
        return Case(f"{dtype.name}-{self.label}", dtype, arguments, smoke=self.smoke, weak=self.weak)


RESET = "an infinity sets the tracker back, wherever it is"

UPDATES = (
    Update("waits", smoke=True),
    Update("grows", tracker=9, smoke=True),
    Update("backs-off", found_inf=1.0, smoke=True, weak=RESET),
    Update("almost-due", tracker=8),
    Update("overdue", tracker=10),
    Update("backs-off-when-due", tracker=9, found_inf=1.0, weak=RESET),
    Update("grows-every-step", tracker=0, interval=1, growth=1.5),
    Update("starts", tracker=0, shape=()),
    Update("odd-growth", scale=1000.5, tracker=4, interval=5, growth=1.7, shape=()),
    Update("odd-backoff", scale=1000.5, found_inf=1.0, backoff=0.3, shape=()),
    Update("too-large-to-grow", scale=2.0**127, tracker=9),
    Update("as-large-as-can-be", scale=2.0**126, tracker=9),
    Update("fraction", scale=0.37, tracker=1999, interval=2000),
)


@cases_for("diopiAmpUpdateScaleInp")
def update_scale(prototype: Prototype) -> Iterator[Case]:
    return (setting.case(dtype) for setting in UPDATES for dtype in prototype.dtypes)

"""Functions that make, move and copy whole tensors: joins, splits, layout, padding, construction and conversion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import category, complexes, every, floating, half, integer
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, MemoryFormat
from diopi_test.case import Case, ResultOverride, TensorSpec, cases_for
from diopi_test.cases.variants import WIDTHS, Variant, variant_cases
from diopi_test.domains import Domain, anything, between, choice, integer_range, normal, special, whole, with_zeros
from diopi_test.formats import format_of, is_inexact
from diopi_test.layouts import Layout, channels_last, contiguous, expanded, strided, transposed
from lib_rt.dtypes import to_numpy

nan, inf = float("nan"), float("inf")


TRIANGLES = [
    Variant("square", (4, 4), {"diagonal": 0}, everywhere=True),
    Variant("strided", (2, 3, 4), {"diagonal": 1}, strided, strided, everywhere=True),
    Variant("wide", (3, 6), {"diagonal": -1}, transposed, transposed),
    Variant("tall", (6, 3), {"diagonal": -2}),
    Variant("tall-above", (6, 3), {"diagonal": 1}),
    Variant("wide-above", (3, 6), {"diagonal": 3}),
    Variant("batch", (2, 2, 3, 5), {"diagonal": -1}),
    Variant("far-below", (3, 4), {"diagonal": -9}),
    Variant("far-above", (3, 4), {"diagonal": 9}),
    Variant("far-below-int32", (3, 4), {"diagonal": -(2**33) - 1}),
    Variant("far-above-int32", (3, 4), {"diagonal": 2**33 + 1}),
    Variant("one-column", (5, 1), {"diagonal": -2}),
    Variant("one-row", (1, 5), {"diagonal": 2}),
    Variant("empty", (0, 3, 3), {"diagonal": 0}),
    Variant("special", (5, 19), {"diagonal": 4}, domain=special),
    Variant("rank-5", (2, 1, 2, 4, 3), {"diagonal": -1}, strided),
    Variant("long", (33, 35), {"diagonal": 5}, widths=True),
]

TENSORS = {
    "diopiTranspose": [
        Variant("matrix", (3, 5), {"dim0": 0, "dim1": 1}, everywhere=True),
        Variant("strided", (2, 3, 2), {"dim0": -1, "dim1": 0}, strided, strided, everywhere=True),
        Variant("middle", (2, 3, 4, 5), {"dim0": 1, "dim1": -2}),
        Variant("outer", (2, 3, 4, 5), {"dim0": 3, "dim1": 0}, transposed, transposed),
        Variant("rank-5", (2, 3, 1, 2, 4), {"dim0": -4, "dim1": 4}),
        Variant("rank-6", (2, 3, 2, 1, 4, 2), {"dim0": 1, "dim1": -2}, strided),
        Variant("itself", (3, 4), {"dim0": 1, "dim1": -1}),
        Variant("scalar", (), {"dim0": 0, "dim1": -1}),
        Variant("empty", (0, 3), {"dim0": 0, "dim1": 1}),
        Variant("special", (19, 2), {"dim0": 0, "dim1": 1}, domain=special),
        Variant("tiles", (70, 65), {"dim0": 1, "dim1": 0}, widths=True),
        Variant("cube", (4, 4, 4), {"dim0": 0, "dim1": 2}),
        Variant("long", (8, 131), {"dim0": 0, "dim1": 1}, layout=expanded, widths=True),
    ],
    "diopiPermute": [
        Variant("cycle", (2, 3, 4), {"dims": (1, 2, 0)}, everywhere=True),
        Variant("strided", (2, 3, 2), {"dims": (-1, 0, -2)}, strided, strided, everywhere=True),
        Variant("other-cycle", (2, 3, 4), {"dims": (2, 0, 1)}, transposed),
        Variant("rank-4", (2, 3, 4, 5), {"dims": (3, 1, 0, 2)}, channels_last, channels_last),
        Variant("rank-5", (2, 1, 3, 2, 4), {"dims": (4, -3, 0, -2, 1)}, contiguous, transposed),
        Variant("rank-6", (2, 3, 2, 3, 4, 2), {"dims": (0, 3, 1, 4, 2, 5)}, widths=True),
        Variant("rank-7", (2, 1, 3, 2, 2, 3, 2), {"dims": (5, 0, 3, 1, 6, 4, 2)}, strided),
        Variant("identity", (4, 3), {"dims": (0, 1)}),
        Variant("vector", (7,), {"dims": (-1,)}),
        Variant("scalar", (), {"dims": ()}),
        Variant("empty", (2, 0, 3), {"dims": (2, 0, 1)}),
        Variant("special", (19, 2), {"dims": (1, 0)}, domain=special),
        Variant("cube", (4, 4, 4), {"dims": (1, 2, 0)}),
        Variant("long", (7, 13, 12), {"dims": (2, 0, 1)}, widths=True),
    ],
    "diopiExpand": [
        Variant("columns", (9, 1), target=(9, 4), everywhere=True),
        Variant("strided", (1, 3), layout=strided, result=strided, target=(2, 2, 3), everywhere=True),
        Variant("leading", (3,), target=(2, 4, 3)),
        Variant("middle", (2, 1, 3), layout=transposed, result=transposed, target=(2, 4, 3)),
        Variant("both-ends", (1, 3, 1), target=(2, 3, 4)),
        Variant("scalar", (), target=(2, 3), domain=normal()),
        Variant("rank-5", (3, 1, 2), target=(2, 1, 3, 4, 2)),
        Variant("rank-7", (1, 3, 1, 2, 1, 2), target=(2, 3, 3, 2, 2, 3, 2)),
        Variant("scalar-to-scalar", (), target=()),
        Variant("same-shape", (4, 3), target=(4, 3)),
        Variant("to-none", (1, 3), target=(0, 3)),
        Variant("special", (19, 1), target=(19, 3), domain=special),
        Variant("long", (1, 37), target=(33, 37), widths=True),
    ],
    "diopiFlip": [
        Variant("rows", (4, 3), {"dims": (0,)}, everywhere=True),
        Variant("strided", (2, 3, 2), {"dims": (-1, 0)}, strided, strided, everywhere=True),
        Variant("columns", (4, 5), {"dims": (-1,)}, transposed, transposed),
        Variant("every-axis", (3, 2, 4), {"dims": (0, 2, 1)}),
        Variant("middle-two", (2, 3, 4, 2), {"dims": (1, -2)}, channels_last),
        Variant("rank-5", (2, 3, 1, 4, 2), {"dims": (-4, 0, 3)}),
        Variant("cube", (4, 4, 4), {"dims": (-2,)}),
        Variant("none", (4, 3), {"dims": ()}),
        Variant("scalar", (), {"dims": ()}),
        Variant("empty", (0, 3), {"dims": (0, 1)}),
        Variant("special", (19,), {"dims": (0,)}, domain=special),
        Variant("long", (1031,), {"dims": (-1,)}, widths=True),
    ],
    "diopiRoll": [
        Variant("rows", (5, 3), {"shifts": (2,), "dims": (0,)}, everywhere=True),
        Variant("strided", (2, 4, 2), {"shifts": (-1, 3), "dims": (0, -2)}, strided, strided, everywhere=True),
        Variant("flat", (3, 4), {"shifts": (5,), "dims": ()}),
        Variant("flat-back", (3, 4), {"shifts": (-7,), "dims": ()}, transposed),
        Variant("several", (3, 4, 5), {"shifts": (1, -2, 4), "dims": (2, 0, 1)}, transposed, transposed),
        Variant("same-axis-twice", (3, 5), {"shifts": (1, 2, 1), "dims": (1, 0, -1)}),
        Variant("once-around", (4, 3), {"shifts": (4, 0), "dims": (0, 1)}),
        Variant("further-than-around", (5, 3), {"shifts": (13, -8), "dims": (0, 1)}),
        Variant("beyond-int32", (7, 3), {"shifts": (2**33 + 3,), "dims": (0,)}),
        Variant("rank-5", (2, 3, 1, 4, 2), {"shifts": (1, -3), "dims": (-4, 3)}),
        Variant("cube", (4, 4, 4), {"shifts": (1, 2), "dims": (1, 0)}),
        Variant("scalar", (), {"shifts": (3,), "dims": ()}),
        Variant("empty", (0, 3), {"shifts": (1,), "dims": (0,)}),
        Variant("special", (19,), {"shifts": (7,), "dims": (0,)}, domain=special),
        Variant("long", (1031,), {"shifts": (-300,), "dims": (-1,)}, widths=True),
    ],
    "diopiRepeat": [
        Variant("matrix", (3, 4), {"repeats_size": (3, 2)}, everywhere=True),
        Variant("strided", (3, 3), {"repeats_size": (2, 1, 3)}, strided, strided, everywhere=True),
        Variant("columns", (3, 2), {"repeats_size": (1, 4)}, transposed, transposed),
        Variant("leading", (3,), {"repeats_size": (2, 4, 1)}),
        Variant("once", (2, 3), {"repeats_size": (1, 1)}),
        Variant("rank-5", (2, 1, 3), {"repeats_size": (2, 1, 2, 3, 1)}),
        Variant("scalar", (), {"repeats_size": (2, 3)}, domain=normal()),
        Variant("scalar-to-scalar", (), {"repeats_size": ()}),
        Variant("never", (2, 3), {"repeats_size": (2, 0)}),
        Variant("empty", (0, 3), {"repeats_size": (2, 2)}),
        Variant("special", (19,), {"repeats_size": (2,)}, domain=special),
        Variant("long", (5, 9), {"repeats_size": (7, 5)}, widths=True),
    ],
    "diopiUnfold": [
        Variant("overlapping", (7, 2), {"dim": 0, "size": 3, "step": 2}, everywhere=True),
        Variant("strided", (2, 5), {"dim": -1, "size": 2, "step": 1}, strided, strided, everywhere=True),
        Variant("middle", (2, 6, 3), {"dim": 1, "size": 4, "step": 1}, transposed, transposed),
        Variant("apart", (11, 2), {"dim": -2, "size": 2, "step": 4}),
        Variant("remainder", (2, 8), {"dim": 1, "size": 3, "step": 3}),
        Variant("one-window", (3, 4), {"dim": 1, "size": 4, "step": 5}),
        Variant("single-elements", (5, 2), {"dim": 0, "size": 1, "step": 2}),
        Variant("no-elements", (3, 2), {"dim": 0, "size": 0, "step": 2}),
        Variant("vector", (9,), {"dim": 0, "size": 4, "step": 3}),
        Variant("rank-5", (2, 1, 7, 2, 3), {"dim": -3, "size": 3, "step": 2}),
        Variant("cube", (6, 6, 6), {"dim": 1, "size": 3, "step": 2}),
        Variant("scalar", (), {"dim": 0, "size": 1, "step": 1}, domain=normal()),
        Variant("scalar-without-elements", (), {"dim": -1, "size": 0, "step": 1}),
        Variant("empty", (0, 4), {"dim": 1, "size": 2, "step": 1}),
        Variant("special", (19,), {"dim": 0, "size": 4, "step": 3}, domain=special),
        Variant("long", (431,), {"dim": 0, "size": 5, "step": 2}, widths=True),
    ],
    "diopiTril": TRIANGLES,
    "diopiTriu": TRIANGLES,
}
"""Functions of one tensor whose elements they move."""


ALIKE = {
    "scalar": "all elements are the one of the input",
    "far-below": "the diagonal lies below all elements",
    "far-above": "the diagonal lies above all elements",
    "one-window": "the only window is at the start, whatever the step",
}


@cases_for(*TENSORS, weak=ALIKE)
def tensors(prototype: Prototype) -> Iterator[Case]:
    yield from variant_cases(prototype, TENSORS[prototype.base])


def _pad(pad: tuple[int, ...], mode: str = "constant", value: float | None = None) -> dict[str, Any]:
    return {"pad": pad, "mode": mode, "value": value}


PADDED = [
    Variant("constant", (3, 2), _pad((1, 2)), everywhere=True),
    Variant("constant-strided", (2, 3, 2), _pad((1, 0, 0, 2), value=1), strided, strided, everywhere=True),
    Variant("constant-every-axis", (2, 3, 4), _pad((1, 2, 3, 0, 0, 1), value=-0.3), transposed, transposed),
    Variant("constant-cut", (4, 5), _pad((-1, 2, 3, -2), value=2.5)),
    Variant("constant-cut-all", (4, 3), _pad((-2, -1))),
    Variant("constant-nan", (3, 4), _pad((0, 1, 1, 0), value=nan)),
    Variant("constant-infinite", (3, 4), _pad((1, 1), value=-inf)),
    Variant("constant-negative-zero", (2, 3), _pad((1, 1), value=-0.0)),
    Variant("constant-rank-5", (3, 2, 3, 2, 3), _pad((1, 0, 0, 1, -1, 1, 0, 1, 1, 0), value=7.5)),
    Variant("constant-no-margins", (3, 4), _pad((), value=5.0)),
    Variant("constant-from-none", (0, 3), _pad((1, 1, 2, 0), value=0.1)),
    Variant("reflect", (2, 5), _pad((3, 1), "reflect"), everywhere=True),
    Variant("reflect-strided", (1, 3, 4), _pad((2, 3), "reflect"), strided, strided),
    Variant("reflect-two-axes", (2, 2, 4, 5), _pad((2, 1, 0, 3), "reflect"), channels_last, channels_last),
    Variant("reflect-three-axes", (1, 2, 3, 4, 2), _pad((1, 0, 2, 3, 2, 1), "reflect")),
    Variant("reflect-cut", (2, 6), _pad((-3, 5), "reflect")),
    Variant("replicate", (2, 3), _pad((4, 1), "replicate"), everywhere=True),
    Variant("replicate-two-axes", (2, 4, 3), _pad((0, 2, 5, 1), "replicate"), transposed, transposed),
    Variant("replicate-three-axes", (2, 3, 2, 4), _pad((1, 0, 2, 3, 0, 1), "replicate")),
    Variant("replicate-cut", (2, 6), _pad((-2, 3), "replicate")),
    Variant("circular", (2, 4), _pad((3, 1), "circular"), everywhere=True),
    Variant("circular-once-around", (2, 3), _pad((3, 3), "circular"), strided, strided),
    Variant("circular-two-axes", (1, 2, 4, 3), _pad((2, 1, 0, 3), "circular"), channels_last, channels_last),
    Variant("circular-three-axes", (1, 2, 3, 2, 4), _pad((1, 2, 1, 0, 0, 2), "circular")),
    Variant("circular-cut", (2, 6), _pad((2, -1), "circular")),
    Variant("circular-cut-front", (2, 6), _pad((-1, 2), "circular")),
    Variant("constant-special", (19,), _pad((2, 1)), domain=special),
    Variant("reflect-as-far-as-can-be", (1, 2, 4, 3), _pad((2, 2, 3, 3), "reflect")),
    Variant("replicate-long", (3, 331), _pad((2, 40), "replicate"), widths=True),
    Variant("constant-long", (3, 331), _pad((5, 3), value=3.0), widths=True),
    Variant("reflect-long", (3, 331), _pad((7, 4), "reflect"), widths=True),
]


@cases_for("diopiPad", weak={"constant-no-margins": "there are no margins to fill"})
def pad(prototype: Prototype) -> Iterator[Case]:
    yield from variant_cases(prototype, PADDED)
    for dtype in prototype.dtypes:
        yield Variant("constant-converted", (2, 3), _pad((1, 1, 0, 1), value=2.7)).case(prototype, dtype)


def _windows(sizes: tuple[int, ...], dim: int, size: int, step: int) -> tuple[int, ...]:
    """Shape of the result of unfolding a tensor of these sizes."""
    axis = dim % max(len(sizes), 1)
    return (*((n - size) // step + 1 if i == axis else n for i, n in enumerate(sizes)), size)


@cases_for("diopiUnfoldBackward", weak=ALIKE)
def unfold_backward(prototype: Prototype) -> Iterator[Case]:
    for unfold in TENSORS["diopiUnfold"]:
        attributes = {"input_sizes": unfold.shape, **unfold.attributes}
        shape = _windows(unfold.shape, **unfold.attributes)
        backward = replace(unfold, shape=shape, attributes=attributes, domain=normal())
        yield from variant_cases(prototype, [backward])
    windows = {"input_sizes": (2, 5), "dim": 1, "size": 3, "step": 1}
    many = {"input_sizes": (3, 67), "dim": 1, "size": 5, "step": 2}
    exact = Variant("exact", (3, 32, 5), many, domain=whole(-9, 9))
    undefined = Variant("undefined", (2, 3, 3), windows, domain=choice([1, -2, 3, inf, nan]))
    for dtype in prototype.dtypes:
        yield replace(exact.case(prototype, dtype), exact=True)
        yield undefined.case(prototype, dtype)


@dataclass(frozen=True)
class Join:
    """One way of calling a function on a list of tensors: their shapes, types and layouts (the last ones repeat)."""

    label: str
    shapes: Sequence[tuple[int, ...]]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    layouts: Sequence[Layout] = (contiguous,)
    result: Layout = contiguous
    everywhere: bool = False
    widths: bool = False
    dtypes: Sequence[Dtype] = ()
    domain: Domain = anything

    def case(self, prototype: Prototype, dtype: Dtype) -> Case:
        """The case in one element type, or in the join's own."""
        dtypes = self.dtypes or [dtype]
        tensors = [
            TensorSpec(shape, dtypes[min(i, len(dtypes) - 1)], self.domain, self.layouts[min(i, len(self.layouts) - 1)])
            for i, shape in enumerate(self.shapes)
        ]
        names = [p.name for p in prototype.arguments if p.is_tensor_array]
        return Case(
            f"{dtype.name}-{self.label}",
            dtype,
            {names[0]: tensors, **self.attributes},
            {prototype.results[0].name: ResultOverride(layout=self.result)},
            smoke=self.everywhere,
        )


MIXED = {
    "float-int": (Dtype.float32, Dtype.int64),
    "halves": (Dtype.float16, Dtype.bfloat16),
    "half-float-double": (Dtype.bfloat16, Dtype.float32, Dtype.float64),
    "signs": (Dtype.int8, Dtype.uint8),
    "widths": (Dtype.int16, Dtype.int64, Dtype.uint8),
    "bool-int": (Dtype.bool, Dtype.int32),
    "bool-half": (Dtype.bool, Dtype.float16),
    "complex-double": (Dtype.complex64, Dtype.float64),
    "int-complex": (Dtype.int32, Dtype.complex64),
}

CAT = [
    Join("rows", [(2, 3), (1, 3), (2, 3)], {"dim": 0}, everywhere=True),
    Join("columns", [(2, 1), (2, 3)], {"dim": -1}, [strided, transposed], strided, everywhere=True),
    Join("middle", [(2, 3, 4), (2, 1, 4), (2, 2, 4)], {"dim": 1}, [transposed, contiguous], transposed),
    Join("first-of-4", [(1, 2, 3, 2), (3, 2, 3, 2)], {"dim": -4}, [channels_last, strided], channels_last),
    Join("one", [(3, 4)], {"dim": 1}),
    Join("vectors", [(3,), (1,), (4,)], {"dim": 0}, [strided]),
    Join("with-none", [(2, 3), (0, 3), (1, 3)], {"dim": 0}),
    Join("skipped", [(0,), (2, 3), (0,), (2, 2)], {"dim": 1}),
    Join("all-none", [(0,), (0,)], {"dim": 0}),
    Join("empty", [(0, 2), (0, 3)], {"dim": 1}),
    Join("expanded", [(3, 2), (3, 4)], {"dim": 1}, [expanded]),
    Join("special", [(19, 1), (19, 2)], {"dim": 1}, domain=special),
    Join("many", [(i % 4 + 1, 5) for i in range(13)], {"dim": 0}),
    Join("very-many", [(1, 3)] * 131, {"dim": 0}),
    Join("cube", [(3, 3, 3)] * 2, {"dim": 1}),
    Join("cube-first", [(3, 3, 3)] * 2, {"dim": -3}),
    Join("rank-5", [(2, 1, 3, 2, 2), (2, 1, 3, 1, 2)], {"dim": 3}),
    Join("long", [(3, 170), (3, 173)], {"dim": -1}, widths=True),
]

STACK = [
    Join("front", [(2, 3), (2, 3)], {"dim": 0}, everywhere=True),
    Join("back", [(2, 2)] * 3, {"dim": -1}, [strided, transposed], strided, everywhere=True),
    Join("middle", [(2, 3, 4)] * 3, {"dim": 1}, [transposed, contiguous], transposed),
    Join("last-but-one", [(2, 3)] * 4, {"dim": -2}),
    Join("front-negative", [(2, 3)] * 3, {"dim": -3}),
    Join("rank-4", [(2, 3, 2)] * 2, {"dim": 3}, [strided], channels_last),
    Join("one", [(3, 4)], {"dim": 2}),
    Join("scalars", [()] * 5, {"dim": 0}),
    Join("vectors", [(3,)] * 4, {"dim": 1}, [strided]),
    Join("empty", [(0, 2)] * 3, {"dim": 1}),
    Join("expanded", [(3, 2)] * 2, {"dim": 1}, [expanded, contiguous]),
    Join("special", [(19,)] * 2, {"dim": 1}, domain=special),
    Join("many", [(2, 5)] * 13, {"dim": 1}),
    Join("cube", [(3, 3)] * 3, {"dim": 1}),
    Join("rank-5", [(2, 3, 1, 2)] * 2, {"dim": -3}),
    Join("long", [(5, 103)] * 2, {"dim": -1}, widths=True),
]

MESH_GRID = [
    Join("two", [(3,), (4,)], everywhere=True),
    Join("three", [(2,), (1,), (3,)], layouts=[strided], result=strided, everywhere=True),
    Join("one", [(5,)], result=strided),
    Join("scalar", [(3,), (), (2,)]),
    Join("scalars", [(), ()], domain=normal()),
    Join("five", [(2,), (3,), (1,), (4,), (2,)]),
    Join("four", [(2,), (3,), (1,), (4,)], layouts=[strided, contiguous], result=transposed),
    Join("empty", [(2,), (0,), (3,)]),
    Join("special", [(19,), (2,)], domain=special),
    Join("long", [(41,), (29,)], widths=True),
]


def _joins(prototype: Prototype, joins: Sequence[Join]) -> Iterator[Case]:
    for dtype in prototype.dtypes:
        for join in joins:
            if join.everywhere or dtype is Dtype.float32 or (join.widths and dtype in WIDTHS):
                yield join.case(prototype, dtype)


@cases_for("diopiCat")
def cat(prototype: Prototype) -> Iterator[Case]:
    yield from _joins(prototype, CAT)
    for label, dtypes in MIXED.items():
        shapes = [(2, 2), (1, 2), (3, 2)][: len(dtypes)]
        yield Join(f"mixed-{label}", shapes, {"dim": 0}, dtypes=dtypes).case(prototype, dtypes[0])
    widened = Join("mixed-skipped", [(2, 2), (0,)], {"dim": 0}, dtypes=(Dtype.int32, Dtype.float64))
    yield widened.case(prototype, Dtype.int32)


@cases_for("diopiStack")
def stack(prototype: Prototype) -> Iterator[Case]:
    yield from _joins(prototype, STACK)
    for label, dtypes in MIXED.items():
        yield Join(f"mixed-{label}", [(3,)] * len(dtypes), {"dim": 1}, dtypes=dtypes).case(prototype, dtypes[0])


@cases_for("diopiMeshGrid")
def mesh_grid(prototype: Prototype) -> Iterator[Case]:
    yield from _joins(prototype, MESH_GRID)


def _split(sizes: tuple[int, ...], dim: int) -> dict[str, Any]:
    return {"splitSizes": sizes, "dim": dim}


SPLIT = [
    Variant("rows", (5, 3), _split((2, 3), 0), everywhere=True),
    Variant("strided", (2, 6), _split((1, 3, 2), -1), strided, strided, everywhere=True),
    Variant("middle", (2, 7, 3), _split((4, 1, 2), 1), transposed, transposed),
    Variant("rank-4", (2, 5, 3, 2), _split((3, 2), -3), channels_last, channels_last),
    Variant("with-nothing", (4, 3), _split((0, 1, 0, 3, 0), 0)),
    Variant("whole", (3, 4), _split((4,), 1)),
    Variant("ones", (6,), _split((1,) * 6, 0), strided),
    Variant("of-nothing", (0, 3), _split((0, 0), 0)),
    Variant("empty", (0, 5), _split((2, 3), 1)),
    Variant("expanded", (4, 3), _split((1, 3), 0), expanded),
    Variant("special", (19, 2), _split((7, 12), 0), domain=special),
    Variant("long", (3, 343), _split((100, 43, 200), 1), widths=True),
]


@cases_for("diopiSplitWithSizes")
def split_with_sizes(prototype: Prototype) -> Iterator[Case]:
    yield from variant_cases(prototype, SPLIT)


SMOKE = ("matrix", "up")
"""The labels of the cases without tensor inputs that belong to the smoke level."""


def _made(
    prototype: Prototype,
    label: str,
    dtype: Dtype,
    shape: tuple[int, ...],
    layout: Layout = contiguous,
    **attributes: Any,
) -> Case:
    """A case of a function without tensor inputs."""
    result = ResultOverride(dtype, layout, shape)
    return Case(f"{dtype.name}-{label}", dtype, attributes, {prototype.results[0].name: result}, smoke=label in SMOKE)


SHAPES: dict[str, tuple[tuple[int, ...], Layout]] = {
    "matrix": ((3, 4), contiguous),
    "strided": ((2, 3, 2), strided),
}
MORE_SHAPES: dict[str, tuple[tuple[int, ...], Layout]] = {
    "transposed": ((4, 3, 2), transposed),
    "channels-last": ((2, 3, 2, 2), channels_last),
    "scalar": ((), contiguous),
    "empty": ((0, 3), contiguous),
    "one": ((1,), strided),
    "long": ((1031,), contiguous),
}


def _shapes(dtype: Dtype) -> dict[str, tuple[tuple[int, ...], Layout]]:
    if dtype is Dtype.float32:
        return {**SHAPES, **MORE_SHAPES}
    return {**SHAPES, "long": MORE_SHAPES["long"]} if dtype in WIDTHS else SHAPES


FILLED = {".*": "all elements are to be alike"}


@cases_for("diopiOnes", "diopiZeros", weak=FILLED)
def constants(prototype: Prototype) -> Iterator[Case]:
    for dtype in prototype.dtypes:
        for label, (shape, layout) in _shapes(dtype).items():
            yield _made(prototype, label, dtype, shape, layout, size=shape)


@cases_for("diopiZeroInp", weak=FILLED)
def zero_(prototype: Prototype) -> Iterator[Case]:
    for dtype in prototype.dtypes:
        for label, (shape, layout) in _shapes(dtype).items():
            yield _made(prototype, label, dtype, shape, layout)


FILLINGS: dict[int, dict[str, float]] = {
    0: {"zero": 0, "two": 2, "fraction": 0.5, "not-a-number": nan},
    1: {"zero": 0, "fraction": 5.9, "largest-of-all": 127},
    2: {"whole": 3, "tenth": -0.1, "negative-zero": -0.0, "infinite": -inf, "not-a-number": nan},
    3: {"whole": -2, "tenth": 0.1, "not-a-number": nan},
}
"""Numbers to fill with, by category of the element type."""

INTEGER_FILLINGS = [
    (Dtype.int64, 2**53 + 1),
    (Dtype.int64, -(2**63)),
    (Dtype.int32, -(2**31)),
    (Dtype.int32, 2**24 + 1),
    (Dtype.int16, -300),
    (Dtype.int8, -128),
    (Dtype.uint8, 255),
    (Dtype.int32, -2.9),
    (Dtype.float32, 2**24 + 3),
    (Dtype.float64, 2**53 - 1),
]


@cases_for("diopiFill", weak=FILLED)
def fill(prototype: Prototype) -> Iterator[Case]:
    for dtype in prototype.dtypes:
        for label, (shape, layout) in _shapes(dtype).items():
            yield _made(prototype, label, dtype, shape, layout, value=1)
        for label, value in FILLINGS[category(dtype)].items():
            yield _made(prototype, label, dtype, (2, 3), value=value)
    for dtype, value in INTEGER_FILLINGS:
        yield _made(prototype, f"value{value}", dtype, (2, 3), value=value)


SEQUENCES: dict[str, tuple[float, float, float, int]] = {
    "up": (0, 7, 1, 7),
    "third": (2, 20, 3, 6),
    "not-reaching": (1, 12, 4, 3),
    "down": (9, 1, -2, 4),
    "one": (3, 4, 5, 1),
    "none": (4, 4, 1, 0),
}
"""start, end, step and length, for all element types."""

FRACTIONS: dict[str, tuple[float, float, float, int]] = {
    "quarters": (-1.0, 1.5, 0.25, 10),
    "tenths": (0.0, 1.05, 0.1, 11),
    "down-across-zero": (2.3, -3.2, -0.7, 8),
    "mixed-payloads": (1, 3.4, 0.5, 5),
}


@cases_for("diopiArange", weak={"one": "a single element is the start, whatever the step"})
def arange(prototype: Prototype) -> Iterator[Case]:
    def case(label: str, dtype: Dtype, sequence: tuple[float, float, float, int], layout: Layout = contiguous) -> Case:
        start, end, step, length = sequence
        return _made(prototype, label, dtype, (length,), layout, start=start, end=end, step=step)

    for dtype in prototype.dtypes:
        for label, sequence in SEQUENCES.items():
            whole_numbers = case(label, dtype, sequence, strided if label == "third" else contiguous)
            yield replace(whole_numbers, exact=True)
        for label, sequence in FRACTIONS.items() if dtype in floating else ():
            yield case(label, dtype, sequence)
    for dtype in (Dtype.float32, Dtype.float64):
        yield case("long", dtype, (-3.73, 48.0, 0.05, 1035))
    for dtype in half:
        yield case("long", dtype, (0, 1031, 1, 1031))
    yield case("beyond-double", Dtype.int64, (2**53 + 1, 2**53 + 6, 1, 5))
    yield case("long", Dtype.int32, (-500, 2593, 3, 1031))
    for dtype in (Dtype.int32, Dtype.int64, Dtype.uint8):
        yield case("truncated", dtype, (1.9, 7.9, 2.2, 3))
    yield case("truncated-negative", Dtype.int32, (-1.9, -7.9, -2.2, 3))


SPACES: dict[str, tuple[float, float, int]] = {
    "up": (0, 8, 5),
    "down": (9, 1, 9),
    "one": (3, 7, 1),
    "two": (3, 7, 2),
    "constant": (5, 5, 4),
    "thirds": (1, 12, 4),
}
FRACTIONAL_SPACES: dict[str, tuple[float, float, int]] = {
    "across-zero": (-3.7, 7.9, 9),
    "symmetric": (-1.0, 1.0, 8),
    "backwards": (0.3, -0.55, 7),
    "mixed-payloads": (-1, 2.5, 6),
}


@cases_for("diopiLinspace", weak={"constant": "the start is the end"})
def linspace(prototype: Prototype) -> Iterator[Case]:
    def case(label: str, dtype: Dtype, space: tuple[float, float, int], layout: Layout = contiguous) -> Case:
        start, end, steps = space
        return _made(prototype, label, dtype, (steps,), layout, start=start, end=end, steps=steps)

    for dtype in prototype.dtypes:
        for label, space in SPACES.items():
            whole_numbers = case(label, dtype, space, strided if label == "thirds" else contiguous)
            yield replace(whole_numbers, exact=label != "thirds")
        for label, space in FRACTIONAL_SPACES.items() if dtype in floating else ():
            yield case(label, dtype, space)
    yield case("none", Dtype.float32, (0, 1, 0))
    for dtype in (Dtype.float32, *half):
        yield case("long", dtype, (-10.5, 99.25, 1031))
    yield case("truncated", Dtype.int32, (2.9, 10.9, 4))
    yield case("towards-zero", Dtype.int32, (-9, 7, 6))
    yield case("towards-zero", Dtype.int64, (-9, 7, 6))


def _convertible(source: Dtype, target: Dtype) -> Domain:
    """Numbers the target can mostly hold: those it can't have no specified result."""
    if target is Dtype.bool:
        return with_zeros
    if category(source) < 2 or category(target) != 1:
        return anything
    return between(-0.9, 250) if target is Dtype.uint8 else between(-120, 120)


def _halfway(target: Dtype) -> Domain:
    """Whole numbers halfway between two of the target, and what is halfway beyond its largest for floating sources."""
    form = format_of(target)
    numbers = [sign * (2.0**form.precision + 2 * step + 1) for step in range(9) for sign in (1, -1)]
    beyond = [form.overflow, -form.overflow]
    return lambda rng, count, dtype: choice([*numbers, *beyond] if is_inexact(dtype) else numbers)(rng, count, dtype)


def _truncated_to_ends(target: Dtype) -> Domain:
    """The floating numbers furthest from 0 that an integer type can hold once their fraction is dropped."""
    low, high = integer_range(target)

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        kind = to_numpy(dtype)
        beyond = np.array([low - 1.0, high + 1.0]).astype(kind)  # high + 1 is a power of two, low − 1 may round to low
        ends = [*np.nextafter(beyond, np.zeros_like(beyond)), *np.array([low, low / 2, high / 2]).astype(kind)]
        return choice([float(end) for end in ends])(rng, count, dtype)

    return draw


def _conversion(
    prototype: Prototype,
    label: str,
    tensor: TensorSpec,
    target: Dtype,
    shape: tuple[int, ...] | None = None,
    layout: Layout = contiguous,
    smoke: bool = False,
) -> Case:
    name = prototype.arguments[0].name
    result = ResultOverride(target, layout, tensor.shape if shape is None else shape)
    return Case(
        f"{tensor.dtype.name}-to-{target.name}{label}",
        tensor.dtype,
        {name: tensor},
        {prototype.results[0].name: result},
        smoke=smoke,
    )


HALFWAY = {
    Dtype.float32: half,
    Dtype.float64: (*half, Dtype.float32),
    Dtype.int32: (*half, Dtype.float32),
    Dtype.int64: (Dtype.float32, Dtype.float64),
}
"""Targets that conversions round to, by source."""

PLACES: dict[str, tuple[tuple[int, ...], Layout, Layout]] = {
    "-transposed": ((3, 4), transposed, contiguous),
    "-strided": ((2, 3, 2), contiguous, strided),
    "-channels-last": ((2, 3, 2, 2), strided, channels_last),
    "-scalar": ((), contiguous, contiguous),
    "-empty": ((0, 3), contiguous, contiguous),
    "-long": ((1031,), contiguous, contiguous),
}


@cases_for("diopiCastDtype")
def conversions(prototype: Prototype) -> Iterator[Case]:
    for number, source in enumerate(prototype.dtypes):
        for target in prototype.dtypes:
            follows = target is every[(number + 1) % len(every)]  # every type once on each side
            if prototype.name == "diopiCastDtype" or follows or source is Dtype.float32:
                tensor = TensorSpec((3, 4), source, _convertible(source, target))
                yield _conversion(prototype, "", tensor, target, smoke=follows)
    for source, target in ((Dtype.float32, Dtype.float16), (Dtype.int64, Dtype.float32)):
        for label, (shape, layout, result) in PLACES.items():
            yield _conversion(prototype, label, TensorSpec(shape, source, anything, layout), target, layout=result)
    for source in (*floating, *complexes):
        for target in (Dtype.bool, Dtype.int32, Dtype.int64, *floating):
            yield _conversion(prototype, "-special", TensorSpec((36,), source, special), target)
    for source, targets in HALFWAY.items():
        for target in targets:
            yield _conversion(prototype, "-halfway", TensorSpec((20,), source, _halfway(target)), target)
    for source in (Dtype.float32, Dtype.float64):
        for target in integer:
            yield _conversion(prototype, "-ends", TensorSpec((5,), source, _truncated_to_ends(target)), target)
    for target in (Dtype.float16, Dtype.bfloat16, Dtype.float32, Dtype.uint8, Dtype.bool):
        yield _conversion(prototype, "-extreme", TensorSpec((8,), Dtype.int64, special), target)


STRETCHES: dict[str, tuple[tuple[int, ...], tuple[int, ...], Layout, Layout]] = {
    "row": ((3,), (2, 3), contiguous, contiguous),
    "column": ((4, 1), (4, 3), strided, transposed),
    "scalar": ((), (2, 3), contiguous, strided),
    "outer": ((2, 1, 3), (5, 2, 4, 3), transposed, strided),
    "same": ((4, 3), (4, 3), transposed, transposed),
}


@cases_for("diopiCopyInp", weak={"to-float(32|64)-scalar": ALIKE["scalar"]})
def copy_(prototype: Prototype) -> Iterator[Case]:
    yield from conversions(prototype)
    for label, (shape, target, layout, result) in STRETCHES.items():
        for source, kind in ((Dtype.float32, Dtype.float32), (Dtype.int32, Dtype.float64)):
            tensor = TensorSpec(shape, source, anything if shape else normal(9), layout)
            yield _conversion(prototype, f"-{label}", tensor, kind, target, result)


FORMATS: dict[str, tuple[tuple[int, ...], Layout, MemoryFormat, Layout]] = {
    "already-contiguous": ((3, 4), contiguous, MemoryFormat.Contiguous, contiguous),
    "strided": ((2, 3, 2), strided, MemoryFormat.Contiguous, contiguous),
    "transposed": ((4, 2, 3), transposed, MemoryFormat.Contiguous, contiguous),
    "from-channels-last": ((2, 3, 2, 4), channels_last, MemoryFormat.Contiguous, contiguous),
    "expanded": ((4, 3), expanded, MemoryFormat.Contiguous, contiguous),
    "channels-last": ((2, 3, 2, 2), contiguous, MemoryFormat.ChannelsLast, channels_last),
    "already-channels-last": ((2, 3, 4, 2), channels_last, MemoryFormat.ChannelsLast, channels_last),
    "channels-last-from-strided": ((2, 3, 2, 4), strided, MemoryFormat.ChannelsLast, channels_last),
    "channels-last-from-transposed": ((2, 3, 2, 4), transposed, MemoryFormat.ChannelsLast, channels_last),
    "channels-last-1d": ((2, 3, 4), contiguous, MemoryFormat.ChannelsLast1d, channels_last),
    "channels-last-3d": ((2, 3, 2, 4, 2), contiguous, MemoryFormat.ChannelsLast3d, channels_last),
    "preserve": ((3, 4), contiguous, MemoryFormat.Preserve, contiguous),
    "preserve-transposed": ((2, 3, 4), transposed, MemoryFormat.Preserve, transposed),
    "preserve-channels-last": ((2, 3, 4, 2), channels_last, MemoryFormat.Preserve, channels_last),
    "preserve-strided": ((2, 3, 4), strided, MemoryFormat.Preserve, contiguous),
    "preserve-expanded": ((4, 3), expanded, MemoryFormat.Preserve, contiguous),
    "scalar": ((), contiguous, MemoryFormat.Preserve, contiguous),
    "empty": ((0, 3, 2, 2), contiguous, MemoryFormat.ChannelsLast, channels_last),
    "long": ((33, 35), transposed, MemoryFormat.Contiguous, contiguous),
}
"""Shape and layout of the input, the memory format asked for, and the layout that makes."""


@cases_for("diopiContiguous")
def contiguous_(prototype: Prototype) -> Iterator[Case]:
    variants = [
        Variant(label, shape, {"memoryFormat": int(order)}, layout, result, None, label in ("strided", "channels-last"))
        for label, (shape, layout, order, result) in FORMATS.items()
    ]
    yield from variant_cases(prototype, variants)


PLAIN = [
    Variant("matrix", (3, 4), everywhere=True),
    Variant("strided", (2, 3, 2), layout=strided),
    Variant("transposed", (4, 2, 3), layout=transposed),
    Variant("channels-last", (2, 3, 2, 2), layout=channels_last),
    Variant("scalar", ()),
    Variant("empty", (0, 3)),
    Variant("long", (1031,)),
]


@cases_for("diopiGetNativeMemoryFormat")
def get_native_memory_format(prototype: Prototype) -> Iterator[Case]:
    yield from variant_cases(prototype, PLAIN)


@cases_for("diopiNativeMemoryFormatCast")
def native_memory_format_cast(prototype: Prototype) -> Iterator[Case]:
    yield from variant_cases(prototype, [replace(variant, attributes={"format": 0}) for variant in PLAIN])


@cases_for("diopiTensorDestructionHook")
def tensor_destruction_hook(prototype: Prototype) -> Iterator[Case]:
    for variant in PLAIN:
        for dtype in (Dtype.float32, Dtype.int64) if variant.everywhere else (Dtype.float32,):
            tensor = TensorSpec(variant.shape, dtype, anything, variant.layout)
            yield Case(f"{dtype.name}-{variant.label}", dtype, {"ptr": tensor}, smoke=variant.everywhere)
    for label, address in (("null", 0), ("unknown-address", 0x1000)):
        yield Case(f"float32-{label}", Dtype.float32, {"ptr": address})

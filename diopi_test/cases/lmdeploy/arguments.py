"""Arguments that LMDeploy's kernels share: workspaces, and integers of the type that goes with the type under test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from diopi_proto.dtypes import narrow
from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, integer_values
from diopi_test.cases.layouts import Layout, contiguous
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, Arguments, ByDtype, CaseTemplate, TensorTemplate, tensor
from diopi_test.cases.tensors import literal

Shape = tuple[int, ...]
"""The sizes of a template."""

Sizes = TypeVar("Sizes")
"""The type of the sizes of a template."""

F16, BF16, F32 = narrow
"""The floating-point types of LMDeploy's kernels."""

I64, I32 = Dtype.int64, Dtype.int32
"""The integer types of LMDeploy's kernels."""

MANY_ROWS, VOCABULARY = 70_001, 32_003
"""The numbers of rows and of tokens in the vocabulary of large cases."""

NO_WORKSPACE: Mapping[str, Any] = {"workspace": None, "workspace_size": 0, "fusion_level": 0}
"""The arguments of a call that passes no workspace; the function must work without it."""

WORKSPACE_QUERY = {"workspace_size": -1}
"""The argument of a call that queries the size of the workspace."""


def companion_integer_dtype(dtype: Dtype) -> Dtype:
    """Return the integer type of a call with this floating-point type: int64 for float32, int32 for half precision."""
    return I64 if dtype in (F32, I64) else I32


def integer_table(values: Any, dtype: Dtype | None = None, layout: Layout = contiguous) -> Any:
    """Return a tensor of these integers in `dtype`, by default in the integer type for the type under test."""
    return ByDtype(lambda tested: literal(values, dtype or companion_integer_dtype(tested), layout))


def random_integers(*shape: int, low: int, high: int, layout: Layout = contiguous) -> Any:
    """Return a tensor of random integers in [low, high], in the integer type for the type under test."""
    return ByDtype(
        lambda tested: tensor(*shape, domain=integer_values(low, high), layout=layout).resolve(
            companion_integer_dtype(tested)
        )
    )


def float32_tensor(*shape: int, domain: Domain, layout: Layout = contiguous) -> TensorTemplate:
    """Return a float32 tensor, for example of probabilities or penalties."""
    return tensor(*shape, domain=domain, dtype=F32, layout=layout)


def workspace_calls(template: CaseTemplate[Sizes]) -> Iterator[CaseTemplate[Sizes]]:
    """Yield templates that query the workspace size, pass a workspace of each type, or allow fusion."""
    yield template.replace("size-asked", WORKSPACE_QUERY, smoke=True, dtypes=(F32,))
    yield template.replace(
        "size-asked-far-below", {"workspace_size": -(2**40), "workspace": tensor(16)}, smoke=False, dtypes=(BF16,)
    )
    for label, dtype in {"workspace": F32, "half-workspace": F16, "byte-workspace": Dtype.uint8}.items():
        workspace: Arguments = {"workspace": tensor(4096, dtype=dtype), "workspace_size": 4096}
        yield template.replace(label, workspace, dtypes=(F16,) if dtype is F16 else (F32,), smoke=False)
    yield template.replace("fused", {"fusion_level": 1}, dtypes=(F32, F16), smoke=False)
    yield template.replace("fused-further", {"fusion_level": 2}, dtypes=(F32,), smoke=False)


def smoke_template(label: str, *sizes: int, arguments: Mapping[str, Any] | None = None) -> CaseTemplate[Shape]:
    """Return a template of these sizes, whose cases are smoke cases in every element type."""
    return CaseTemplate(label, sizes, arguments or {}, **SMOKE_IN_ALL_DTYPES)

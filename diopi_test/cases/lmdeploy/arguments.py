"""Shared arguments of the cases of LMDeploy's kernels: workspaces, and integers of the companion integer type.

A call in float32 uses int64 integers, and a call in half precision uses int32 integers. The integer type of a call is
called the companion of its floating-point type. A template describes cases that differ only in their element type
(`diopi_test.cases.template`).

A domain draws the values of a tensor (`diopi_test.cases.domains`). Smoke cases belong to the shortest level of the
suite. Large cases belong to a level with the sizes of real models.
"""

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
"""The type of the sizes of a template that `workspace_calls` copies."""

F16, BF16, F32 = narrow
"""Short names for the floating-point types of LMDeploy's kernels."""

I64, I32 = Dtype.int64, Dtype.int32
"""Short names for the integer types of LMDeploy's kernels."""

MANY_ROWS, VOCABULARY = 70_001, 32_003
"""Sizes for large cases: the number of rows or sequences, and the number of tokens in the vocabulary."""

NO_WORKSPACE: Mapping[str, Any] = {"workspace": None, "workspace_size": 0, "fusion_level": 0}
"""The arguments of a call without a workspace and without fusion. The function must also work without a workspace."""

WORKSPACE_QUERY = {"workspace_size": -1}
"""The argument of a workspace query.

A call with a negative size writes the number of bytes that it needs and does nothing else.
"""


def companion_integer_dtype(dtype: Dtype) -> Dtype:
    """Return the integer type of a call whose type under test is `dtype`.

    Args:
        dtype: A floating-point type, or an integer type.

    Returns:
        int64 for float32 and int64, int32 for all other types.
    """
    return I64 if dtype in (F32, I64) else I32


def integer_table(values: Any, dtype: Dtype | None = None, layout: Layout = contiguous) -> Any:
    """Return a tensor argument with fixed integers.

    Args:
        values: The integers, as a (nested) sequence or an array.
        dtype: The element type; None for the companion integer type of the type under test.
        layout: The layout.

    Returns:
        The argument, a `ByDtype`.
    """
    return ByDtype(lambda tested: literal(values, dtype or companion_integer_dtype(tested), layout))


def random_integers(*shape: int, low: int, high: int, layout: Layout = contiguous) -> Any:
    """Return a tensor argument of random integers in [low, high], in the companion integer type of the type under test.

    Args:
        *shape: The shape of the tensor.
        low: The smallest integer.
        high: The largest integer.
        layout: The layout.

    Returns:
        The argument, a `ByDtype`.
    """
    return ByDtype(
        lambda tested: tensor(*shape, domain=integer_values(low, high), layout=layout).resolve(
            companion_integer_dtype(tested)
        )
    )


def float32_tensor(*shape: int, domain: Domain, layout: Layout = contiguous) -> TensorTemplate:
    """Return a float32 tensor with values from `domain`.

    Probabilities, penalties and temperatures are float32 whatever the type under test is.
    """
    return tensor(*shape, domain=domain, dtype=F32, layout=layout)


def workspace_calls(template: CaseTemplate[Sizes]) -> Iterator[CaseTemplate[Sizes]]:
    """Yield copies of a template that differ in the arguments for workspaces and fusion.

    Args:
        template: A template without a workspace.

    Yields:
        Two workspace queries, a call with a workspace of each of three element types, and calls with the fusion levels
        1 and 2.
    """
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
    """Return a template whose cases are smoke cases in every element type.

    Args:
        label: The label of the cases without the element type.
        *sizes: The sizes from which the module derives the arguments.
        arguments: Arguments that replace derived arguments.

    Returns:
        The template.
    """
    return CaseTemplate(label, sizes, arguments or {}, **SMOKE_IN_ALL_DTYPES)

"""Defects of Triton's interpreter.

Each function returns the actual result of a call; its decorator states the call and the expected result.
"""

from __future__ import annotations

from defects.registry import Array, Library, float32, register_defect

TRITON = Library("Triton's interpreter", ("triton", "torch"))


def convert_to_bfloat16(number: float) -> Array:
    """Return a number that a kernel converts from float32 to bfloat16."""
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def convert(source, result):
        tl.store(result, tl.load(source).to(tl.bfloat16))

    source, result = torch.tensor([number]), torch.empty(1, dtype=torch.bfloat16)
    convert[(1,)](source, result)
    return result.float().numpy()


@register_defect(
    TRITON,
    "float32 1.0078 to bfloat16",
    float32([1.0078125]),
    "tl.cast rounds to nearest, unless the caller requests rtz",
)
def rounding() -> Array:
    return convert_to_bfloat16(1.0078)


@register_defect(
    TRITON, "float32 1e-39 to bfloat16", float32([11 * 2.0**-133]), "tl.cast rounds to nearest, also subnormal numbers"
)
def rounding_of_a_subnormal_number() -> Array:
    return convert_to_bfloat16(1e-39)

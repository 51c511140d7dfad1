"""Complex numbers: composition from real numbers, conjugate, real and imaginary part.

`out` has the shape of the input; if there are two inputs, it has their broadcast shape. The functions
except `diopiPolar` preserve NaN, infinities and the sign of zeros in the real and the imaginary part.
"""

from collections.abc import Sequence

from diopi_proto.declaration import elementwise
from diopi_proto.dtypes import COMPONENT, all_dtypes, complexes, component, wide
from diopi_proto.parameters import Context, In, Out
from diopi_proto.types import Dtype


def complexed(inputs: Sequence[Dtype]) -> Dtype:
    """Return the complex type whose components have the type of the first input."""
    return next(dtype for dtype, part in COMPONENT.items() if part is inputs[0])


@elementwise(dtypes=wide, result=complexed, guarantee="exact", moves_numbers=True)
def diopiComplex(ctx: Context, out: Out, real: In, imag: In):
    """Compute the complex number real + i · imag.

    Both inputs have the same dtype: float32 gives complex64, and float64 gives complex128.

    Source: torch.complex.
    """


@elementwise(dtypes=wide, result=complexed)
def diopiPolar(ctx: Context, out: Out, abs: In, angle: In):
    """Compute the complex number abs · (cos angle + i · sin angle), with the angle in radians.

    abs may be negative. Both inputs have the same dtype: float32 gives complex64, and float64 gives complex128. An
    infinite angle gives NaN in both parts.

    Source: torch.polar.
    """


@elementwise(dtypes=all_dtypes, guarantee="exact")
def diopiConj(ctx: Context, out: Out, input: In):
    """Return the complex conjugate of input: the imaginary part is negated, even if it is zero.

    Real input is copied. `out` contains the conjugate numbers themselves, not a view that is negated on reading.

    Source: torch.conj_physical.
    """


@elementwise(
    dtypes=all_dtypes, result=component, beyond_pytorch={"out": complexes}, guarantee="exact", moves_numbers=True
)
def diopiReal(ctx: Context, out: Out, input: In):
    """Return the real part of input.

    Real input is copied unchanged. If `out` is complex, its imaginary part is set to 0.

    Source: torch.real.
    """


@elementwise(
    dtypes=complexes, result=component, beyond_pytorch={"out": complexes}, guarantee="exact", moves_numbers=True
)
def diopiImag(ctx: Context, out: Out, input: In):
    """Return the imaginary part of a complex input.

    If `out` is complex, its real part receives the imaginary part of input, and its imaginary part is set to 0.

    Source: torch.imag.
    """

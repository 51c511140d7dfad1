"""Functions that generate random numbers.

Each call reads the seed and the offset of the generator, and stores an advanced offset in it. The same state gives the
same numbers, and successive calls give different numbers. A NULL generator means a generator that the implementation
manages itself. The implementation decides which numbers a state gives. The standard specifies their distribution and
that the elements are independent of each other. A call that fills a tensor does not read the tensor, and the caller
chooses the dtype.
"""

from typing import Annotated

from diopi_proto.declaration import prototype
from diopi_proto.dtypes import caller_chosen, floating, integer, position, real, same, truth
from diopi_proto.facts import ExcludesNumbers
from diopi_proto.parameters import Context, Generator, In, InOut, Out, boolean, f64, i64
from diopi_proto.types import Dtype

Probability = Annotated[f64, ExcludesNumbers(("negative",), "a probability is not negative")]
"""A probability, not negative."""

Deviation = Annotated[f64, ExcludesNumbers(("negative",), "torch.normal rejects it")]
"""A standard deviation, not negative."""

BYTE_MASK_DTYPES = {"mask": (Dtype.uint8,)}
"""The standard accepts a uint8 `mask`, and PyTorch does not."""


@prototype(dtypes=floating, result={"out": same, "mask": truth}, beyond_pytorch=BYTE_MASK_DTYPES, guarantee="random")
def diopiDropout(
    ctx: Context, out: Out, mask: Out | None, input: In, p: Probability, train: boolean, generator: Generator | None
):
    """Set elements to zero with probability p and scale the others: out = input · mask / (1 − p).

    mask: bool or uint8. An element of mask is 0 with probability p, else 1. mask has the shape of input, or a smaller
    shape that is broadcast to the shape of input. One element of mask then applies to several elements of input, for
    example (N, C, 1, …) to whole channels.

    A dropped element is 0 of either sign. If it was ±∞ or NaN, it may also be NaN, as in PyTorch. For p = 1, all
    elements are dropped.

    If train is false, out is a copy of input. The generator is then not used, and mask is not written and may be NULL.
    A p outside [0, 1] is an error.

    Source: torch.nn.functional.dropout, torch.native_dropout.
    """


@prototype(dtypes=floating, result={"mask": truth}, beyond_pytorch=BYTE_MASK_DTYPES, guarantee="random")
def diopiDropoutInp(
    ctx: Context, input: InOut, mask: Out | None, p: Probability, train: boolean, generator: Generator | None
):
    """Apply `diopiDropout` in place to `input`. If train is false, nothing is changed.

    mask, p, train and generator are as in `diopiDropout`.

    Source: torch.nn.functional.dropout, torch.native_dropout.
    """


@prototype(dtypes=real, result=caller_chosen, guarantee="random")
def diopiRandomInp(ctx: Context, inout: Out, from_: i64, to: i64 | None, generator: Generator | None):
    """Fill `inout` with integers that are uniformly distributed in [from, to).

    If to is NULL, the upper end is included. It depends on the dtype:

    - integers: the largest number of the dtype
    - bool: 1
    - floating types: 2^8 for bfloat16, 2^11 for float16, 2^24 for float32 and 2^53 for float64

    Errors: from ≥ to; bounds that the dtype cannot represent.

    Source: torch.Tensor.random_.
    """


@prototype(dtypes=floating, result=caller_chosen, guarantee="random")
def diopiUniformInp(ctx: Context, inout: Out, from_: f64, to: f64, generator: Generator | None):
    """Fill `inout` with numbers uniformly distributed in [from, to); if both are equal, fill it with from.

    Errors: from > to; a bound or a difference of the bounds that the dtype cannot represent.

    Source: torch.Tensor.uniform_.
    """


@prototype(dtypes=floating, guarantee="random")
def diopiBernoulli(ctx: Context, out: Out, input: In, generator: Generator | None):
    """Draw 1 with the probability in the element of input, otherwise 0, in the dtype of `out`.

    Both tensors have the same shape. A probability outside [0, 1] is an error, which an implementation need not detect.

    Source: torch.bernoulli.
    """


@prototype(dtypes=floating, guarantee="random")
def diopiBernoulliInp(ctx: Context, inout: InOut, generator: Generator | None):
    """Replace each element of `inout`, which is a probability, by 1 with this probability, otherwise by 0.

    A probability outside [0, 1] is an error, which an implementation need not detect.

    Source: torch.bernoulli.
    """


@prototype(dtypes=real, result=caller_chosen, guarantee="random")
def diopiBernoulliScalar(ctx: Context, out: Out, p: Probability, generator: Generator | None):
    """Fill `out` with 1 with probability p, otherwise 0. Errors: p outside [0, 1].

    Source: torch.Tensor.bernoulli_.
    """


@prototype(dtypes=floating, result=caller_chosen, guarantee="random")
def diopiNormal(ctx: Context, out: Out, mean: f64, std: Deviation, generator: Generator | None):
    """Fill `out` with numbers from the normal distribution N(mean, std²).

    If std is 0 or mean is not finite, every element is mean. If std is infinite, the results are unspecified. Errors:
    std < 0.

    Source: torch.normal.
    """


@prototype(dtypes=floating, result=caller_chosen, guarantee="random")
def diopiNormalInp(ctx: Context, inout: Out, mean: f64, std: Deviation, generator: Generator | None):
    """Fill `inout` with numbers from the normal distribution N(mean, std²), as `diopiNormal` does.

    Source: torch.Tensor.normal_.
    """


@prototype(dtypes=floating, guarantee="random")
def diopiNormalTensorScalar(ctx: Context, out: Out, mean: In, std: Deviation, generator: Generator | None):
    """Draw each element from N(mean, std²) with a separate mean; out has the shape of mean.

    Errors: std < 0.

    Source: torch.normal.
    """


@prototype(dtypes=floating, guarantee="random")
def diopiNormalScalarTensor(ctx: Context, out: Out, mean: f64, std: In, generator: Generator | None):
    """Draw each element from N(mean, std²) with a separate std; out has the shape of std.

    Errors: a negative std, which the implementation need not detect.

    Source: torch.normal.
    """


@prototype(dtypes=floating, guarantee="random")
def diopiNormalTensor(ctx: Context, out: Out, mean: In, std: In, generator: Generator | None):
    """Draw each element from N(mean, std²) with a separate mean and std, which broadcast to the shape of `out`.

    out has the dtype of mean. Errors: a negative std, which the implementation need not detect.

    Source: torch.normal.
    """


@prototype(dtypes=(*floating, *integer), result=position, guarantee="random")
def diopiRandperm(ctx: Context, out: Out, n: i64, generator: Generator | None):
    """Return the numbers 0 … n − 1 in random order; every order has the same probability.

    out: (n), usually int64; another dtype must represent n − 1 exactly. Errors: n < 0.

    Source: torch.randperm.
    """


@prototype(dtypes=floating, result=position, guarantee="random")
def diopiMultinomial(
    ctx: Context, out: Out, input: In, num_samples: i64, replacement: boolean, generator: Generator | None
):
    """Draw num_samples indices for every row of input, with probabilities proportional to the weights in the row.

    - input: (n) or (rows, n), the weights. They are finite and ≥ 0, not all 0, and may have any sum.
    - out: int64, (num_samples) or (rows, num_samples).

    If `replacement` is false, no index is drawn twice. An index of weight 0 is then drawn only if no other index
    remains. Errors: num_samples < 1; num_samples > n without replacement; weights that are negative, not finite or all
    0. An implementation need not detect invalid weights.

    Source: torch.multinomial.
    """

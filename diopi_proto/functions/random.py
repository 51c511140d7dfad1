"""Functions that draw random numbers.

Each draw takes seed and offset from the generator and leaves an advanced offset in it: the same state gives the same
numbers, successive calls give different ones. NULL stands for a generator the implementation keeps by itself. Which
numbers a state gives is the implementation's own affair; their distribution, and their independence from element to
element, is the standard. Of tensors that are only filled, the former contents are not read; their dtype is what the
caller made it.
"""

from diopi_proto.dtypes import caller_chosen, floating, integer, position, real, same, truth
from diopi_proto.parameters import Context, Generator, In, InOut, Out, boolean, f64, i64
from diopi_proto.prototype import prototype
from diopi_proto.types import Dtype

BYTE_MASK = {"mask": (Dtype.uint8,)}


@prototype(dtypes=floating, result={"out": same, "mask": truth}, beyond_pytorch=BYTE_MASK, guarantee="random")
def diopiDropout(
    ctx: Context, out: Out, mask: Out | None, input: In, p: f64, train: boolean, generator: Generator | None
):
    """Zeroes elements with probability p and scales the others up: input · mask / (1 − p).

    mask: bool or uint8, 1 where the element is kept, 0 with probability p; of input's shape, or broadcast to it when
    smaller, one draw for every mask element then (whole channels with (N, C, 1, …)). p = 1 gives zeros.
    Not train: out is a copy of input, the generator is not used, mask is left alone and may be NULL.
    Errors: p outside [0, 1]. Source: torch.nn.functional.dropout, torch.native_dropout.
    """


@prototype(dtypes=floating, result={"mask": truth}, beyond_pytorch=BYTE_MASK, guarantee="random")
def diopiDropoutInp(ctx: Context, input: InOut, mask: Out | None, p: f64, train: boolean, generator: Generator | None):
    """`diopiDropout` in place of `input`; where not train, nothing is changed. Source: as `diopiDropout`."""


@prototype(dtypes=real, result=caller_chosen, guarantee="random")
def diopiRandomInp(ctx: Context, inout: Out, from_: i64, to: i64 | None, generator: Generator | None):
    """Fills `inout` with whole numbers, uniform in [from, to).

    to NULL: up to and including the largest number the dtype has (bool: 1), for floating dtypes up to and including
    2^(number of significant bits): 2^8 bfloat16, 2^11 float16, 2^24 float32, 2^53 float64.
    Errors: from ≥ to, bounds the dtype can't hold. Source: torch.Tensor.random_.
    """


@prototype(dtypes=floating, result=caller_chosen, guarantee="random")
def diopiUniformInp(ctx: Context, inout: Out, from_: f64, to: f64, generator: Generator | None):
    """Fills `inout` with numbers uniform in [from, to); with from where both are equal.

    Errors: from > to, a bound or a distance the dtype can't hold. Source: torch.Tensor.uniform_.
    """


@prototype(dtypes=floating, guarantee="random")
def diopiBernoulli(ctx: Context, out: Out, input: In, generator: Generator | None):
    """1 with the probability given by input's element, else 0, in the dtype of `out`; both tensors have one shape.

    Errors: a probability outside [0, 1], which may be left undetected. Source: torch.bernoulli.
    """


@prototype(dtypes=floating, guarantee="random")
def diopiBernoulliInp(ctx: Context, inout: InOut, generator: Generator | None):
    """`diopiBernoulli` in place: every element is the probability of the 1 that replaces it.

    Source: torch.bernoulli.
    """


@prototype(dtypes=real, result=caller_chosen, guarantee="random")
def diopiBernoulliScalar(ctx: Context, out: Out, p: f64, generator: Generator | None):
    """Fills `out` with 1 with probability p, else 0. Errors: p outside [0, 1]. Source: torch.Tensor.bernoulli_."""


@prototype(dtypes=floating, result=caller_chosen, guarantee="random")
def diopiNormal(ctx: Context, out: Out, mean: f64, std: f64, generator: Generator | None):
    """Fills `out` with numbers of the normal distribution N(mean, std²); with mean if std is 0 or mean is not finite.

    An infinite std leaves the results open. Errors: std < 0. Source: torch.normal.
    """


@prototype(dtypes=floating, result=caller_chosen, guarantee="random")
def diopiNormalInp(ctx: Context, inout: Out, mean: f64, std: f64, generator: Generator | None):
    """Fills `inout` as `diopiNormal` does. Source: torch.Tensor.normal_."""


@prototype(dtypes=floating, guarantee="random")
def diopiNormalTensorScalar(ctx: Context, out: Out, mean: In, std: f64, generator: Generator | None):
    """Each element of N(mean, std²) with its own mean; out has mean's shape. Errors: std < 0. Source: torch.normal."""


@prototype(dtypes=floating, guarantee="random")
def diopiNormalScalarTensor(ctx: Context, out: Out, mean: f64, std: In, generator: Generator | None):
    """Each element of N(mean, std²) with its own std; out has std's shape.

    Errors: a negative std, which may be left undetected. Source: torch.normal.
    """


@prototype(dtypes=floating, guarantee="random")
def diopiNormalTensor(ctx: Context, out: Out, mean: In, std: In, generator: Generator | None):
    """Each element of N(mean, std²) with its own mean and std, the two broadcast together to the shape of `out`.

    out has mean's dtype. Errors: a negative std, which may be left undetected. Source: torch.normal.
    """


@prototype(dtypes=(*floating, *integer), result=position, guarantee="random")
def diopiRandperm(ctx: Context, out: Out, n: i64, generator: Generator | None):
    """The numbers 0 … n − 1 in random order, every order equally likely.

    out: (n), as a rule int64; another dtype must hold n − 1 exactly. Errors: n < 0. Source: torch.randperm.
    """


@prototype(dtypes=floating, result=position, guarantee="random")
def diopiMultinomial(
    ctx: Context, out: Out, input: In, num_samples: i64, replacement: boolean, generator: Generator | None
):
    """Indices drawn in proportion to weights, num_samples of every row of input.

    input: (n) or (rows, n), weights ≥ 0 and finite, not all 0, whatever their sum; out: int64, (num_samples) or
    (rows, num_samples). Without replacement an index drawn is put aside: no index comes twice, and weight 0 only when
    no other is left. Errors: num_samples < 1, or > n without replacement; weights that are negative, not finite or all
    0, which may be left undetected. Source: torch.multinomial.
    """

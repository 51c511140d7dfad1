"""Functions of random numbers: each call uses a generator seeded with a hash of seed and offset.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as PyTorch tensors and Python values, with None for
an omitted argument. It returns the results. `out` describes results that the caller allocates: their shapes and
element types.
"""

from __future__ import annotations

import torch
from torch import Tensor

from diopi_impl.specs import ResultSpec
from diopi_impl.torch_cpu.adapter import torch_dtype
from diopi_impl.torch_cpu.generators import seeded_generator
from diopi_impl.torch_cpu.registration import implements_random


def _empty(out: ResultSpec) -> Tensor:
    """Return an uninitialized tensor with the shape and type of the result."""
    return torch.empty(out.shape, dtype=torch_dtype(out.dtype))


@implements_random("diopiDropout", "diopiDropoutInp")
def dropout(input, p, train, generator, *, out):
    """Return the input with elements replaced by 0 with probability p, divided by 1 − p, and the mask."""
    if not train:
        return input, None
    mask = input.new_empty(out[1].shape if out[1] else input.shape).bernoulli_(
        1 - p, generator=seeded_generator(generator.tolist())
    )
    return input * (mask / (1 - p) if p < 1 else mask), mask


@implements_random("diopiRandomInp")
def random(from_, to, generator, *, out):
    """Return random integers in [from_, to)."""
    numbers = _empty(out)
    if from_ == 0 and to is None:
        return numbers.random_(generator=seeded_generator(generator.tolist()))
    return numbers.random_(from_, to, generator=seeded_generator(generator.tolist()))


@implements_random("diopiUniformInp")
def uniform(from_, to, generator, *, out):
    """Return random numbers in [from_, to)."""
    return _empty(out).uniform_(from_, to, generator=seeded_generator(generator.tolist()))


@implements_random("diopiBernoulli")
def bernoulli(input, generator):
    """Return random zeros and ones, which are 1 with probabilities `input`."""
    return torch.bernoulli(input, generator=seeded_generator(generator.tolist()))


@implements_random("diopiBernoulliInp")
def bernoulli_inp(inout, generator):
    """Return random zeros and ones, which are 1 with probabilities `inout`."""
    return torch.bernoulli(inout, generator=seeded_generator(generator.tolist()))


@implements_random("diopiBernoulliScalar")
def bernoulli_scalar(p, generator, *, out):
    """Return random zeros and ones, which are 1 with probability p."""
    return _empty(out).bernoulli_(p, generator=seeded_generator(generator.tolist()))


@implements_random("diopiNormal", "diopiNormalInp")
def normal_with_scalars(mean, std, generator, *, out):
    """Return random normal numbers with this mean and standard deviation."""
    return _empty(out).normal_(mean, std, generator=seeded_generator(generator.tolist()))


@implements_random("diopiNormalTensorScalar", "diopiNormalScalarTensor", "diopiNormalTensor")
def normal(mean, std, generator):
    """Return random normal numbers with a mean or a standard deviation per element."""
    return torch.normal(mean, std, generator=seeded_generator(generator.tolist()))


@implements_random("diopiRandperm")
def randperm(n, generator, *, out):
    """Return a random permutation of 0 … n − 1."""
    return torch.randperm(n, generator=seeded_generator(generator.tolist()), dtype=torch_dtype(out.dtype))


@implements_random("diopiMultinomial")
def multinomial(input, num_samples, replacement, generator):
    """Return random categories of each row, with or without replacement."""
    return torch.multinomial(input, num_samples, replacement, generator=seeded_generator(generator.tolist()))

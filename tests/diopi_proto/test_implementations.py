"""Implementations declare the parameters that they use, by name and in any order."""

from __future__ import annotations

from functools import partial

import pytest

from diopi_proto.implementations import ParameterError, accept_all, accept_all_by_name, takes_out
from diopi_test.oracle.reference import reference, separate_registry

PARAMETERS = ("input", "dim", "keepdim")


def test_function_with_all_parameters_in_order_is_returned_unchanged() -> None:
    def function(input, dim, keepdim, *, out): ...

    assert accept_all(function, "diopiSum", PARAMETERS) is function
    assert accept_all_by_name(function, "diopiSum", PARAMETERS) is function


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda: (), ()),
        (lambda dim: (dim,), (2,)),
        (lambda dim, keepdim: (dim, keepdim), (2, 3)),
        (lambda keepdim, input: (keepdim, input), (3, 1)),
        (lambda keepdim, dim, input: (keepdim, dim, input), (3, 2, 1)),
        (partial(lambda first, dim: (first, dim), 7), (7, 2)),
        (lambda dim, *, out: (dim, out), (2, 4)),
    ],
)
def test_declared_parameters_are_passed(function, expected) -> None:
    out = {"out": 4} if takes_out(function) else {}
    assert accept_all(function, "diopiSum", PARAMETERS)(1, 2, 3, **out) == expected
    by_name = accept_all_by_name(function, "diopiSum", PARAMETERS)
    assert takes_out(by_name) == takes_out(function)
    if not isinstance(function, partial):
        assert by_name(1, 2, 3, **out) == by_name(1, keepdim=3, dim=2, **out) == expected


def test_reference_with_some_parameters_rejects_unknown_arguments() -> None:
    sum_of = accept_all_by_name(lambda dim: dim, "diopiSum", PARAMETERS)
    for call in (lambda: sum_of(1, 2, 3, 4), lambda: sum_of(1, dim=2, axis=3)):
        with pytest.raises(TypeError, match=r"diopiSum takes \(input, dim, keepdim\)"):
            call()


def test_unknown_parameter_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(ParameterError) as caught:
        accept_all(lambda input, dims: input, "diopiSum", PARAMETERS)
    assert str(caught.value) == (
        "diopiSum: the implementation declares 'dims', the prototype has (input, dim, keepdim). Did you mean 'dim'?"
    )


def test_reference_may_declare_some_of_the_arguments() -> None:
    with separate_registry() as references:
        reference("diopiSoftmax")(lambda dim: dim)
        found = references["diopiSoftmax"]
        assert found(None, 1) == found(input=None, dim=1) == 1
        with pytest.raises(ValueError, match=r"diopiSoftmax: the implementation declares 'axis'"):
            reference("diopiSoftmax")(lambda axis: axis)

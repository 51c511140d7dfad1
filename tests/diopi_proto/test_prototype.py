"""`@prototype` enters a function and its forms in the registry, and refuses what contradicts itself."""

import pytest

from diopi_proto.dtypes import boolean, complexes, component, floated, floating, index, integer, promoted, real, same
from diopi_proto.dtypes import position as positions
from diopi_proto.parameters import (
    Context,
    Count,
    In,
    InOut,
    InOuts,
    Ins,
    NewOut,
    Out,
    Outs,
    Parameter,
    Scalar,
    f64,
    i64,
)
from diopi_proto.prototype import PROMISES, Prototype, PrototypeError, prototype, registered
from diopi_proto.types import Dtype


@pytest.fixture(autouse=True)
def _registry_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diopi_proto.prototype._registry", {})


def signature(declared: Prototype) -> dict[str, object]:
    return {parameter.name: parameter.annotation for parameter in declared.parameters}


def declare_combination() -> Prototype:
    @prototype(
        dtypes=real,
        result=promoted,
        inplace="diopiCombineInp",
        scalar="diopiCombineScalar",
        inplace_scalar="diopiCombineInpScalar",
        backward="diopiCombineBackward",
    )
    def diopiCombine(ctx: Context, out: Out, input: In, low: In | None, high: In, alpha: f64) -> None:
        """Something of input,

        low and high.
        """

    return diopiCombine


def test_a_function_becomes_a_prototype() -> None:
    combine = declare_combination()
    assert isinstance(combine, Prototype)
    assert combine.name == combine.base == "diopiCombine"
    assert combine.family == "test_prototype"
    assert combine.form == "plain"
    assert not combine.is_inplace
    assert combine.doc == "Something of input,\n\nlow and high."
    assert combine.parameters == (
        Parameter("ctx", Context),
        Parameter("out", Out),
        Parameter("input", In),
        Parameter("low", In, optional=True),
        Parameter("high", In),
        Parameter("alpha", f64),
    )
    assert (combine.dtypes, combine.promise, combine.backward) == (real, "rounded", "diopiCombineBackward")
    assert combine.returns == "diopiError_t"


def test_the_registry_holds_the_function_and_its_forms() -> None:
    combine = declare_combination()
    assert registered()["diopiCombine"] is combine
    assert list(registered()) == ["diopiCombine", "diopiCombineInp", "diopiCombineScalar", "diopiCombineInpScalar"]


def test_inplace_form() -> None:
    declare_combination()
    inplace = registered()["diopiCombineInp"]
    assert signature(inplace) == {"ctx": Context, "input": InOut, "low": In, "high": In, "alpha": f64}
    assert inplace.parameter("low").optional
    assert inplace.is_inplace


def test_scalar_form() -> None:
    declare_combination()
    scalar = registered()["diopiCombineScalar"]
    assert signature(scalar) == {
        "ctx": Context,
        "out": Out,
        "input": In,
        "low": Scalar,
        "high": Scalar,
        "alpha": f64,
    }
    assert [parameter.optional for parameter in scalar.parameters] == [False, False, False, True, False, False]
    assert not scalar.is_inplace


def test_inplace_scalar_form() -> None:
    declare_combination()
    both = registered()["diopiCombineInpScalar"]
    assert signature(both) == {"ctx": Context, "input": InOut, "low": Scalar, "high": Scalar, "alpha": f64}
    assert both.is_inplace


@pytest.mark.parametrize(
    ("name", "form", "first_words"),
    [
        ("diopiCombineInp", "inplace", "In-place form of `diopiCombine`:\n`input` is overwritten"),
        ("diopiCombineScalar", "scalar", "Scalar form of `diopiCombine`:\n`low` and `high` are given"),
        ("diopiCombineInpScalar", "inplace_scalar", "In-place scalar form of `diopiCombine`:\n`input` is overwritten"),
    ],
)
def test_what_forms_inherit(name: str, form: str, first_words: str) -> None:
    combine = declare_combination()
    derived = registered()[name]
    assert (derived.form, derived.base, derived.family) == (form, "diopiCombine", "test_prototype")
    assert derived.backward is None
    assert derived.doc.startswith(first_words)
    assert derived.doc.endswith(combine.doc)
    assert derived.result is promoted


def test_scalar_arguments_name_what_becomes_a_number() -> None:
    @prototype(dtypes=real, scalar="diopiPickScalar", scalar_arguments=["input"])
    def diopiPick(ctx: Context, out: Out, condition: In, input: In, other: In) -> None:
        """input where condition, else other."""

    scalar = registered()["diopiPickScalar"]
    assert signature(scalar) == {"ctx": Context, "out": Out, "condition": In, "input": Scalar, "other": In}
    assert scalar.doc.startswith("Scalar form of `diopiPick`:\n`input` is given")


def test_inplace_form_of_arrays() -> None:
    @prototype(dtypes=floating, inplace="diopiForeachHalveInp")
    def diopiForeachHalve(ctx: Context, outs: Outs, inputs: Ins, count: Count) -> None:
        """Half of every tensor."""

    assert signature(registered()["diopiForeachHalveInp"]) == {"ctx": Context, "inputs": InOuts, "count": Count}


def test_inplace_form_accepts_the_dtypes_that_hold_their_result() -> None:
    @prototype(dtypes=(*real, *complexes), result=floated, inplace="diopiRootInp")
    def diopiRoot(ctx: Context, out: Out, input: In) -> None:
        """Root."""

    @prototype(dtypes=(*floating, *complexes), result=component, inplace="diopiModulusInp")
    def diopiModulus(ctx: Context, out: Out, input: In) -> None:
        """Modulus."""

    assert registered()["diopiRootInp"].dtypes == (*floating, *complexes)
    assert registered()["diopiModulusInp"].dtypes == floating, "PyTorch refuses a modulus in a complex tensor"
    assert diopiRoot.dtypes == (*real, *complexes)


def test_a_name_is_declared_once() -> None:
    declare_combination()
    with pytest.raises(PrototypeError, match="diopiCombine is declared twice: in test_prototype and test_prototype"):
        declare_combination()


def test_a_form_does_not_take_a_declared_name() -> None:
    declare_combination()
    with pytest.raises(PrototypeError, match="diopiCombineInp is declared twice"):

        @prototype(dtypes=real, inplace="diopiCombineInp")
        def diopiOther(ctx: Context, out: Out, input: In) -> None:
            """Another function."""


def test_meaning_is_required() -> None:
    with pytest.raises(PrototypeError, match="diopiMute has no docstring"):

        @prototype(dtypes=real)
        def diopiMute(ctx: Context, out: Out, input: In) -> None: ...

    assert registered() == {}


def test_promises_are_known() -> None:
    with pytest.raises(PrototypeError, match=r"diopiRash: promise 'precise' is not one of .*'exact'"):

        @prototype(dtypes=real, promise="precise")
        def diopiRash(ctx: Context, out: Out, input: In) -> None:
            """Rash."""

    assert PROMISES == ("exact", "rounded", "any", "random")


def test_unknown_annotations_are_refused() -> None:
    with pytest.raises(TypeError, match="parameter alpha: <class 'float'> is not a parameter type"):

        @prototype(dtypes=real)
        def diopiOdd(ctx: Context, out: Out, input: In, alpha: float) -> None:
            """Odd."""


def declare_search() -> Prototype:
    @prototype(
        dtypes=real,
        argument_dtypes={"mask": boolean, "start": index},
        result={"values": same, "indices": positions, "state": same},
        promise="any",
    )
    def diopiSearch(
        ctx: Context,
        values: Out,
        indices: NewOut,
        input: In,
        mask: In | None,
        start: In,
        k: i64,
        n: Count,
        state: InOut,
    ) -> None:
        """Search."""

    return diopiSearch


def test_arguments_and_results_are_in_c_order() -> None:
    search = declare_search()
    assert [parameter.name for parameter in search.arguments] == ["input", "mask", "start", "k", "state"]
    assert [parameter.name for parameter in search.results] == ["values", "indices", "state"]


def test_dtypes_of_an_argument() -> None:
    search = declare_search()
    assert search.dtypes_of("input") == real
    assert search.dtypes_of("mask") == boolean
    assert search.dtypes_of("start") == index
    with pytest.raises(KeyError, match=r"diopiSearch has no parameter 'stop', it has .*'start'"):
        search.dtypes_of("stop")


def test_result_dtypes() -> None:
    search, combine = declare_search(), declare_combination()
    inputs = [Dtype.int16, Dtype.bool, Dtype.int32]
    assert search.result_dtype("values", inputs) is Dtype.int16
    assert search.result_dtype("indices", inputs) is Dtype.int64
    assert combine.result_dtype("out", inputs) is Dtype.int32


def test_a_form_with_several_results_accepts_what_the_plain_one_does() -> None:
    @prototype(dtypes=integer, result={"out": floated, "count": positions}, inplace="diopiTallyInp")
    def diopiTally(ctx: Context, out: Out, input: In, count: NewOut) -> None:
        """Tally."""

    assert registered()["diopiTallyInp"].dtypes == integer


def test_text_queries_return_text() -> None:
    @prototype(returns="const char*")
    def diopiGetMotto() -> None:
        """The motto."""

    assert (diopiGetMotto.returns, diopiGetMotto.parameters) == ("const char*", ())

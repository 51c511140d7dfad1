"""`@prototype` registers a function and its forms, and rejects contradictory declarations."""

from dataclasses import replace
from typing import Annotated

import pytest

from diopi_proto.callers import CallForm
from diopi_proto.declaration import arithmetic, prototype
from diopi_proto.dtypes import (
    boolean,
    complexes,
    component,
    floating,
    index,
    integer,
    promoted,
    promoted_to_floating,
    real,
    same,
)
from diopi_proto.dtypes import position as positions
from diopi_proto.facts import LessThanSize, MayAlias
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import (
    Axis,
    Context,
    Count,
    Factor,
    In,
    InOut,
    InOuts,
    Ins,
    NewOut,
    Out,
    Outs,
    Parameter,
    Scalar,
    Size,
    Text,
    f64,
    i64,
)
from diopi_proto.prototype import GUARANTEES, Prototype, PrototypeError, registered_prototypes
from diopi_proto.types import Dtype
from diopi_proto.types import Scalar as Scalar_


@pytest.fixture(autouse=True)
def _separate_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test an empty registry of prototypes."""
    monkeypatch.setattr("diopi_proto.prototype._registry", {})


def signature(declared: Prototype) -> dict[str, object]:
    """Return the annotations of the parameters by name."""
    return {parameter.name: parameter.annotation for parameter in declared.parameters}


def declare_combination() -> Prototype:
    """Declare a prototype with in-place, scalar and backward forms."""

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
        Parameter(name="ctx", annotation=Context),
        Parameter(name="out", annotation=Out),
        Parameter(name="input", annotation=In),
        Parameter(name="low", annotation=In, optional=True),
        Parameter(name="high", annotation=In),
        Parameter(name="alpha", annotation=f64),
    )
    assert (combine.dtypes, combine.guarantee, combine.backward) == (real, "rounded", "diopiCombineBackward")
    assert combine.returns == "diopiError_t"


def test_the_registry_contains_the_function_and_its_forms() -> None:
    combine = declare_combination()
    assert registered_prototypes()["diopiCombine"] is combine
    assert list(registered_prototypes()) == [
        "diopiCombine",
        "diopiCombineInp",
        "diopiCombineScalar",
        "diopiCombineInpScalar",
    ]


def test_the_inplace_form_overwrites_its_first_argument() -> None:
    declare_combination()
    inplace = registered_prototypes()["diopiCombineInp"]
    assert signature(inplace) == {"ctx": Context, "input": InOut, "low": In, "high": In, "alpha": f64}
    assert inplace.parameter("low").optional
    assert inplace.is_inplace


def test_the_scalar_form_takes_a_number() -> None:
    declare_combination()
    scalar = registered_prototypes()["diopiCombineScalar"]
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


def test_the_inplace_scalar_form_overwrites_and_takes_a_number() -> None:
    declare_combination()
    form = registered_prototypes()["diopiCombineInpScalar"]
    assert signature(form) == {"ctx": Context, "input": InOut, "low": Scalar, "high": Scalar, "alpha": f64}
    assert form.is_inplace


@pytest.mark.parametrize(
    ("name", "form", "first_words"),
    [
        ("diopiCombineInp", "inplace", "In-place form of `diopiCombine`:\n`input` is overwritten"),
        ("diopiCombineScalar", "scalar", "Scalar form of `diopiCombine`:\n`low` and `high` are passed"),
        ("diopiCombineInpScalar", "inplace_scalar", "In-place scalar form of `diopiCombine`:\n`input` is overwritten"),
    ],
)
def test_forms_inherit_facts_and_docstring(name: str, form: str, first_words: str) -> None:
    combine = declare_combination()
    derived = registered_prototypes()[name]
    assert (derived.form, derived.base, derived.family) == (form, "diopiCombine", "test_prototype")
    assert derived.backward is None
    assert derived.doc.startswith(first_words)
    assert derived.doc.endswith(combine.doc)
    assert derived.result is promoted


def test_only_scalar_arguments_become_numbers() -> None:
    @prototype(dtypes=real, scalar="diopiPickScalar", scalar_arguments=["input"])
    def diopiPick(ctx: Context, out: Out, condition: In, input: In, second: In) -> None:
        """input where condition, else second."""

    scalar = registered_prototypes()["diopiPickScalar"]
    assert signature(scalar) == {"ctx": Context, "out": Out, "condition": In, "input": Scalar, "second": In}
    assert scalar.doc.startswith("Scalar form of `diopiPick`:\n`input` is passed")


def test_the_inplace_form_of_arrays_overwrites_every_entry() -> None:
    @prototype(dtypes=floating, inplace="diopiForeachHalveInp")
    def diopiForeachHalve(ctx: Context, outs: Outs, inputs: Ins, count: Count) -> None:
        """Half of every tensor."""

    assert signature(registered_prototypes()["diopiForeachHalveInp"]) == {
        "ctx": Context,
        "inputs": InOuts,
        "count": Count,
    }


def test_inplace_form_accepts_only_dtypes_that_can_store_the_result() -> None:
    @prototype(dtypes=(*real, *complexes), result=promoted_to_floating, inplace="diopiRootInp")
    def diopiRoot(ctx: Context, out: Out, input: In) -> None:
        """Root."""

    @prototype(dtypes=(*floating, *complexes), result=component, inplace="diopiModulusInp")
    def diopiModulus(ctx: Context, out: Out, input: In) -> None:
        """Modulus."""

    assert registered_prototypes()["diopiRootInp"].dtypes == (*floating, *complexes)
    assert registered_prototypes()["diopiModulusInp"].dtypes == floating, (
        "PyTorch refuses a modulus in a complex tensor"
    )
    assert diopiRoot.dtypes == (*real, *complexes)


def test_a_second_declaration_of_a_name_is_rejected() -> None:
    declare_combination()
    with pytest.raises(PrototypeError, match=r"diopiCombine.*test_prototype"):
        declare_combination()


def test_a_form_with_a_declared_name_is_rejected() -> None:
    declare_combination()
    with pytest.raises(PrototypeError, match="diopiCombineInp"):

        @prototype(dtypes=real, inplace="diopiCombineInp")
        def diopiOther(ctx: Context, out: Out, input: In) -> None:
            """Another function."""


def test_a_docstring_is_required() -> None:
    with pytest.raises(PrototypeError, match="diopiMute"):

        @prototype(dtypes=real)
        def diopiMute(ctx: Context, out: Out, input: In) -> None: ...

    assert registered_prototypes() == {}


def test_an_unknown_guarantee_is_rejected() -> None:
    with pytest.raises(PrototypeError, match=r"diopiRash.*'precise'.*'exact'"):

        @prototype(dtypes=real, guarantee="precise")
        def diopiRash(ctx: Context, out: Out, input: In) -> None:
            """Rash."""

    assert GUARANTEES == ("exact", "rounded", "any_of", "random")


def test_unknown_annotations_are_rejected() -> None:
    with pytest.raises(TypeError, match="parameter alpha: <class 'float'>"):

        @prototype(dtypes=real)
        def diopiOdd(ctx: Context, out: Out, input: In, alpha: float) -> None:
            """Odd."""


def declare_search() -> Prototype:
    """Declare a prototype with several results of different types."""

    @prototype(
        dtypes=real,
        argument_dtypes={"mask": boolean, "start": index},
        result={"values": same, "indices": positions, "state": same},
        guarantee="any_of",
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


def test_an_argument_can_accept_other_dtypes() -> None:
    search = declare_search()
    assert search.dtypes_of("input") == real
    assert search.dtypes_of("mask") == boolean
    assert search.dtypes_of("start") == index
    with pytest.raises(KeyError, match="no parameter 'stop'"):
        search.dtypes_of("stop")


def test_a_form_with_several_results_accepts_the_dtypes_of_the_plain_function() -> None:
    @prototype(dtypes=integer, result={"out": promoted_to_floating, "count": positions}, inplace="diopiTallyInp")
    def diopiTally(ctx: Context, out: Out, input: In, count: NewOut) -> None:
        """Tally."""

    assert registered_prototypes()["diopiTallyInp"].dtypes == integer


def test_text_queries_return_text() -> None:
    @prototype(returns="const char*")
    def diopiGetMotto() -> None:
        """The motto."""

    assert (diopiGetMotto.returns, diopiGetMotto.parameters) == ("const char*", ())


# What is ignored.


class FakeTensor:
    """A tensor that has only the properties that conditions examine."""

    dtype = Dtype.float32


def declare_pooling(*facts: Ignored) -> Prototype:
    """Declare a prototype with these ignored arguments."""

    @prototype(dtypes=real, ignored=facts, inplace="diopiPoolingInp", scalar="diopiPoolingScalar")
    def diopiPooling(ctx: Context, out: Out, input: In, places: In, mode: Text, factor: Scalar) -> None:
        """Pools input. Source: nowhere."""

    return diopiPooling


def call(mode: str = "avg", factor: object = 1, places: object = None) -> dict[str, object]:
    """Return arguments for the prototype of `declare_pooling`."""
    return {"input": FakeTensor(), "places": places, "mode": mode, "factor": factor}


def test_unread_arguments_depend_on_the_call() -> None:
    pooling = declare_pooling(
        Ignored(("places",), "means have none", {"mode": "avg"}),
        Ignored(("factor",), "it says how", read=Read.value),
        Ignored(("input",), "all is 0", {"factor": 0}, Read.form),
    )
    assert pooling.unread_arguments(call("avg")) == {"places"}
    assert pooling.unread_arguments(call("max")) == set()
    assert not pooling.has_effect("places", call("avg"))
    assert pooling.has_effect("places", call("max"))
    assert not pooling.has_effect("factor", call("max"))
    assert pooling.has_effect("input", call("max"))
    assert not pooling.has_effect("input", call(factor=Scalar_(Dtype.float64, 0.0)))


def test_conditions_are_about_values_and_about_element_types_of_tensors() -> None:
    (fact,) = declare_pooling(
        Ignored(("factor",), "why", {"places": (Dtype.int32, Dtype.float32), "mode": ("a", "b")})
    ).ignored
    assert fact.covers(call("b", places=FakeTensor()))
    assert not fact.covers(call("c", places=FakeTensor()))
    assert not fact.covers(call("b", places=None))


def test_forms_ignore_the_same_arguments() -> None:
    pooling = declare_pooling(Ignored(("places",), "means have none", {"mode": "avg"}))
    for form in ("diopiPoolingInp", "diopiPoolingScalar"):
        assert registered_prototypes()[form].ignored == pooling.ignored


def test_the_docstring_states_which_arguments_are_not_read() -> None:
    pooling = declare_pooling(
        Ignored(("places", "factor"), "means have none", {"mode": ("avg", "sum")}),
        Ignored(("mode",), "it is the only one"),
        Ignored(("input",), "out has it", {"factor": 0, "places": Dtype.int32}, Read.form),
        Ignored(("factor",), "it says how", read=Read.value),
    )
    summary, paragraph = pooling.doc.split("\n\n")
    assert summary == "Pools input. Source: nowhere."
    assert paragraph.replace("\n", " ") == (
        'Where `mode` is "avg" or "sum", `places` and `factor` are not read and may be anything, including NULL: means '
        "have none. `mode` is not read and may be anything: it is the only one. "
        "Where `factor` is 0 and `places` is int32, the elements of `input` are not read, only shape and dtype: out "
        "has it."
    )
    assert all(len(line) <= 116 for line in paragraph.splitlines())
    assert registered_prototypes()["diopiPoolingInp"].doc.endswith(pooling.doc)


@pytest.mark.parametrize(
    ("fact", "message"),
    [
        (Ignored(("place",), "why"), "diopiPooling: 'place' in `ignored` is not one of its arguments"),
        (Ignored(("places",), "why", {"modes": "avg"}), "diopiPooling: 'modes' in `ignored` is not one of"),
        (Ignored(("out",), "why"), "diopiPooling: 'out' in `ignored` is not one of its arguments"),
        (
            Ignored(("input",), "why"),
            "diopiPoolingInp: a result that is updated in place can't be ignored in all calls",
        ),
    ],
)
def test_contradictory_ignored_facts_are_rejected(fact: Ignored, message: str) -> None:
    with pytest.raises(PrototypeError, match=message):
        declare_pooling(fact)


def test_numbers_promote_the_result_unless_they_are_truncated() -> None:
    @arithmetic(dtypes=real, result=promoted, truncates_numbers=True, scalar="diopiScaleScalar")
    def diopiScale(ctx: Context, out: Out, input: In, second: In, alpha: Factor) -> None:
        """Something of input and second."""

    scaled = registered_prototypes()["diopiScaleScalar"]
    assert [p.name for p in scaled.numbers] == ["second"]
    assert [p.name for p in scaled.operands] == ["input", "second"]
    arguments = {"input": Dtype.int8}, {"second": 0.5}
    assert scaled.find_conversions(*arguments, Dtype.float32) == (["input"], Dtype.float32)
    assert scaled.find_conversions(*arguments, Dtype.int8) == (["input"], Dtype.int8), "truncated"
    assert replace(scaled, common_type=False).operands == ()


def test_facts_must_refer_to_existing_parameters() -> None:
    with pytest.raises(PrototypeError, match=r"diopiAlign.*'paths'"):

        @prototype(dtypes=real)
        def diopiAlign(ctx: Context, out: Out, input: In, blank: Annotated[i64, LessThanSize("paths", 0)]) -> None:
            """Aligns."""


def test_facts_are_fields_of_the_prototype() -> None:
    with pytest.raises(TypeError, match="unordred"):

        @prototype(dtypes=real, unordred=True)
        def diopiMistyped(ctx: Context, out: Out, input: In) -> None:
            """Mistyped."""


def test_a_function_named_as_backward_is_a_gradient() -> None:
    @prototype(dtypes=floating)
    def diopiCombineBackward(ctx: Context, grad_input: Out, grad_output: In) -> None:
        """Gradient."""

    assert diopiCombineBackward.repeats_bits
    combine = declare_combination()
    assert diopiCombineBackward.is_gradient
    assert not diopiCombineBackward.repeats_bits
    assert combine.repeats_bits
    assert not replace(combine, has_unordered_sums=True).repeats_bits
    assert replace(combine, has_unordered_sums=True, guarantee="exact").repeats_bits
    assert not replace(combine, guarantee="any_of").repeats_bits


# What callers pass.


def declare_scaling(*forms: CallForm) -> Prototype:
    """Declare a prototype with these call forms."""

    @prototype(dtypes=real, call_forms=forms)
    def diopiScaling(
        ctx: Context, out: Annotated[Out, MayAlias("input")], input: In, table: In | None, sizes: Size
    ) -> None:
        """Scales input. Source: nowhere."""

    return diopiScaling


def test_the_docstring_states_what_callers_pass() -> None:
    form = CallForm(name="a", caller="Somebody", shapes={"input": ("B", 1, "H·D")}, missing=("table", "sizes"))
    second = replace(form, name="b", condition="At night", shapes={}, missing=("table",))
    ignored, called, overwritten = declare_scaling(form, second).doc.split("\n\n")
    assert called.replace("\n", " ") == (
        "Somebody passes `input` as [B, 1, H·D], NULL for `table`, an empty list for `sizes`. "
        "At night, Somebody passes NULL for `table`."
    )
    assert (ignored, overwritten) == ("Scales input. Source: nowhere.", "`out` may be the tensor of `input`.")


def test_call_forms_must_have_known_arguments_and_unique_names() -> None:
    with pytest.raises(PrototypeError, match="'out' in `call_forms`"):
        declare_scaling(CallForm(name="a", caller="Somebody", shapes={"out": ("B",)}))
    with pytest.raises(PrototypeError, match="`call_forms`"):
        declare_scaling(CallForm(name="a", caller="Somebody"), CallForm(name="a", caller="Somebody else"))


def test_a_fact_allows_a_result_to_overwrite_an_argument() -> None:
    assert declare_scaling().aliases == {"out": ("input",)}
    with pytest.raises(PrototypeError, match="'x'"):

        @prototype(dtypes=real)
        def diopiOther(ctx: Context, out: Annotated[Out, MayAlias("x")], input: In) -> None:
            """Does nothing. Source: nowhere."""


def test_pointwise_results_may_overwrite_every_tensor() -> None:
    @arithmetic(dtypes=real, inplace="diopiPlusInp", scalar="diopiPlusScalar")
    def diopiPlus(ctx: Context, out: Out, input: In, second: In) -> None:
        """Sum. Source: nowhere."""

    @arithmetic(dtypes=real)
    def diopiShares(ctx: Context, out: Out, input: In, dim: Axis) -> None:
        """Shares along an axis. Source: nowhere."""

    assert diopiPlus.aliases == {"out": ("input", "second")}
    assert registered_prototypes()["diopiPlusScalar"].aliases == {"out": ("input",)}
    assert registered_prototypes()["diopiPlusInp"].aliases == {"input": ("second",)}
    assert not diopiShares.aliases

"""A required case that has an equivalent in PyTorch passes when PyTorch is called directly."""

from dataclasses import replace

import pytest
from sampling import OPERATORS, sampled

from diopi_proto.interface import lookup, prototypes
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, CaseClass, ResultOverride, TensorSpec
from diopi_test.cases.layouts import channels_last, strided
from diopi_test.cases.selection import select_cases
from diopi_test.cases.selection.open_calls import reason_open
from diopi_test.execution.conversions import int32_indices
from diopi_test.execution.verdict import Verdict
from diopi_test.waivers.rules import waiver_problems

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

from direct_calls import outcomes, unmet_demands  # noqa: E402 - needs PyTorch

from diopi_impl.aten_cpu import vendor  # noqa: E402 - needs PyTorch

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # PyTorch warns about calls that it accepts


@pytest.mark.parametrize("function", sampled(filter(vendor.has, OPERATORS), 5, slow=7))
def test_pytorch_passes_the_required_cases(function: str) -> None:
    assert unmet_demands([function]) == []


def test_most_functions_have_an_equivalent_in_pytorch() -> None:
    assert sum(map(vendor.has, OPERATORS)) > 300


def test_waivers_of_the_direct_vendor_are_valid() -> None:
    assert [problem for waiver in vendor.waivers for problem in waiver_problems(waiver)] == []


def test_direct_calls_fail_where_the_adapter_converts_first() -> None:
    """`torch_cpu` converts indices and operands first, so it passes calls that PyTorch rejects."""
    found = {case.id: (case_class, outcome) for case, case_class, outcome in outcomes(["diopiOneHot", "diopiArgmin"])}
    for case_id in ("diopiOneHot[int32-vector]", "diopiArgmin[bool-rows]"):
        case_class, outcome = found[case_id]
        assert case_class is CaseClass.open
        assert outcome.verdict is Verdict.failed
        assert "Error" in outcome.message


def case_of(function: str, label: str = "float32", /, **arguments: object) -> Case:
    """Return a case with these arguments; the other arguments are None."""
    values = {p.name: arguments.get(p.name) for p in lookup(function).arguments}
    return Case(label, Dtype.float32, values)


def spec(dtype: Dtype, *shape: int) -> TensorSpec:
    """Return a tensor of this type and shape."""
    return TensorSpec(shape, dtype)


F16, F32, F64, I32, I64, BOOL = (
    Dtype.float16,
    Dtype.float32,
    Dtype.float64,
    Dtype.int32,
    Dtype.int64,
    Dtype.bool,
)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (spec(F16, 3, 4), spec(F32)),
        (spec(I32), spec(Dtype.int8, 2)),
        (spec(F32, 2), spec(F64)),
        (spec(I32, 2), spec(F16)),
        (spec(F32, 2), spec(Dtype.complex128)),
        (spec(BOOL, 2), spec(I64)),
        (spec(F16, 3, 4), spec(F32, 1)),
        (spec(F32), spec(F64)),
    ],
    ids=lambda tensor: f"{tensor.dtype.name}{tensor.shape}",
)
def test_call_is_open_if_pytorch_promotes_a_zero_dim_tensor_otherwise(first: TensorSpec, second: TensorSpec) -> None:
    """`torch.result_type` provides PyTorch's common type."""
    tensors = [torch.empty(tensor.shape, dtype=getattr(torch, tensor.dtype.name)) for tensor in (first, second)]
    in_pytorch = str(torch.result_type(*tensors)).removeprefix("torch.")
    case = case_of("diopiMul", input=first, other=second)
    standard = lookup("diopiMul").infer("out", case.arguments)
    assert standard is not None
    assert bool(reason_open(lookup("diopiMul"), case)) == (standard.name != in_pytorch)


def test_results_that_an_integer_tensor_cannot_hold_in_place_are_open() -> None:
    half = case_of("diopiPowInpTensor", input=spec(I32, 4), exponent=spec(F16, 4))
    assert "in place" in reason_open(lookup("diopiPowInpTensor"), half)
    assert not reason_open(
        lookup("diopiPowInpTensor"), case_of("diopiPowInpTensor", input=spec(F32, 4), exponent=spec(I32, 4))
    )
    assert "in place" in reason_open(
        lookup("diopiForeachmulInpScalar"), case_of("diopiForeachmulInpScalar", inputs=[spec(I32, 4)], other=2.0)
    )


def test_integers_with_a_float_are_open_if_float32_rounds_them() -> None:
    prototype = lookup("diopiMulScalar")
    assert reason_open(prototype, case_of("diopiMulScalar", input=spec(I32, 4), other=2.5))
    assert not reason_open(prototype, case_of("diopiMulScalar", input=spec(I32, 4), other=2))
    assert not reason_open(prototype, case_of("diopiMulScalar", input=spec(Dtype.int8, 4), other=2.5))


def test_layouts_that_pytorch_misreads_are_open() -> None:
    prototype = lookup("diopiGroupNorm")
    usual = TensorSpec((2, 4, 3, 3), F32)
    for layout, is_open in ((channels_last, False), (strided, True)):
        case = case_of("diopiGroupNorm", input=replace(usual, layout=layout), num_groups=2, eps=1e-5)
        assert bool(reason_open(prototype, case)) is is_open


def test_unbatched_convolutions_are_open() -> None:
    labels = {
        name: {case.case_class for case in select_cases(name, "full") if case.label.endswith("unbatched")}
        for name in prototypes()
        if name.startswith(("diopiConvolution", "diopiConvTranspose"))
    }
    assert len(labels) == 8
    assert set(map(frozenset, labels.values())) == {frozenset({CaseClass.open})}


# Indices


def test_prototypes_state_the_index_types_that_pytorch_rejects() -> None:
    assert lookup("diopiIndexFill").is_beyond_pytorch("index", I32)
    assert not lookup("diopiIndexFill").is_beyond_pytorch("index", I64)
    assert not lookup("diopiGather").is_beyond_pytorch("index", I32)
    assert lookup("diopiSort").is_beyond_pytorch("indices", I32)
    assert not lookup("diopiRandperm").is_beyond_pytorch("out", I32), "the caller chooses its type"


FUNCTIONS_WITH_INDICES = (
    "diopiSort",
    "diopiGather",
    "diopiIndexSelect",
    "diopiOneHot",
    "diopiNLLLoss",
    "diopiEmbedding",
)


@pytest.mark.parametrize("function", FUNCTIONS_WITH_INDICES)
def test_int32_indices_are_open_exactly_if_pytorch_rejects_them(function: str) -> None:
    prototype = lookup(function)
    names = [*prototype.argument_dtypes, *(p.name for p in prototype.arguments), *(p.name for p in prototype.results)]
    declared = any(prototype.is_beyond_pytorch(name, I32) for name in names)
    from diopi_impl.aten_cpu import vendor
    from diopi_test.run.run_case import run_case

    found = [case for case, case_class, outcome in outcomes([function]) if outcome.verdict is Verdict.passed][:5]
    device = vendor.open_device()
    verdicts = [
        run_case(vendor, device, replace(converted, smoke=False)).verdict
        for case in found
        if (converted := int32_indices(case)) is not case
    ]
    device.close()
    assert verdicts
    assert {verdict is Verdict.passed for verdict in verdicts} == {not declared}


def test_int32_indices_are_required_if_the_run_requests_them() -> None:
    def open_only_because_of_int32_indices(function: str, level: str) -> list[str]:
        requested = select_cases(function, level, int32_indices=True)
        pairs = zip(select_cases(function, level), requested, strict=True)
        return [new.label for old, new in pairs if old.case_class is CaseClass.open and new.case_class.is_demanded]

    assert len(open_only_because_of_int32_indices("diopiIndexFill", "full")) == 13
    argmin = open_only_because_of_int32_indices("diopiArgmin", "full")
    assert argmin
    assert not any(label.startswith("bool") for label in argmin), "bool stays open"
    assert open_only_because_of_int32_indices("diopiGather", "full") == []
    assert open_only_because_of_int32_indices("diopiSort", "models") == []


def test_a_result_in_int32_is_open() -> None:
    prototype = lookup("diopiTopk")
    base = case_of("diopiTopk", input=spec(F32, 4), k=2, dim=0, largest=True, sorted=True)
    with_int32 = replace(base, results={"values": None, "indices": ResultOverride(I32)})
    assert reason_open(prototype, with_int32)
    assert not reason_open(prototype, with_int32, int32_indices=True)
    assert not reason_open(prototype, base)

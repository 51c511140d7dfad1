"""Operators that functions implement have the results, strides and types of the CPU, and call the right function."""

from collections.abc import Callable
from typing import Any

import pytest
from sampling import sampled
from torch_devices import AlteredVendor

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

import diopi_torch  # noqa: E402  # behind the check for PyTorch
from diopi_proto.types import Error  # noqa: E402  # behind the check, too
from diopi_torch.operators import kernels  # noqa: E402  # behind the check, too

functional = torch.nn.functional


def pad_by_reflection(x: Any, sizes: Any) -> Any:
    """Pad a tensor by reflection."""
    return functional.pad(x, sizes, "reflect")


def numbers(*shape: int, seed: int = 0, dtype: Any = None) -> Any:
    """Return a tensor of normally distributed random numbers."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


X, Y = numbers(3, 4), numbers(3, 4, seed=1)
N = torch.tensor([[1, 2, 3], [-4, 5, -6]])
B = X > 0
IMAGE, KERNEL = numbers(2, 3, 6, 6), numbers(4, 3, 3, 3, seed=1)


def to_device(value: Any) -> Any:
    """Return a value with its tensors on the device."""
    if isinstance(value, torch.Tensor):
        return value.to("diopi")
    return type(value)(map(to_device, value)) if isinstance(value, list | tuple) else value


def assert_agree(found: Any, expected: Any) -> None:
    """Assert that results lie on the device and agree with the CPU in values and strides."""
    if isinstance(expected, torch.Tensor):
        assert found.device.type == "diopi"
        assert found.stride() == expected.stride()
        torch.testing.assert_close(found.cpu(), expected, equal_nan=True)
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for actual, wanted in zip(found, expected, strict=True):
            assert_agree(actual, wanted)
    else:
        assert found == expected


CALLS = [
    (torch.add, (X, Y), "diopiAdd"),
    (torch.add, (X, 2), "diopiAddScalar"),
    (torch.add, (N, 2.5), "diopiAddScalar"),
    (torch.add, (N, B[:2, :3]), "diopiAdd"),
    (torch.mul, (X, torch.tensor(2.0)), "diopiMul"),
    (torch.sub, (X.T, Y.T), "diopiSub"),
    (torch.rsub, (X.double(), 0.1), "diopiSub"),
    (torch.div, (N, N), "diopiDiv"),
    (torch.floor_divide, (N, 2), "diopiDivScalar"),
    (torch.pow, (X, 2), "diopiPow"),
    (torch.exp, (IMAGE.to(memory_format=torch.channels_last),), "diopiExp"),
    (torch.exp, (N,), "diopiExp"),
    (torch.mm, (X, Y.T), "diopiMm"),
    (torch.addmm, (X[:, :3], X, Y.T), "diopiAddmm"),
    (torch.sum, (X,), "diopiSum"),
    (torch.sum, (N, 1, True), "diopiSum"),
    (torch.mean, (X, (0, 1)), "diopiMean"),
    (torch.max, (X, 1), "diopiMax"),
    (torch.argmax, (X, 0), "diopiArgmax"),
    (torch.sort, (X, 1, True), "diopiSort"),
    (torch.topk, (X, 2), "diopiTopk"),
    (torch.where, (B, X, Y), "diopiWhere"),
    (torch.cat, ([X, Y[:1]],), "diopiCat"),
    (torch.stack, ([X, Y], 1), "diopiStack"),
    (torch.nonzero, (B,), "diopiNonzero"),
    (torch.masked_select, (X, B), "diopiMaskedSelect"),
    (torch.equal, (X, X), "diopiEqual"),
    (torch.gather, (X, 1, torch.tensor([[0, 3]])), "diopiGather"),
    (torch.index_select, (X, 0, torch.tensor([2, 0])), "diopiIndexSelect"),
    (lambda x, i: x[i], (X, torch.tensor([2, 0])), "diopiIndex"),
    (torch.softmax, (X, 1), "diopiSoftmax"),
    (torch._foreach_add, ([X, Y], 2.0), "diopiForeachaddScalar"),
    (torch._foreach_mul, ([X, Y], [2.0, 3.0]), "diopiMulScalar"),
    (functional.conv2d, (IMAGE, KERNEL), "diopiConvolution2d"),
    (functional.conv1d, (IMAGE[..., 0], KERNEL[..., 0], None, 2), "diopiConvolution2d"),
    (functional.conv_transpose2d, (IMAGE, KERNEL.transpose(0, 1)), "diopiConvTranspose2d"),
    (functional.max_pool2d, (IMAGE, 2), "diopiMaxPool2dWithIndices"),
    (functional.avg_pool2d, (IMAGE, (3,), (2,), (1,)), "diopiAvgPool2d"),
    (functional.layer_norm, (X, (4,)), "diopiLayerNorm"),
    (functional.interpolate, (IMAGE, (9, 9)), "diopiUpsampleNearest"),
    (torch.isneginf, (X,), "diopiEqScalar"),
    (torch.complex, (X, Y), "diopiComplex"),
    (torch.ops.aten.native_dropout_backward, (X, B, 2.0), "diopiMul"),
    (torch.arange, (5,), None),
    (functional.hardsigmoid, (X,), "diopiClampScalar"),
    (functional.prelu, (IMAGE, torch.tensor([0.1, 0.2, 0.3])), "diopiWhere"),
    (functional.softplus, (X, 2.0, 1.5), "diopiLog1p"),
    (torch._weight_norm, (X, numbers(3, 1)), "diopiLinalgVecNorm"),
    (torch.ops.aten._euclidean_dist, (X, Y), "diopiCdist"),
    (functional.interpolate, (IMAGE[None], (3, 9, 9)), "diopiUpsampleNearest"),
    (torch.linalg.cholesky, (X @ X.T + torch.eye(3),), "diopiCholesky"),
    (torch.embedding_renorm_, (X.clone(), torch.tensor([2, 0, 2]), 0.5, 2.0), "diopiEmbeddingRenorm_"),
    (torch.remainder, (7, N), "diopiRemainder"),
    (functional.elu, (X,), "diopiExpm1"),
    (functional.glu, (X,), "diopiSigmoid"),
    (functional.logsigmoid, (X,), "diopiLog1p"),
    (functional.mish, (X,), "diopiTanh"),
    (functional.huber_loss, (X, Y), "diopiAbs"),
    (torch.nan_to_num, (X / (X > 0),), "diopiWhere"),
    (torch.dot, (X[0], Y[0]), "diopiSum"),
    (functional.pad, (IMAGE[None], (1, 2, 0, 1, 1, 0), "reflect"), "diopiIndex"),
    (torch.linalg.cross, (X[:, :3], Y[:, :3]), "diopiMul"),
    (torch.special.entr, (X.abs(),), "diopiLog"),
    (torch.index_add, (X, 0, torch.tensor([2, 2]), Y[:2]), "diopiIndexPut"),
]


@pytest.mark.parametrize(
    ("function", "arguments", "called"), sampled(CALLS, 20, slow=30), ids=lambda value: getattr(value, "__name__", "")
)
def test_results_equal_those_of_the_cpu(
    vendor: AlteredVendor, function: Callable[..., Any], arguments: Any, called: str | None
) -> None:
    assert_agree(
        function(*to_device(arguments)) if called else function(*arguments, device="diopi"), function(*arguments)
    )
    assert called is None or called in vendor.called
    assert diopi_torch.fallbacks() == {}


def test_indices_may_be_on_the_cpu(vendor: AlteredVendor) -> None:
    places, mask = torch.tensor([2, 0]), torch.tensor([True, False, True])
    x = to_device(X)
    assert_agree([x[places], x[mask], x[places, to_device(places)]], [X[places], X[mask], X[places, places]])
    x[places], x[:, places] = 3, 4
    expected = X.clone()
    expected[places], expected[:, places] = 3, 4
    assert_agree(x, expected)
    assert diopi_torch.fallbacks() == {}


def test_complex_numbers_run_on_the_cpu(vendor: AlteredVendor) -> None:
    z = torch.tensor([1 + 2j])
    assert_agree(to_device(z) * 2j, z * 2j)
    assert set(diopi_torch.fallbacks()) <= {"mul.Tensor", "mul.Scalar"} and diopi_torch.fallbacks()


def test_zero_gradients_are_allocated(vendor: AlteredVendor) -> None:
    x = X.to("diopi").requires_grad_()
    x.sgn().sum().backward()
    assert torch.equal(x.grad.cpu(), torch.zeros_like(X))


def test_batch_normalization_saves_nothing_in_evaluation(vendor: AlteredVendor) -> None:
    ones, running = torch.ones(4), (torch.tensor([1.0, 0.0, 2.0, 3.0]), torch.tensor([4.0, 1.0, 0.5, 2.0]))
    found = []
    for device in ("cpu", "diopi"):
        x = X.to(device).detach().requires_grad_()
        returned = torch.native_batch_norm(x, ones.to(device), None, *(r.to(device) for r in running), False, 0.1, 1e-5)
        returned[0].square().sum().backward()
        assert [tuple(tensor.shape) for tensor in returned] == [(3, 4), (0,), (0,)]
        found.append((returned[0].detach().cpu(), x.grad.cpu()))
    torch.testing.assert_close(found[1], found[0])
    assert diopi_torch.fallbacks() == {}


@pytest.mark.parametrize("parameters", [torch.bfloat16, torch.float32, None], ids=str)
def test_batch_normalization_saves_statistics_in_the_type_of_its_parameters(
    vendor: AlteredVendor, parameters: Any
) -> None:
    x, statistics = X.bfloat16(), [None] * 4 if parameters is None else [torch.ones(4, dtype=parameters)] * 4
    there_given = [tensor if tensor is None else tensor.to("diopi") for tensor in statistics]
    found = torch.native_batch_norm(x.to("diopi"), *there_given, True, 0, 1)
    expected = torch.native_batch_norm(x, *statistics, True, 0, 1)
    assert [tensor.dtype for tensor in found] == [tensor.dtype for tensor in expected]
    torch.testing.assert_close([tensor.cpu() for tensor in found], list(expected), rtol=0.02, atol=0.02)
    assert diopi_torch.fallbacks() == {}


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("wanted", [(), ("return_inverse",), ("return_counts",), ("return_inverse", "return_counts")])
def test_unique_returns_the_requested_results(vendor: AlteredVendor, axis: int | None, wanted: Any) -> None:
    values = torch.tensor([[3, 1, 1], [0, 2, 2], [3, 1, 1]])
    options = {"dim": axis, **dict.fromkeys(wanted, True)}
    assert_agree(torch.unique(values.to("diopi"), **options), torch.unique(values, **options))
    assert vendor.called == ["diopiUnique"]
    assert diopi_torch.fallbacks() == {}


def test_unrequested_results_of_unique_are_empty(vendor: AlteredVendor) -> None:
    operator = torch.ops.aten._unique2
    assert_agree(operator(N.to("diopi"), True, False, False), operator(N, True, False, False))


def test_decomposed_operators_have_all_overloads(vendor: AlteredVendor) -> None:
    x, out = X.to("diopi"), torch.empty(0, device="diopi")
    assert functional.hardsigmoid(x, inplace=True) is x
    assert_agree(x, functional.hardsigmoid(X))
    assert torch.ops.aten.softplus.out(x, out=out) is out
    assert_agree(out, functional.softplus(functional.hardsigmoid(X)))
    assert diopi_torch.fallbacks() == {}


@pytest.mark.parametrize(
    "function",
    [
        functional.hardsigmoid,
        functional.softplus,
        functional.prelu,
        lambda x, *_: pad_by_reflection(x[None], (1, 2, 0, 1)),
    ],
)
def test_decomposed_operators_have_gradients(function: Any, vendor: AlteredVendor) -> None:
    found, expected = X.to("diopi").requires_grad_(), X.clone().requires_grad_()
    for x in (found, expected):
        weight = [torch.tensor([0.25], device=x.device)] if function is functional.prelu else []
        function(x, *weight).square().sum().backward()
    assert_agree(found.grad, expected.grad)
    assert diopi_torch.fallbacks() == {}


def test_one_line_of_the_table_serves_every_overload() -> None:
    names = {"mul.Tensor", "mul_.Tensor", "mul.out"}
    assert {kernels()[name].row.operator for name in names} == {"mul.Tensor"}
    assert kernels()["sort.values_stable"].row.operator == "sort.stable"
    assert kernels()["arange.start_out"].row.operator == "arange.start_step"
    assert "arange.start_step" not in kernels(), "PyTorch makes the memory"
    assert "softmax.int" not in kernels(), "PyTorch composes it"


def test_output_arguments_are_written(vendor: AlteredVendor) -> None:
    x, out = X.to("diopi"), torch.zeros(4, 3, device="diopi").T
    address = out.data_ptr()
    assert torch.exp(x, out=out) is out
    assert (out.data_ptr(), out.stride()) == (address, (1, 3))
    assert_agree(out, torch.exp(X, out=torch.zeros(4, 3).T))
    wider = torch.empty(0, dtype=torch.float64, device="diopi")
    assert_agree(torch.add(x, x, out=wider), X.double() + X)
    with pytest.warns(UserWarning, match=r"\[2\].*\[3, 4\]"):
        assert_agree(torch.exp(x, out=torch.zeros(2, device="diopi")), X.exp())
    values, indices = torch.empty(0, device="diopi"), torch.empty(0, dtype=torch.int64, device="diopi")
    torch.max(x, 1, out=(values, indices))
    assert_agree((values, indices), tuple(torch.max(X, 1)))
    with pytest.raises(RuntimeError, match="cast"):
        torch.add(x, x, out=torch.empty(0, dtype=torch.int64, device="diopi"))


def test_a_result_may_overlap_an_argument(vendor: AlteredVendor) -> None:
    x, y = X.to("diopi"), Y.to("diopi")
    square = numbers(3, 3).to("diopi")
    expected = square.cpu() @ square.cpu()
    assert_agree(torch.mm(square, square, out=square), expected)
    assert_agree(torch.sub(x, y, out=y), X - Y)
    assert_agree(x.lerp_(x + 1, 0.25), X.lerp(X + 1, 0.25))


@pytest.mark.parametrize("lacks", [(), ("diopiMulInp", "diopiExpInp", "diopiIndexPutInp")], ids=["own", "plain"])
def test_in_place_operators_call_the_plain_function_if_the_form_is_missing(
    activate_vendor: Callable[[Any], Any], lacks: tuple[str, ...]
) -> None:
    used = activate_vendor(AlteredVendor(lacks=lacks))
    x, expected = X.to("diopi"), X.clone()
    view, plain = x[:, 1:3], expected[:, 1:3]
    assert view.mul_(Y.to("diopi")[:, :2]) is view
    view.exp_()
    x[torch.tensor([1], device="diopi")] = 0
    plain.mul_(Y[:, :2]).exp_()
    expected[1] = 0
    assert_agree(x, expected)
    assert ("diopiMul" in used.called) == bool(lacks) and ("diopiMulInp" in used.called) != bool(lacks)
    assert diopi_torch.fallbacks() == {}


def test_an_empty_view_may_start_beyond_the_end_of_its_storage(vendor: AlteredVendor) -> None:
    empty = torch.empty(0, 3, device="diopi").as_strided((0, 3), (3, 1), 7)
    assert_agree(empty + 1, torch.empty(0, 3))


def test_lists_are_written_in_place(vendor: AlteredVendor) -> None:
    xs, expected = [X.to("diopi"), Y.to("diopi")], [X.clone(), Y.clone()]
    torch._foreach_add_(xs, [x.clone() for x in xs], alpha=0.5)
    torch._foreach_add_(expected, [x.clone() for x in expected], alpha=0.5)
    assert_agree(xs, expected)
    assert "diopiAddInp" in vendor.called


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x + torch.ones(2, device="diopi"),
        lambda x: x.mm(x),
        lambda x: x.add_(torch.ones(2, 3, 4, device="diopi")),
        lambda x: torch.cat([x, x[0]]),
    ],
)
def test_invalid_arguments_raise_the_error_of_pytorch(vendor: AlteredVendor, call: Callable[[Any], Any]) -> None:
    before = list(vendor.called)
    with pytest.raises(RuntimeError, match=r"size|shape|dim"):
        call(torch.ones(3, 4, device="diopi"))
    assert [name for name in vendor.called[len(before) :] if name not in ("diopiOnes", "diopiFill")] == []


def test_tensors_on_different_devices_are_rejected_except_numbers(vendor: AlteredVendor) -> None:
    with pytest.raises(RuntimeError, match=r"\[3, 4\] on cpu"):
        X.to("diopi") + X
    assert_agree(X.to("diopi") + torch.tensor(2.0), X + 2)


@pytest.mark.parametrize(
    "code", [Error.NoImplement, Error.ForceFallbackToCPU, Error.DtypeNotSupported, Error._5DNotSupported]
)
def test_calls_that_a_vendor_declines_run_on_the_cpu(activate_vendor: Callable[[Any], Any], code: Error) -> None:
    activate_vendor(AlteredVendor(error_codes={"diopiExp": code}))
    x = X.to("diopi")
    assert_agree((x.exp(), torch.exp(x, out=torch.empty_like(x))), (X.exp(), X.exp()))
    assert diopi_torch.fallbacks() == {"exp": 1, "exp.out": 1}


@pytest.mark.parametrize("write", [lambda x, y: x.add_(y), lambda x, y: torch.add(y, 1, out=x)], ids=["add_", "out"])
def test_output_arguments_on_the_cpu_are_rejected(vendor: AlteredVendor, write: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(RuntimeError, match="same device"):
        write(torch.tensor(1.0), torch.tensor(1.0, device="diopi"))


def test_an_error_of_the_vendor_raises_an_error(activate_vendor: Callable[[Any], Any]) -> None:
    activate_vendor(AlteredVendor(error_codes={"diopiExp": Error.ErrorOccurred}))
    with pytest.raises(RuntimeError, match=r"altered_vendor: diopiExp.*ErrorOccurred"):
        X.to("diopi").exp()
    assert diopi_torch.fallbacks() == {}


@pytest.mark.parametrize("function", ["diopiAddInp", "diopiAdd"])
def test_a_partly_executed_operator_raises_an_error(activate_vendor: Callable[[Any], Any], function: str) -> None:
    class Once(AlteredVendor):
        def call(self, name: str, *arguments: Any) -> Error:
            repeated = name in self.called and name == function
            return Error.NoImplement if repeated else super().call(name, *arguments)

    activate_vendor(Once(lacks={"diopiAddInp"} - {function}))
    xs = [X.to("diopi"), Y.to("diopi")]
    with pytest.raises(RuntimeError, match=rf"{function}.*NoImplement"):
        torch._foreach_add_(xs, [x.clone() for x in xs])


@pytest.mark.parametrize("calls_torch", [True, False])
def test_a_vendor_can_call_pytorch(vendor: AlteredVendor, monkeypatch: pytest.MonkeyPatch, calls_torch: bool) -> None:
    gradients = []

    def call(*arguments: Any) -> Error:
        gradients.append((torch.ones(1, requires_grad=True) * 2).requires_grad)
        return AlteredVendor.call(vendor, *arguments)

    x = X.to("diopi")
    monkeypatch.setattr(vendor, "calls_torch", calls_torch)
    monkeypatch.setattr(vendor, "call", call)
    assert_agree(x + x, X + X)
    assert set(gradients) == {calls_torch}


def test_errors_of_composed_operators_and_of_outputs_are_those_of_the_cpu(vendor: AlteredVendor) -> None:
    x, numbers = torch.ones(5, 3, device="diopi"), torch.ones(3, dtype=torch.int64, device="diopi")
    with pytest.raises(RuntimeError, match=r"multi_margin_loss.*size equal to the number of input samples"):
        torch.nn.functional.multi_margin_loss(x, numbers)
    with pytest.raises(RuntimeError, match="Expected object of scalar type ComplexFloat"):
        torch.complex(x, x, out=torch.empty(5, 3, dtype=torch.complex128, device="diopi"))
    with pytest.raises(RuntimeError, match="multinomial expects Long tensor out"):
        torch.multinomial(x, 2, out=torch.empty(5, 2, device="diopi"))
    with pytest.raises(RuntimeError, match="unsupported operation"):
        torch.index_select(x, 1, numbers, out=torch.ones(1, 6, device="diopi").expand(2, 6))

"""The tracer records exactly the calls of a program."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from diopi_test.traces.calls import NetworkTrace  # noqa: E402  # behind the check for PyTorch
from diopi_test.traces.trace import trace_calls, trace_script, untraced  # noqa: E402  # behind the check, too

functional = torch.nn.functional
X = torch.arange(6.0).reshape(2, 3)


def calls(run: Callable[[], Any]) -> list[str]:
    """Return the distinct calls that a program makes."""
    return [call.key for call in model(run).calls]


def model(run: Callable[[], Any]) -> NetworkTrace:
    """Return the trace of a program."""
    with trace_calls() as tracer:
        run()
    return tracer.network_trace("net")


@pytest.mark.parametrize(
    ("run", "key"),
    [
        (lambda: X + X, "diopiAdd input=float32[2,3] other=float32[2,3] alpha=1 >out=float32[2,3]"),
        (lambda: X * 2.5, "diopiMulScalar input=float32[2,3] other=2.5 >out=float32[2,3]"),
        (lambda: X.clone().mul_(2), "diopiMulInpScalar input=float32[2,3] other=2"),
        (lambda: 1 - X, "diopiSub input=int64[] in 1..1 other=float32[2,3] alpha=1 >out=float32[2,3]"),
        (lambda: X.T.exp(), "diopiExp input=float32[3,2] strides 1,3 >out=float32[3,2] strides 1,3"),
        (lambda: X.sum(), "diopiSum input=float32[2,3] dim=() >out=float32[]"),
        (lambda: X.sum(1, keepdim=True), "diopiSum input=float32[2,3] dim=(1) >out=float32[2,1]"),
        (lambda: X.clamp(max=2.0), "diopiClampScalar input=float32[2,3] min=null max=2.0 >out=float32[2,3]"),
        (lambda: X[torch.tensor([1, 0, 1])], "diopiIndex input=float32[2,3] indices=(int64[3] in 0..1)"),
        (lambda: X.half(), "diopiCastDtype input=float32[2,3] >out=float16[2,3]"),
        (lambda: torch.cat([X, X], 1), "diopiCat tensors=(float32[2,3],float32[2,3]) dim=1 >out=float32[2,6]"),
        (lambda: torch.zeros(2), "diopiZeroInp >self=float32[2]"),
        (lambda: torch.randn(2), "diopiNormal mean=0 std=1 generator=1 >out=float32[2]"),
        (lambda: X.max(1), "diopiMax input=float32[2,3] dim=1 >max=float32[2] >max_indices=int64[2]"),
        (
            lambda: X.clone().lerp_(X, 0.5),
            "diopiLerpScalar input=float32[2,3] end=float32[2,3] weight=0.5 >out=float32[2,3]",
        ),
        (
            lambda: X.unique(return_inverse=True),
            "diopiUnique input=float32[2,3] dim=null sorted=True return_counts=False >indices=int64[2,3]",
        ),
        (
            lambda: X.unique(),
            "diopiUnique input=float32[2,3] dim=null sorted=True return_counts=False >indices=null",
        ),
        (lambda: torch.zeros(2).fill_(torch.tensor(3)), "diopiFill value=3 >input=float32[2]"),
        (
            lambda: functional.mse_loss(X, X),
            "diopiMSELoss input=float32[2,3] target=float32[2,3] reduction=mean >out=float32[]",
        ),
        (
            lambda: functional.conv1d(torch.ones(1, 2, 5), torch.ones(4, 2, 3), stride=2),
            "diopiConvolution2d input=float32[1,2,1,5] weight=float32[4,2,1,3] bias=null stride=(1,2) padding=(0,0) "
            "dilation=(1,1) groups=1 >out=float32[1,4,1,2]",
        ),
        (
            lambda: torch._foreach_mul([X, X[0]], [2.0, 3.0]),
            "diopiMulScalar input=float32[3] other=3.0 >out=float32[3]",
        ),
    ],
)
def test_a_call_is_recorded_with_its_arguments(run: Callable[[], Any], key: str) -> None:
    assert key in calls(run)


@pytest.mark.parametrize(
    ("run", "functions"),
    [
        (lambda: functional.hardsigmoid(X), ["diopiAddScalar", "diopiClampScalar", "diopiDivScalar"]),
        (lambda: functional.prelu(X, torch.ones(1)), ["diopiGtScalar", "diopiMul", "diopiWhere"]),
        (lambda: torch.ops.aten._prelu_kernel_backward(X, X, X[:1, :1]), ["diopiGtScalar", "diopiMul", "diopiWhere"]),
        (lambda: torch.ops.aten.hardsigmoid_backward(X, X), ["diopiBitwiseAnd", "diopiMulScalar", "diopiWhere"]),
        (lambda: functional.softplus(X), ["diopiExp", "diopiGtScalar", "diopiLog1p", "diopiWhere"]),
        (lambda: torch._weight_norm(X, torch.ones(2, 1)), ["diopiDiv", "diopiLinalgVecNorm", "diopiMul"]),
        (lambda: torch.ops.aten._euclidean_dist(X, X), ["diopiCdist"]),
    ],
)
def test_composite_operators_are_decomposed(run: Callable[[], Any], functions: list[str]) -> None:
    found = model(run)
    assert set(functions) <= {call.function for call in found.calls}
    assert found.not_mapped == {}


def test_views_and_allocations_are_not_recorded() -> None:
    assert calls(lambda: (X.T, X[0], X.view(3, 2), X.expand(4, 2, 3), torch.empty(3), X.detach(), X.sum)) == []


def test_equal_calls_are_counted() -> None:
    (call,) = model(lambda: [X.tanh() for _ in range(3)]).calls
    assert (call.function, call.count) == ("diopiTanh", 3)


def test_operators_without_a_function_are_counted() -> None:
    found = model(lambda: (X.erfc(), X.erfc(), X.lgamma()))
    assert found.calls == ()
    assert found.not_mapped == {"erfc": 2, "lgamma": 1}


def test_a_type_that_a_function_does_not_take_is_not_mapped() -> None:
    unusual = torch.ones(2, dtype=torch.uint16)
    assert model(lambda: unusual.clone()).not_mapped == {"clone does not support uint16": 1}
    assert model(lambda: X.to(torch.float8_e4m3fn)).not_mapped == {"_to_copy does not support unsupported": 1}


def test_a_result_of_another_type_than_the_function_gives_is_converted() -> None:
    assert calls(lambda: torch.ones(3, dtype=torch.int64) // 2)[:2] == [
        "diopiCastDtype input=float32[3] >out=int64[3]",
        "diopiDivScalar input=int64[3] in 1..1 other=2 rounding_mode=floor >out=float32[3]",
    ]


def test_gradients_that_are_not_requested_are_absent() -> None:
    weight = torch.ones(2, 1, 3, 3, requires_grad=True)
    found = model(lambda: functional.conv2d(torch.ones(1, 1, 5, 5), weight).sum().backward())
    (gradient,) = (call for call in found.calls if call.function == "diopiConvolution2dBackward")
    assert gradient.results["grad_input"] is None
    assert gradient.arguments["bias_sizes"] is None
    assert str(gradient.results["grad_weight"]) == "float32[2,1,3,3]"


def test_an_empty_array_is_absent() -> None:
    weight = torch.ones(3, requires_grad=True)
    weight.grad = torch.ones(3)
    found = model(lambda: torch.optim.AdamW([weight], fused=True).step())
    (step,) = (call for call in found.calls if call.function == "diopiFusedAdamW")
    assert step.arguments["max_exp_avg_sqs"] is None
    assert [str(entry) for entry in step.arguments["params"]] == ["float32[3]"]


def test_attention_is_decomposed() -> None:
    q = torch.ones(1, 2, 3, 4)
    found = model(lambda: functional.scaled_dot_product_attention(q, q, q, is_causal=True))
    assert {"diopiBmm", "diopiSoftmax"} <= set(found.functions)
    assert found.not_mapped == {}


def test_untraced_blocks_are_not_recorded() -> None:
    def run() -> None:
        X.exp()
        with untraced():
            X.log()
        X.sin()

    assert list(model(run).functions) == ["diopiExp", "diopiSin"]


def test_a_script_gets_its_arguments_and_may_exit(tmp_path: Path) -> None:
    script = tmp_path / "net.py"
    script.write_text("import sys, torch\ntorch.ones(int(sys.argv[1])).exp()\nsys.exit(0)\n")
    found = trace_script(script, ["7"], "net")
    assert [call.key for call in found.calls] == [
        "diopiExp input=float32[7] >out=float32[7]",
        "diopiOnes size=(7) >out=float32[7]",
    ]
    script.write_text("raise SystemExit('no such net')\n")
    with pytest.raises(SystemExit, match="net"):
        trace_script(script, [], "net")


def test_every_operator_of_a_training_step_is_mapped() -> None:
    def run() -> None:
        with untraced():
            net = torch.nn.Sequential(
                torch.nn.Linear(5, 4), torch.nn.LayerNorm(4), torch.nn.GELU(), torch.nn.Dropout(0.1)
            )
            optimizer = torch.optim.AdamW(net.parameters(), foreach=False)
        functional.cross_entropy(net(torch.ones(3, 5)), torch.tensor([0, 2, 3])).backward()
        optimizer.step()

    found = model(run)
    assert found.not_mapped == {}
    served = {
        "diopiAddmm",
        "diopiLayerNorm",
        "diopiLayerNormBackward",
        "diopiGelu",
        "diopiGeluBackward",
        "diopiNLLLossV2",
    }
    assert served | {"diopiBernoulliScalar", "diopiAddcdivInp", "diopiLogSoftmaxBackward"} <= set(found.functions)

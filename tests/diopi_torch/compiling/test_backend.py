"""`torch.compile(backend="diopi")` computes what eager mode computes, and raises the same errors."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

import pytest
from sampling import sampled

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

from torch import nn  # noqa: E402  # behind the check for PyTorch

import diopi_torch  # noqa: E402  # behind the check, too
from diopi_impl.torch_cpu import vendor as torch_cpu  # noqa: E402  # behind the check, too
from diopi_torch.compiling import stages  # noqa: E402  # behind the check, too
from diopi_torch.compiling.backend import compile_with_vendor  # noqa: E402  # behind the check, too
from diopi_torch.functions import watch_calls  # noqa: E402  # behind the check, too

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script_method`")  # TorchDynamo calls a deprecated function


@pytest.fixture(autouse=True)
def compiled_anew() -> None:
    """Let TorchDynamo forget what other tests compiled: it keeps compiled code per function, not per module."""
    torch._dynamo.reset()


class Attention(nn.Module):
    """A causal attention with an embedding before it and a normalization after it."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.projection, self.norm = nn.Embedding(11, 8), nn.Linear(8, 24), nn.LayerNorm(8)

    def forward(self, tokens: Any) -> Any:
        x = self.embedding(tokens)
        heads = (part.unflatten(2, (2, 4)).transpose(1, 2) for part in self.projection(x).chunk(3, -1))
        attended = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        return self.norm(x + attended.transpose(1, 2).flatten(2))


class Windows(nn.Module):
    """Convolutions over one and two axes, batch normalization and pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.along_rows = nn.Conv1d(3, 3, 3, padding=1, groups=3)
        self.convolution, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)

    def forward(self, x: Any) -> Any:
        rows = self.along_rows(x.flatten(2)).view_as(x)
        padded = nn.functional.pad(rows, (1, 1, 1, 1))
        return nn.functional.max_pool2d(self.norm(self.convolution(padded)).relu(), 2).mean((2, 3))


NETWORKS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Any]]] = {
    "attention": (Attention, lambda: torch.randint(11, (2, 5))),
    "perceptron": (lambda: nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 3)), lambda: torch.randn(4, 6)),
    "recurrent": (lambda: nn.Sequential(nn.Linear(6, 6), nn.GRUCell(6, 5)), lambda: torch.randn(4, 6)),
    "windows": (Windows, lambda: torch.randn(2, 3, 6, 6)),
}
"""Networks: a function that creates the module, and one that creates its input."""


def copies(name: str) -> tuple[nn.Module, nn.Module, Any]:
    """Return two equal modules on the device, the second one compiled, and an input."""
    create, example = NETWORKS[name]
    torch.manual_seed(3)
    eager, compiled = create().to("diopi"), create().to("diopi")
    compiled.load_state_dict(eager.state_dict())
    return eager, torch.compile(compiled, backend=compile_with_vendor), example().to("diopi")


def assert_close(actual: Any, expected: Any) -> None:
    """Assert that two tensors of the device are equal but for rounding, and have equal strides."""
    assert actual.device.type == "diopi"
    assert actual.stride() == expected.stride()
    torch.testing.assert_close(actual.detach().cpu(), expected.detach().cpu(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", sampled(NETWORKS, 1))
def test_results_gradients_and_buffers_are_those_of_eager_mode(name: str) -> None:
    eager, compiled, x = copies(name)
    results = [module(x) for module in (eager, compiled)]
    assert_close(results[1], results[0])
    for result in results:
        (result * result).sum().backward()
    for (parameter_name, expected), actual in zip(eager.named_parameters(), compiled.parameters(), strict=True):
        assert_close(actual.grad, expected.grad), parameter_name
    for expected, actual in zip(eager.buffers(), compiled.buffers(), strict=True):
        assert_close(actual, expected)


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> list[list[stages.Stage]]:
    """Return a list that receives the stages of each graph that is compiled."""
    import diopi_torch.compiling.backend as module

    found: list[list[stages.Stage]] = []

    def divide(*arguments: Any) -> list[stages.Stage]:
        found.append(stages.divide(*arguments))
        return found[-1]

    monkeypatch.setattr(module, "divide", divide)
    return found


@pytest.mark.slow
def test_forward_pass_gradient_and_optimizer_are_one_program_each(divided: list[list[stages.Stage]]) -> None:
    eager, compiled, x = copies("perceptron")
    expected, updated = (torch.optim.AdamW(module.parameters(), lr=0.1) for module in (eager, compiled))
    step = torch.compile(updated.step, backend=compile_with_vendor)
    for _ in range(2):
        for module, update in ((eager, expected.step), (compiled, step)):
            module.zero_grad()
            module(x).square().sum().backward()
            update()
    for before, after in zip(eager.parameters(), compiled.parameters(), strict=True):
        assert_close(after, before)
    assert len(divided) == 3
    programs = [[type(stage) for stage in graph if type(stage) is not stages.WriteStage] for graph in divided]
    assert all(graph == [stages.ProgramStage] for graph in programs)


def test_a_parameter_that_a_program_changes_has_a_new_version() -> None:
    x = torch.ones(3, device="diopi")
    version = x._version

    def double(x: Any) -> None:
        x.mul_(2)

    torch.compile(double, backend=compile_with_vendor)(x)
    assert x.tolist() == [2, 2, 2]
    assert x._version > version


def test_random_operators_draw_the_numbers_of_eager_mode(divided: list[list[stages.Stage]]) -> None:
    def function(x: Any) -> Any:
        return nn.functional.dropout(nn.functional.dropout(x * 2, 0.5) + 1, 0.25)

    x = torch.randn(64, device="diopi")
    results = []
    for call in (function, torch.compile(function, backend=compile_with_vendor)):
        torch.manual_seed(5)
        results.append(call(x))
    assert_close(results[1], results[0])
    assert stages.OperatorStage in map(type, divided[0])


def test_sizes_may_vary_between_calls() -> None:
    compiled = torch.compile(lambda x: (x.softmax(0) * 2).sum(1), backend=compile_with_vendor, dynamic=True)
    for rows in (2, 3, 5):
        x = torch.randn(rows, 4)
        assert_close(compiled(x.to("diopi")), (x.softmax(0) * 2).sum(1).to("diopi"))


def test_a_target_that_is_no_class_raises_the_error_of_eager_mode() -> None:
    compiled = torch.compile(lambda x, y: nn.functional.cross_entropy(x * 2, y), backend=compile_with_vendor)
    with pytest.raises(IndexError):
        compiled(torch.randn(2, 3, device="diopi"), torch.tensor([0, 3], device="diopi"))


def test_classes_are_checked_if_their_number_varies_between_calls() -> None:
    compiled = torch.compile(
        lambda x, y: nn.functional.cross_entropy(x * 2, y), backend=compile_with_vendor, dynamic=True
    )
    targets = torch.tensor([0, 3], device="diopi")
    for classes in (5, 4, 3, 5):
        scores = torch.randn(2, classes, device="diopi")
        if classes > 3:
            assert_close(compiled(scores, targets), nn.functional.cross_entropy(scores * 2, targets))
        else:
            with pytest.raises(IndexError):
                compiled(scores, targets)


def test_an_index_out_of_range_raises_an_error() -> None:
    compiled = torch.compile(lambda table, y: nn.functional.embedding(y + 1, table), backend=compile_with_vendor)
    with pytest.raises(IndexError):
        compiled(torch.randn(4, 3, device="diopi"), torch.tensor([0, 3], device="diopi"))


def test_a_vendor_that_compiles_no_programs_runs_each_operator(
    activate_vendor: Callable[[Any], Any], divided: list[list[stages.Stage]]
) -> None:
    activate_vendor(torch_cpu)
    eager, compiled, x = copies("perceptron")
    assert_close(compiled(x), eager(x))
    assert {type(stage) for graph in divided for stage in graph} == {stages.OperatorStage}


def test_operators_that_are_forced_to_the_cpu_run_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "forced_operators", lambda: frozenset({"exp"}))
    found: list[list[stages.Stage]] = []
    monkeypatch.setattr("diopi_torch.compiling.backend.divide", lambda *a: found.append(stages.divide(*a)) or found[-1])
    x = torch.randn(3)
    compiled = torch.compile(lambda x: (x * 2).exp() + 1, backend=compile_with_vendor)
    assert_close(compiled(x.to("diopi")), ((x * 2).exp() + 1).to("diopi"))
    assert [type(stage).__name__ for stage in found[0]] == ["ProgramStage", "OperatorStage", "ProgramStage"]


def test_a_watch_receives_the_calls_of_a_compiled_model() -> None:
    eager, compiled, x = copies("perceptron")
    names: list[str] = []

    def watch(call: Any, perform: Any) -> Any:
        names.append(call.function)
        return perform()

    with watch_calls(watch):
        result = compiled(x)
    assert_close(result, eager(x))
    assert "diopiGelu" in names


def test_autocompare_judges_a_compiled_model() -> None:
    _, compiled, x = copies("perceptron")
    with diopi_torch.autocompare() as comparison:
        compiled(x)
    assert comparison.counts["gelu"]["compared"] == 1


def test_a_program_watch_judges_a_compiled_model() -> None:
    _, compiled, x = copies("perceptron")
    with diopi_torch.watch(quiet=True) as watch:
        compiled(x)
    assert watch.counts.judged.total()


def test_pytorch_finds_the_backend_by_its_name() -> None:
    found = entry_points(group="torch_dynamo_backends", name="diopi")
    if not found:
        pytest.skip("the package is not installed with this entry point: pip install '.[torch]'")
    assert next(iter(found)).load() is compile_with_vendor

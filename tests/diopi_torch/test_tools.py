"""Tools of PyTorch for training, on the device: checkpoints, scaled gradients, profiles, compilation, workers."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

import diopi_torch  # noqa: E402  # behind the check for PyTorch
from diopi_impl.plugins import find_vendor  # noqa: E402  # behind the check, too

nn = torch.nn


@pytest.fixture(autouse=True)
def quick(activate_vendor: Callable[[Any], Any]) -> None:
    """Use a device whose vendor compiles nothing."""
    activate_vendor(find_vendor("torch_cpu"))


def perceptron() -> Any:
    """Return a perceptron with dropout on the device."""
    return nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Dropout(0.5), nn.Linear(8, 4)).to("diopi")


def gradients(model: Any, forward: Callable[[Any], Any]) -> list[Any]:
    """Return the gradients of the parameters and the input, computed with a fixed seed."""
    x = torch.ones(3, 4, device="diopi", requires_grad=True)
    torch.manual_seed(5)
    forward(x).square().sum().backward()
    found = [x.grad, *(parameter.grad for parameter in model.parameters())]
    model.zero_grad()
    return found


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpoints_compute_the_same_again(use_reentrant: bool) -> None:
    model = perceptron()

    def forward(x: Any) -> Any:
        return torch.utils.checkpoint.checkpoint(model, x, use_reentrant=use_reentrant)

    pairs = zip(gradients(model, model), gradients(model, forward), strict=True)
    assert all(torch.equal(first, second) for first, second in pairs), "random numbers included"


def test_scaled_gradients_skip_a_step_that_overflows() -> None:
    model, scaler = nn.Linear(4, 4).to("diopi"), torch.amp.GradScaler("diopi", init_scale=1024.0, growth_interval=1)
    optimizer, scales, weights = torch.optim.SGD(model.parameters(), 0.1), [], []
    for batch in (torch.ones(2, 4), torch.full((2, 4), torch.inf), torch.ones(2, 4)):
        optimizer.zero_grad()
        with torch.autocast("diopi", dtype=torch.float16):
            loss = model(batch.to("diopi")).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
        weights.append(model.weight.detach().cpu().clone())
    assert scales == [2048, 1024, 2048]
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[1], weights[2])
    assert weights[2].isfinite().all()
    assert diopi_torch.fallbacks() == {}


def test_a_profile_has_one_row_per_operator() -> None:
    x = torch.ones(3, 3).to("diopi")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profile:
        (x @ x).tanh_()
    rows = {(row.key, str(row.input_shapes[:2])) for row in profile.key_averages(group_by_input_shape=True)}
    assert {("aten::mm", "[[3, 3], [3, 3]]"), ("aten::tanh_", "[[3, 3]]")} <= rows


def test_compile_works_without_code_generation() -> None:
    model = perceptron().eval()
    first, second = gradients(model, model), gradients(model, torch.compile(model, backend="eager"))
    assert all(torch.equal(actual, wanted) for actual, wanted in zip(first, second, strict=True))


@pytest.mark.filterwarnings("ignore:os.fork")  # JAX's, where a test before has started it: workers do not call it
def test_worker_processes_of_a_loader_create_cpu_batches() -> None:
    data = torch.utils.data.TensorDataset(torch.arange(8.0))
    batches = torch.utils.data.DataLoader(data, batch_size=4, num_workers=1)
    assert [float(batch.to("diopi").sum()) for (batch,) in batches] == [6.0, 22.0]


def test_memory_of_the_device_is_not_pinned() -> None:
    for make in (lambda: torch.empty(2, device="diopi", pin_memory=True), torch.ones(2, device="diopi").pin_memory):
        with pytest.raises(RuntimeError, match="pinned"):
            make()


def test_shared_parameters_stay_shared() -> None:
    embedding, last = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
    last.weight = embedding.weight
    model = nn.Sequential(embedding, nn.Sequential(nn.Linear(3, 3), last)).to("diopi")
    assert embedding.weight is last.weight and last.weight.device.type == "diopi"
    assert len(list(model.parameters())) == 3
    model.cpu().double()
    assert embedding.weight is last.weight and last.weight.dtype is torch.float64
    assert model[1][0].weight is not last.weight


def test_lazy_modules_can_be_moved_before_their_first_call() -> None:
    model = nn.Sequential(nn.LazyConv1d(4, 3), nn.LazyBatchNorm1d(), nn.Flatten(), nn.LazyLinear(3)).to("diopi")
    assert {type(parameter) for parameter in model.parameters()} == {nn.UninitializedParameter}
    model(torch.ones(2, 3, 8, device="diopi")).sum().backward()
    assert {parameter.grad.device.type for parameter in model.parameters()} == {"diopi"}
    assert model.double()[3].weight.dtype is torch.float64


def test_an_unknown_attribute_of_the_device_module_raises_an_error() -> None:
    assert torch.diopi._initialized
    with pytest.raises(AttributeError, match=r"'torch\.diopi'.*'nvtx'"):
        torch.diopi.nvtx  # noqa: B018  # looking it up is what is tried

"""Networks by operators and as engines: correct arithmetic passes, and defects of runtimes and vendors are detected."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

import diopi_torch.backend as backend  # noqa: E402  # behind the check for PyTorch
from diopi_engine import Engine  # noqa: E402  # behind the check, too
from diopi_engine.conformance.bench import EngineBench  # noqa: E402  # behind the check, too
from diopi_engine.conformance.models import as_engines, by_operators, making, names, zoo  # noqa: E402  # behind it, too
from diopi_engine.conformance.worker import run_case  # noqa: E402  # behind the check, too
from diopi_engine.runtime.execution import CoreLane, Execution  # noqa: E402  # behind the check, too
from diopi_impl.torch_cpu import vendor as torch_cpu  # noqa: E402  # behind the check, too

Patch = pytest.MonkeyPatch

OPERATORS = "recommender_by_operators"

ENGINES = "recommenders_as_group"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the files of the group's networks."""
    folder = tmp_path_factory.mktemp("networks")
    making.write_networks(folder, names.find_networks(ENGINES))
    return folder


@pytest.fixture
def vendor(monkeypatch: Patch) -> Iterator[None]:
    """Use torch_cpu as the device."""
    opened = backend.Backend(torch_cpu)
    monkeypatch.setattr(backend, "_backend", opened)
    yield
    opened.close()


def test_correct_engines_pass(bench: EngineBench) -> None:
    assert run_case(as_engines.CASES[ENGINES], bench) == ("passed", "")


def test_correct_operators_pass(vendor: None, folder: Path) -> None:
    assert run_case(by_operators.CASES[OPERATORS], folder) == ("passed", "")


def test_operators_of_low_precision_fail(vendor: None, folder: Path, monkeypatch: Patch) -> None:
    build = by_operators.build

    def rounded(name: str) -> zoo.ZooNetwork:
        network = build(name)
        network.module.half().float()
        return network

    monkeypatch.setattr(by_operators, "build", rounded)
    verdict, detail = run_case(by_operators.CASES[OPERATORS], folder)
    assert verdict == "failed"
    assert "output 0 of recommender has 10 wrong elements out of 10; the first, at (0, 0), is " in detail


def test_a_network_that_does_not_run_fails(vendor: None, folder: Path, monkeypatch: Patch) -> None:
    def refuse(*_: Any) -> None:
        raise RuntimeError("diopiAddmm: no")

    monkeypatch.setattr(by_operators, "run_module", refuse)
    expected = "failed", "the network does not run: diopiAddmm: no"
    assert run_case(by_operators.CASES[OPERATORS], folder) == expected


def other_weights(patch: Patch, change: Callable[[Engine], Any]) -> None:
    """Replace the weights that an engine uploads to cores by the result of `change`."""
    make = CoreLane.__init__

    def changed(self: Any, engine: Engine, cores: Any) -> None:
        make(self, Engine(engine.manifest, engine.network, change(engine)), cores)

    patch.setattr(CoreLane, "__init__", changed)


def weights_rounded_to_bfloat16(patch: Patch) -> None:
    """Make the runtime round the weights of engines to bfloat16."""

    def rounded(array: Any) -> Any:
        return array.astype(ml_dtypes.bfloat16).astype(array.dtype) if array.dtype == np.float32 else array

    other_weights(patch, lambda engine: [rounded(array) for array in engine.weights])


def weights_of_another_engine(patch: Patch) -> None:
    """Make the runtime give every engine of a group the weights of the first one."""
    first: dict[str, Any] = {}
    other_weights(patch, lambda engine: first.setdefault(engine.manifest.group, engine.weights))


def last_part_dropped(patch: Patch) -> None:
    """Make the runtime omit the last samples of a batch."""
    parts = Execution._split_batch
    patch.setattr(Execution, "_split_batch", lambda self, batch: parts(self, batch - batch % 4 or batch))


def inputs_overwritten(patch: Patch) -> None:
    """Make the runtime write to its first input."""
    execute = Execution.execute

    def careless(self: Any, batch: int, inputs: Any, outputs: Any) -> None:
        execute(self, batch, inputs, outputs)
        np.lib.stride_tricks.as_strided(inputs[0], (1,), writeable=True)[0] += 1

    patch.setattr(Execution, "execute", careless)


@pytest.mark.parametrize("fault", [weights_rounded_to_bfloat16, weights_of_another_engine, last_part_dropped])
def test_a_faulty_runtime_fails(fault: Callable[[Patch], None], bench: EngineBench, monkeypatch: Patch) -> None:
    with monkeypatch.context() as patch:
        fault(patch)
        verdict, detail = run_case(as_engines.CASES[ENGINES], bench)
    assert verdict == "failed", detail
    assert "wrong elements" in detail


def test_a_runtime_that_changes_inputs_fails(bench: EngineBench, monkeypatch: Patch) -> None:
    with monkeypatch.context() as patch:
        inputs_overwritten(patch)
        verdict, detail = run_case(as_engines.CASES[ENGINES], bench)
    assert verdict == "failed"
    assert detail.startswith("the library changed input 0 of ")


@pytest.mark.parametrize("name", names.NETWORKS)
def test_float32_stays_within_the_budgets(name: str) -> None:
    """PyTorch's kernels are within the budgets in float32, and not with weights in half precision."""
    network = zoo.build(name)
    samples = making.compute_samples(network, 4)
    found = [output.numpy() for output in zoo.run_module(network.module, network.draw_samples(4))]
    assert samples.check(name, found) < 0.5
    narrow = zoo.run_module(network.module.half().float(), network.draw_samples(4))
    with pytest.raises(by_operators.NotConformingError):
        samples.check(name, [output.numpy() for output in narrow])


def test_networks_are_reproducible() -> None:
    weights = [zoo.build(name).module.state_dict() for name in ("recommender", "recommender", "other_recommender")]
    first, same_seed, different = [state["top.0.weight"] for state in weights]
    assert torch.equal(first, same_seed)
    assert not torch.equal(first, different)


def test_samples_survive_a_round_trip_through_a_file(tmp_path: Path) -> None:
    samples = making.compute_samples(zoo.build("recommender"), 2)
    samples.save(tmp_path / "samples.npz")
    loaded_samples = type(samples).load(tmp_path / "samples.npz")
    for output, loaded in zip(samples.inputs, loaded_samples.inputs, strict=True):
        np.testing.assert_array_equal(output, loaded)
    np.testing.assert_array_equal(samples.outputs[0].budget.unit, loaded_samples.outputs[0].budget.unit)


def test_cases_are_not_run_without_pytorch(library: Path, monkeypatch: Patch) -> None:
    from diopi_engine.conformance import run

    monkeypatch.setattr(run.importlib.util, "find_spec", lambda name: None)
    cases = [OPERATORS, ENGINES]
    reason = "PyTorch is not installed; install the extra `torch`"
    expected = [run.CaseOutcome(case, "not_run", reason) for case in cases]
    assert [*run.run_cases(library, cases)] == expected
